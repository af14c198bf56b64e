# SPDX-License-Identifier: GPL-2.0-only
"""Where the lab's own files and its cache are."""

import fcntl
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

from bulkmm.shell.ending import hold_signals
from bulkmm.shell.errors import BulkmmError, UsageError
from bulkmm.shell.progress import Progress

PROJECT = Path(__file__).resolve().parents[1]
GUEST = PROJECT / "lab" / "guest"
VERSIONS = PROJECT / "lab" / "versions.txt"
TURN = 0.2  # seconds between tries
MOST_GUESTS = 64
HOUR = 3600  # seconds
NEW = "bulkmm-new-"  # a scratch directory that is not claimed yet
FRAGMENTS = PROJECT / "lab" / "kernels"  # of configurations
UPSTREAM = PROJECT / "upstream"  # patches for the kernel


def cache_dir() -> Path:
    """Return the cache directory; it need not exist."""
    if path := os.environ.get("BULKMM_CACHE"):
        return Path(path).absolute()
    if xdg := os.environ.get("XDG_CACHE_HOME"):
        return Path(xdg).absolute() / "bulkmm"
    return Path.home() / ".cache" / "bulkmm"


def need_sources() -> None:
    """Reject running outside a checkout: the lab builds from its sources."""
    lab_files = (GUEST, VERSIONS, FRAGMENTS)
    for part in (*lab_files, PROJECT / "module", PROJECT / "core"):
        if not part.exists():
            raise BulkmmError(f"the lab runs from a source checkout: no {part}")


def need_space(need: int, purpose: str) -> None:
    """Raise an error if the cache's file system lacks space."""
    cache = cache_dir()
    free = shutil.disk_usage(cache).free
    if free < need:
        raise BulkmmError(
            f"no disk space for {purpose}: {need / 1e9:.1f} GB are needed in {cache}, "
            f"{free / 1e9:.1f} GB are free (BULKMM_CACHE names another place)"
        )


def content_key(files: Iterable[Path], *extra: str) -> str:
    """Return a short hash of files and of extra words.

    A file counts by its content and its path below the folder that all share.
    """
    import hashlib  # takes long, and every help needs this file

    digest = hashlib.sha256()
    paths = sorted(files)
    top = os.path.commonpath([file.parent for file in paths]) if paths else ""
    for file in paths:
        name = str(file.relative_to(top))
        digest.update(name.encode() + b"\0" + file.read_bytes() + b"\0")
    for word in extra:
        digest.update(word.encode() + b"\0")
    return digest.hexdigest()[:16]


@contextmanager
def lock_cache(progress: Progress) -> Iterator[Path]:
    """Lock the cache, to add to it or to remove from it."""
    cache = cache_dir()
    with lock_directory(cache, progress, "prepare the lab"):
        yield cache


@contextmanager
def lock_directory(place: Path, progress: Progress, purpose: str) -> Iterator[None]:
    """Lock a directory of the cache against others that do the same."""
    try:
        place.mkdir(parents=True, exist_ok=True)
        file = (place / "lock").open("w", encoding="ascii")
    except OSError as error:
        raise BulkmmError(f"the cache {place} cannot be made: {error}") from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress.note(f"waiting for another command to {purpose}")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def protect_cache(cache: Path) -> AbstractContextManager[bool]:
    """Protect the cache's content from removal; enter while holding its lock."""
    return claim_path(cache, fcntl.LOCK_SH)


@contextmanager
def wait_turn(progress: Progress) -> Iterator[None]:
    """Wait until a guest may run: concurrent guests slow each other."""
    places = [cache_dir() / f"guest.{n}" for n in range(guests_at_once())]
    for place in places:
        place.touch()
    waiting = False
    while True:
        for place in places:
            with claim_path(place) as free:
                if free:
                    yield
                    return
        if not waiting:
            progress.note("waiting for another guest to end")
            waiting = True
        time.sleep(TURN)


def guests_at_once() -> int:
    """Return how many guests may run concurrently; more than 1 disturbs times."""
    text = os.environ.get("BULKMM_GUESTS", "1")
    if not (text.isdecimal() and 1 <= int(text) <= MOST_GUESTS):
        raise UsageError(f"BULKMM_GUESTS={text}: give 1 to {MOST_GUESTS}")
    return int(text)


@contextmanager
def claim_path(path: Path, how: int = fcntl.LOCK_EX | fcntl.LOCK_NB) -> Iterator[bool]:
    """Try to lock a file or directory exclusively; yield whether that succeeded.

    A cache that is claimed has no runs, so removing from it is safe.
    """
    handle, success = os.open(path, os.O_RDONLY), False
    try:
        with suppress(BlockingIOError):
            fcntl.flock(handle, how)
            success = True
        yield success
    finally:
        os.close(handle)


@contextmanager
def make_scratch(prefix: str, home: Path | None = None) -> Iterator[Path]:
    """Make a directory that goes with the block; if that is killed, with the next.

    Whatever else begins with the prefix there is such a directory.
    """
    home = home or Path(tempfile.gettempdir())
    with hold_signals() as interruptible:
        for leftover in home.glob(f"{prefix}*"):
            _remove_left(leftover)
        new = Path(tempfile.mkdtemp(prefix=NEW, dir=home))
        with claim_path(new):
            # others look for it by this name only
            directory = new.rename(home / new.name.replace(NEW, prefix))
            try:
                with interruptible():
                    yield directory
            finally:
                shutil.rmtree(directory)


def _remove_left(path: Path) -> None:
    """Remove a directory of ours that nobody claims; it may be going right now."""
    with suppress(OSError):
        status = path.lstat()
        if stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid():
            with claim_path(path) as unclaimed:
                if unclaimed:
                    shutil.rmtree(path)


@contextmanager
def made_whole(path: Path) -> Iterator[Path]:
    """Make a directory under a ``.part`` name; rename it when complete."""
    part = path.with_name(path.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    try:
        yield part
        part.rename(path)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def ensure_directory(
    path: Path,
    title: str,
    progress: Progress,
    make: Callable[[Path], object],
    keep: int = 16,
) -> Path:
    """Return a directory of the cache, made as a step if it is not there.

    Of its kind only the latest are kept, and those of the last hour: what another
    checkout has just made may be in use.
    """
    if path.is_dir():
        return path
    with progress.step(title), made_whole(path) as part:
        make(part)
    ages = sorted(
        (time.time() - entry.stat().st_mtime, entry) for entry in path.parent.iterdir()
    )
    for age, old in ages[keep:]:
        if age > HOUR:
            shutil.rmtree(old)
    return path


def copy_sources(files: Iterable[Path], to: Path) -> None:
    """Copy files of the checkout to the same paths below another directory."""
    for file in files:
        target = to / file.relative_to(PROJECT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, target)
