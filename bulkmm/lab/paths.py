# SPDX-License-Identifier: GPL-2.0-only
"""Where the lab finds its own files, and where it keeps what it made."""

import fcntl
import hashlib
import os
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bulkmm.errors import BulkmmError, UsageError
from bulkmm.lab.progress import Progress

PROJECT = Path(__file__).resolve().parents[2]
GUEST = PROJECT / "lab" / "guest"
PLUGIN = PROJECT / "lab" / "qemu"
MARKS = PROJECT / "module" / "selftest" / "mark.h"  # of guest, module and plugin
PACKAGES = PROJECT / "lab" / "root-packages.txt"
TURN = 0.2  # seconds from one try to the next
MOST_GUESTS = 64
FRAGMENTS = PROJECT / "lab" / "kernels"  # of configurations


def cache_dir() -> Path:
    """Return the cache directory; it need not exist."""
    if named := os.environ.get("BULKMM_CACHE"):
        return Path(named).absolute()
    if xdg := os.environ.get("XDG_CACHE_HOME"):
        return Path(xdg).absolute() / "bulkmm"
    return Path.home() / ".cache" / "bulkmm"


def need_sources() -> None:
    """Refuse to go on outside a checkout: the lab builds from its sources."""
    ours = (GUEST, PLUGIN, PACKAGES, FRAGMENTS)
    for part in (*ours, PROJECT / "module", PROJECT / "core"):
        if not part.exists():
            raise BulkmmError(f"the lab runs from a source checkout: no {part}")


def need_space(need: int, what: str) -> None:
    """Refuse to begin what the cache's file system has no room for."""
    cache = cache_dir()
    free = shutil.disk_usage(cache).free
    if free < need:
        raise BulkmmError(
            f"no disk space for {what}: {need / 1e9:.1f} GB are needed in {cache}, "
            f"{free / 1e9:.1f} GB are free (BULKMM_CACHE names another place)"
        )


def content_key(files: Iterable[Path], *extra: str) -> str:
    """Return a short hash of files' names and contents and of some words."""
    digest = hashlib.sha256()
    for file in sorted(files):
        digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    for word in extra:
        digest.update(word.encode() + b"\0")
    return digest.hexdigest()[:16]


@contextmanager
def locked(progress: Progress) -> Iterator[Path]:
    """Hold the cache: what is made in it, and what is forgotten."""
    cache = cache_dir()
    try:
        cache.mkdir(parents=True, exist_ok=True)
        lock = (cache / "lock").open("w", encoding="ascii")
    except OSError as error:
        raise BulkmmError(f"the cache {cache} cannot be made: {error}") from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress.note("waiting for another command to prepare the lab")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield cache


@contextmanager
def used(cache: Path) -> Iterator[None]:
    """Keep what is in the cache from being removed; to be entered while it is held."""
    handle = os.open(cache, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_SH)
        yield
    finally:
        os.close(handle)


@contextmanager
def turn(progress: Progress) -> Iterator[None]:
    """Wait until a guest may run: beside another one it would be slower."""
    places = [cache_dir() / f"guest.{n}" for n in range(guests_at_once())]
    for place in places:
        place.touch()
    said = False
    while True:
        for place in places:
            with claimed(place) as mine:
                if mine:
                    yield
                    return
        if not said:
            progress.note("waiting for another guest to end")
            said = True
        time.sleep(TURN)


def guests_at_once() -> int:
    """Return how many guests may run beside each other: where nobody measures."""
    said = os.environ.get("BULKMM_GUESTS", "1")
    if not (said.isdecimal() and 1 <= int(said) <= MOST_GUESTS):
        raise UsageError(f"BULKMM_GUESTS={said}: give 1 to {MOST_GUESTS}")
    return int(said)


@contextmanager
def claimed(path: Path) -> Iterator[bool]:
    """Have a file or a directory to oneself, and tell if that is so.

    A cache that is claimed has no runs: nobody uses what is removed from it.
    """
    handle = os.open(path, os.O_RDONLY)
    mine = True
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            mine = False
        yield mine
    finally:
        os.close(handle)


@contextmanager
def made_whole(path: Path) -> Iterator[Path]:
    """Make a directory under a ``.part`` name; it gets its name when done."""
    part = path.with_name(path.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    try:
        yield part
        part.rename(path)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def copy_sources(files: Iterable[Path], to: Path) -> None:
    """Copy files of the checkout to the same places below another directory."""
    for file in files:
        there = to / file.relative_to(PROJECT)
        there.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, there)


def forget_old(directory: Path, keep: int = 16) -> None:
    """Keep only the latest of what a directory caches."""
    made = sorted(directory.iterdir(), key=lambda path: path.stat().st_mtime)
    for old in made[:-keep]:
        shutil.rmtree(old)
