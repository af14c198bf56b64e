# SPDX-License-Identifier: GPL-2.0-only
"""How to install what is missing: a way that the Python in question takes."""

import re

import overlay
import pytest

from bulkmm import libraries
from lab.paths import PROJECT

RESULT = next((PROJECT / "results").glob("*/bench.json"))
TEXTS = [
    PROJECT / "README.md",
    *(PROJECT / "docs").glob("*.md"),
    *(PROJECT / "bulkmm").rglob("*.py"),
]


@pytest.mark.vm
@pytest.mark.parametrize("series", ["6.1", "6.12"], ids=["Debian 12", "Debian 13"])
def test_a_system_python_is_told_packages(series: str) -> None:
    more = {"result.json": RESULT}
    with overlay.run_with_package(series, "bulkmm", "results.sh", **more) as place:
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
