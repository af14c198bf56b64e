# SPDX-License-Identifier: GPL-2.0-only
"""The packages as built, and their life in a guest of one kernel."""

import re
from pathlib import Path

import pytest
from lablib import passed, tiers
from programs import run_program

from bulkmm.shell.progress import Progress
from lab.machine import debs
from lab.paths import lock_cache

pytestmark = pytest.mark.vm

VERSION = debs.read_version()
NAMES = {
    f"bulkmm-dkms_{VERSION}_all.deb",
    f"bulkmm_{VERSION}_all.deb",
    f"libbulkmm-dev_{VERSION}_amd64.deb",
    f"libbulkmm0_{VERSION}_amd64.deb",
}


@pytest.fixture(scope="module")
def packages() -> dict[str, Path]:
    """Return the packages, which lintian has found nothing wrong with."""
    progress = Progress()
    with lock_cache(progress) as cache:
        folder = debs.ensure_packages(cache, progress)
    return {deb.name.partition("_")[0]: deb for deb in debs.list_packages(folder)}


def inspect_deb(deb: Path, *words: str) -> str:
    return run_program(["dpkg-deb", *words, deb], check=True).stdout


def test_there_are_four(packages: dict[str, Path]) -> None:
    assert {deb.name for deb in packages.values()} == NAMES


def test_the_source_is_complete_and_without_the_lab(packages: dict[str, Path]) -> None:
    files = inspect_deb(packages["bulkmm-dkms"], "-c")
    top = f"/usr/src/bulkmm-{VERSION}"
    for name in ("dkms.conf", "module/Kbuild", "module/compat/probe.mk", "core/bmm.h"):
        assert f"{top}/{name}\n" in files
    assert "bulkmm_lab" not in files
    assert not re.search(r"\.(o|ko|cmd)$", files, re.MULTILINE)


def test_what_the_command_needs(packages: dict[str, Path]) -> None:
    fields = inspect_deb(packages["bulkmm"], "-f")
    (depends,) = re.findall(r"^Depends: (.*)$", fields, re.MULTILINE)
    assert {word.split()[0] for word in depends.split(", ")} == {
        "python3-rich",
        "python3:any",
    }
    files = inspect_deb(packages["bulkmm"], "-c")
    for name in (
        "bin/bulkmm",
        "share/bash-completion/completions/bulkmm",
        "share/zsh/vendor-completions/_bulkmm",
        "share/fish/vendor_completions.d/bulkmm.fish",
        "lib/python3/dist-packages/bulkmm/control/paths.def",
        "lib/python3/dist-packages/bulkmm/report/figure.svg",
        "lib/python3/dist-packages/bulkmm/report/page.css",
        "lib/systemd/system/bulkmm-serve.service",
        "lib/systemd/system/bulkmm-serve.socket",
    ):
        assert f"/usr/{name}\n" in files


@pytest.mark.parametrize(
    "argv", tiers([("6.1", "--no-upgrade")], [("6.1",), ("6.12",)]), ids=" ".join
)
def test_install_rescue_use_purge(argv: tuple[str, ...], tmp_path: Path) -> None:
    """On a Debian that has the kernel as its own."""
    document = passed(tmp_path, "packages", "--kernel", *argv)
    names = " ".join(check["name"] for check in document["checks"])
    assert "inert: no function is hooked" in names
    assert "purged: no file is left" in names
