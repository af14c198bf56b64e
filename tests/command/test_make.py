# SPDX-License-Identifier: GPL-2.0-only
"""What make says of itself, and removes again."""

import re
import sys
from pathlib import Path

from commandlib import ROOT
from programs import run_program

MAKE = ("make", "-s", "-C", ROOT)
SOFT_DEPENDENCIES = "usr/lib/modprobe.d/bulkmm-softdep.conf"


def test_help_names_every_target() -> None:
    text = (ROOT / "Makefile").read_text()
    (phony,) = re.findall(r"^\.PHONY: ((?:.*\\\n)*.*)$", text, re.MULTILINE)
    page = run_program([*MAKE, "help"], check=True).stdout
    for target in set(phony.replace("\\", "").split()) - {"help", "module"}:
        assert re.search(rf"^  {target} |[ ,]{target}\b", page, re.MULTILINE), target


def list_files(top: Path) -> list[str]:
    """Return the files below a directory."""
    return sorted(str(p.relative_to(top)) for p in top.rglob("*") if p.is_file())


def test_man_pages_and_completion_are_removed(tmp_path: Path) -> None:
    share = tmp_path / "usr/share"
    script = ROOT / "scripts" / "commandpages.py"
    run_program([sys.executable, script, "--out", share], check=True)
    (share / "man/man1/other.1").touch()
    assert len(list_files(share)) == 6
    run_program(
        [*MAKE, "uninstall-man", f"DESTDIR={tmp_path}", "PREFIX=/usr"], check=True
    )
    assert list_files(share) == ["man/man1/other.1"]


def test_the_module_is_removed_for_one_kernel_at_a_time(tmp_path: Path) -> None:
    modules = [f"lib/modules/{name}/updates/bulkmm.ko" for name in ("6.12", "7.3")]
    for name in (*modules, SOFT_DEPENDENCIES):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).touch()
    words = [*MAKE, "uninstall", f"DESTDIR={tmp_path}"]
    run_program([*words, "RELEASE=7.3"], check=True)
    assert list_files(tmp_path) == [modules[0], SOFT_DEPENDENCIES]
    run_program([*words, "RELEASE=6.12"], check=True)
    assert list_files(tmp_path) == []
