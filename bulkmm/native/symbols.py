# SPDX-License-Identifier: GPL-2.0-only
"""Symbols of a kernel image, from its kallsyms, cached by the image.

vmlinux-to-elf finds the tables; it is run as a program of its own (its licence
is GPL-3.0).
"""

from __future__ import annotations

import bisect
import hashlib
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from bulkmm.errors import BulkmmError
from bulkmm.lab.paths import cache_dir

if TYPE_CHECKING:
    from bulkmm.lab.progress import Progress
    from bulkmm.native.vmlinux import Image

FINDER = "kallsyms-finder"
LIMIT = 300  # seconds
FIELDS = 3  # of its lines: address, type, name
KEEP = 16  # kernels in the cache
LEAST = 1000  # fewer symbols are no kernel's


class Symbols:
    """Where everything is in the process."""

    def __init__(self, image: Image, lines: str) -> None:
        """Place what was found."""
        self.all: dict[str, int] = {}
        for line in lines.splitlines():
            words = line.split()
            if len(words) == FIELDS:
                self.all.setdefault(words[2], image.place(int(words[0], 16)))
        self._sorted = sorted(set(self.all.values()))

    def __getitem__(self, name: str) -> int:
        """Return an address."""
        if name not in self.all:
            raise BulkmmError(f"the kernel has no symbol {name}")
        return self.all[name]

    def size(self, name: str) -> int:
        """Return how far it is to the next symbol."""
        start = self[name]
        return self._sorted[bisect.bisect_right(self._sorted, start)] - start


def find(file: Path, image: Image, progress: Progress) -> Symbols:
    """Return the symbols of an image that was just read from a file."""
    digest = hashlib.sha256(file.read_bytes()).hexdigest()[:16]
    cached = cache_dir() / "native" / f"{image.release}-{digest}.symbols"
    if not cached.is_file():
        with progress.step(f"reading the symbols of {image.release}"):
            _write(cached, _found(image))
    return Symbols(image, cached.read_text(encoding="ascii"))


def _found(image: Image) -> str:
    """Have the finder look through the image, as it is before relocation."""
    with tempfile.NamedTemporaryFile(prefix="bulkmm-kernel-") as raw:
        raw.write(image.payload)
        raw.flush()
        finder = Path(sys.executable).with_name(FINDER)
        try:
            done = subprocess.run(
                [finder, raw.name],
                capture_output=True,
                text=True,
                timeout=LIMIT,
                check=False,
            )
        except FileNotFoundError as error:
            message = "vmlinux-to-elf is not installed: pip install bulkmm[native]"
            raise BulkmmError(message) from error
        except OSError as error:
            raise BulkmmError(
                f"{finder.name} does not run: {error.strerror}"
            ) from error
        except subprocess.TimeoutExpired as error:
            message = f"the kernel's symbols were not found in {LIMIT} s"
            raise BulkmmError(message) from error
    if done.returncode or len(done.stdout.splitlines()) < LEAST:
        raise BulkmmError(
            f"the kernel {image.release} has no kallsyms that can be read"
        )
    return done.stdout


def _write(cached: Path, text: str) -> None:
    try:
        cached.parent.mkdir(parents=True, exist_ok=True)
        part = cached.with_suffix(".part")
        part.write_text(text, encoding="ascii")
        part.replace(cached)
    except OSError as error:
        raise BulkmmError(f"{cached} cannot be written: {error.strerror}") from error
    kept = sorted(cached.parent.iterdir(), key=lambda one: one.stat().st_mtime)
    for old in kept[:-KEEP]:
        old.unlink()
