# SPDX-License-Identifier: GPL-2.0-only
"""A guest on memory that was filled before takes no page from the pool any more."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import rootlib

from bulkmm.lab import paths
from bulkmm.lab.machine import root
from bulkmm.lab.progress import Progress
from bulkmm.native import find

MIB = 1 << 20
PAGES = 128  # of 2 MiB
LIMIT = 120  # seconds, for an emulator on a busy machine
# Prints its memory, finds no root, and ends: a reboot is the end of QEMU here.
CMDLINE = "console=ttyS0 panic=-1 root=/dev/none"

pytestmark = pytest.mark.vm


def taken(file: Path) -> int:
    """Return the huge pages the file has: others may take from the same pool."""
    return file.stat().st_blocks * 512 // (2 * MIB)


def free(place: Path) -> int:
    """Return what the mount may still take, private copies of its pages included."""
    return os.statvfs(place).f_bfree


@pytest.fixture
def qemu() -> list[str]:
    """Return what starts the lab's QEMU where it sees this machine's files."""
    rootlib.needs_root()
    held = root.of(paths.cache_dir())
    image, _ = find.of_lab("6.12", None, Progress(), build_module=False)
    usr = held.path / "usr"
    libraries = usr / "lib" / "x86_64-linux-gnu"
    loader = libraries / "ld-linux-x86-64.so.2"
    words = [loader, "--library-path", f"{libraries}:{libraries}/pulseaudio"]
    words += [usr / "bin" / "qemu-system-x86_64"]
    for place in ("qemu", "seabios", "ipxe"):
        words += ["-L", usr / "share" / place]
    words += ["-accel", "tcg", "-display", "none", "-monitor", "none", "-no-reboot"]
    words += ["-nic", "none", "-serial", "stdio", "-kernel", image]
    return [*map(str, words), "-append", CMDLINE]


def fewest_free(qemu: list[str], file: Path) -> tuple[int, str]:
    """Boot a guest on the file; return the mount's fewest free pages, and the log."""
    memory = f"memory-backend-file,id=m,mem-path={file},size={PAGES * 2}M,share=on"
    words = [*qemu, "-object", memory, "-machine", "pc,memory-backend=m"]
    words += ["-m", f"{PAGES * 2}M"]
    log = file.parent.parent / f"{file.name}.log"
    fewest, end = free(file.parent), time.monotonic() + LIMIT
    with (
        log.open("w") as out,
        subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT
        ) as child,
    ):
        try:
            while child.poll() is None and time.monotonic() < end:
                fewest = min(fewest, free(file.parent))
                time.sleep(0.05)
        finally:
            child.kill()
    return fewest, log.read_text()


def test_a_guest_on_a_file_that_was_filled(tmp_path: Path, qemu: list[str]) -> None:
    """And one on a file that was not, which takes what it touches."""
    options = f"pagesize=2M,size={3 * PAGES * 2}M"
    with (
        rootlib.huge_pages(3 * PAGES),
        rootlib.mounted("hugetlbfs", options, tmp_path / "huge") as place,
    ):
        filled, empty = place / "filled", place / "empty"
        populate = [sys.executable, "-m", "bulkmm.cli", "populate"]
        size = ["--size", f"{PAGES * 2}M"]
        subprocess.run([*populate, str(filled), *size], check=True)
        assert taken(filled) == PAGES
        assert free(place) == 2 * PAGES
        fewest, said = fewest_free(qemu, filled)
        assert "Kernel panic" in said, said[-2000:]
        assert taken(filled) == PAGES
        assert fewest == 2 * PAGES
        _fewest, said = fewest_free(qemu, empty)
        assert "Kernel panic" in said, said[-2000:]
        assert 20 < taken(empty) < PAGES
