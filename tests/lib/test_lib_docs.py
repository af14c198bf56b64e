# SPDX-License-Identifier: GPL-2.0-only
"""Every command that is shown for the library, run as it stands."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from corelib import ROOT
from installed import EXAMPLES, Installed, output

POOL = Path("/dev/shm/guest")  # noqa: S108 - as the README names it
INSTALL = "make install-lib"
BLOCK = re.compile(r"^```(?:sh)?\n(.*?)^```\n", re.DOTALL | re.MULTILINE)


def commands(page: str) -> list[str]:
    """Return the commands of a page, or of that part that is about the library."""
    blocks = BLOCK.findall((ROOT / page).read_text())
    if page == "README.md":
        blocks = [text for text in blocks if INSTALL in text]
    return [line for text in blocks for line in text.splitlines()]


def copy_of_the_examples(at: Path) -> None:
    built = shutil.ignore_patterns(*(p.stem for p in EXAMPLES.glob("*.c")))
    shutil.copytree(EXAMPLES, at / "examples", ignore=built)


@pytest.fixture
def _no_pool() -> Iterator[None]:
    """Take away what the README fills; a pool of somebody's own stays."""
    there = POOL.exists()
    yield
    if not there:
        POOL.unlink(missing_ok=True)


@pytest.mark.usefixtures("_no_pool")
@pytest.mark.parametrize("page", ["README.md", "docs/library.md"])
def test_the_commands_work_in_their_order(tmp_path: Path, page: str) -> None:
    """What needs the tree is done in it, all else beside a copy of the examples."""
    lines = commands(page)
    assert [line for line in lines if line.startswith(INSTALL)]
    assert [line for line in lines if "pkg-config" in line]
    copy_of_the_examples(tmp_path)
    home = tmp_path / "home"
    local = Installed(tmp_path / "usr/local")
    for line in lines:
        where, more = ROOT, {"DESTDIR": str(tmp_path), "HOME": str(home)}
        if not line.startswith((INSTALL, ".venv/")):
            sysroot = {"PKG_CONFIG_SYSROOT_DIR": str(tmp_path)}
            where, more = tmp_path, {**local.environment, **sysroot}
        output("bash", "-euc", f"cd {where}; {line}", **more)
    if any("$HOME/.local" in line for line in lines):
        prefix = tmp_path / home.relative_to("/") / ".local"
        assert (prefix / "include/bulkmm.h").exists()
