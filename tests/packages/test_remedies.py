# SPDX-License-Identifier: GPL-2.0-only
"""How to install what is missing: a way that the Python in question takes."""

import re
import shutil
from contextlib import ExitStack
from pathlib import Path

import overlay
import pytest

from bulkmm import libraries
from bulkmm.shell.progress import Progress
from lab.machine import debs, disk, kernels, root, vm
from lab.paths import PROJECT, lock_cache

FOLDER = Path(__file__).parent
RESULT = next((PROJECT / "results").glob("*/bench.json"))
TEXTS = [
    PROJECT / "README.md",
    *(PROJECT / "docs").glob("*.md"),
    *(PROJECT / "bulkmm").rglob("*.py"),
]


@pytest.mark.vm
@pytest.mark.parametrize("series", ["6.1", "6.12"], ids=["Debian 12", "Debian 13"])
def test_a_system_python_is_told_packages(series: str) -> None:
    progress = Progress()
    with ExitStack() as stack:
        with lock_cache(progress) as cache:
            lab = root.ensure_root(cache, progress)
            tree = disk.ensure_tree(
                kernels.fetch_kernel(lab, series, progress), progress
            )
            package = next(debs.ensure_packages(cache, progress).glob("bulkmm_*.deb"))
            place = stack.enter_context(vm.run_directory(lab))
            (place / "in").mkdir()
            shutil.copy(package, place / "in/bulkmm.deb")
            shutil.copy(RESULT, place / "in/result.json")
            shutil.copy(FOLDER / "results.sh", place / "in")
            overlay.run_script([tree.path], place, "results.sh")
        message = (place / "remedy").read_text()
        names = " ".join(f"python3-{name}" for name in libraries.RESULTS)
        assert message == (
            f"bulkmm: msgspec is not installed: apt install {names} "
            f"({libraries.OLDER})\n"
        )
        heading = libraries.OLDER.rpartition(", ")[2]
        assert f"## {heading}\n" in (place / "headings").read_text()


def test_no_text_asks_for_pip_outside_of_an_environment() -> None:
    """Debian's Python refuses that (PEP 668), and nobody publishes bulkmm."""
    for file in TEXTS:
        for line in file.read_text().splitlines():
            for match in re.finditer(r"(\S*)pip3? install(.*)", line):
                assert match[1].endswith("/bin/"), (file, line)
                assert not re.search(r"install \S*bulkmm(\[|$)", match[0]), (file, line)
