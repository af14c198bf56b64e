# SPDX-License-Identifier: GPL-2.0-only
"""What make says of itself, and removes again."""

import re
import shutil
import sys
from pathlib import Path

import pytest
from commandlib import ROOT
from programs import run_program

MAKE = ("make", "-s", "-C", ROOT)
GUEST_FAILED = 2  # from this exit code on it has no result
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


@pytest.mark.parametrize("code", [0, 1, 3])
def test_the_demo_ends_in_sentences(code: int, tmp_path: Path) -> None:
    """Even if the guest could not run; the page then has what ran."""
    kernels = "module/compat/kernels.mk"
    command = tmp_path / ".venv/bin/bulkmm"
    for name in ("Makefile", kernels):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    command.parent.mkdir(parents=True)
    command.write_text(f'#!/bin/sh\necho "$*"\n[ "$1" != lab ] || exit {code}\n')
    command.chmod(0o755)
    result = run_program(["make", "-s", "-C", tmp_path, "-o", "build", "demo"])
    native, guest = (f"out/demo-{name}.json" for name in ("native", "guest"))
    results = f"{native} {guest}" if code < GUEST_FAILED else native
    assert result.stdout.splitlines() == [
        f"lab run pmem-fsdax-100g -o {guest}",
        f"report {results} -o out/demo.html",
        "",
        f"show {native}",
    ]
    assert bool(result.returncode) == bool(code)


@pytest.mark.parametrize(
    ("release", "remedy"),
    [
        ("6.12.107+deb13-cloud-amd64", "apt install linux-headers-6.12.107+deb13-clou"),
        ("6.1.0-56-amd64", "apt install linux-headers-6.1.0-56-amd64"),
        ("6.18.44-fc-v669", ", and Debian has no headers of this one: boot one of th"),
    ],
)
def test_what_helps_without_headers(tmp_path: Path, release: str, remedy: str) -> None:
    words = [*MAKE, "module", f"RELEASE={release}", f"KDIR={tmp_path / 'none'}"]
    result = run_program(words)
    assert result.returncode != 0
    assert remedy in result.stderr
    assert ("apt install" in result.stderr) is ("apt install" in remedy)
