# SPDX-License-Identifier: GPL-2.0-only
"""What runs of the lab share: who makes, who waits, and what is removed."""

import argparse
import threading
from contextlib import ExitStack
from pathlib import Path

import pytest

from bulkmm.shell.errors import BulkmmError, UsageError
from bulkmm.shell.progress import Progress
from lab import paths, run
from lab.commands import prepare
from lab.machine import cached, vm
from lab.machine.root import DebianRoot


class RecordingProgress(Progress):
    """Keeps what it would show."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.first = threading.Event()

    def note(self, text: str) -> None:
        """Keep a line."""
        self.lines.append(text)
        self.first.set()


@pytest.mark.usefixtures("empty_cache")
def test_a_second_guest_waits_for_its_turn_and_says_so() -> None:
    progress, acquired = RecordingProgress(), threading.Event()

    def second() -> None:
        with paths.wait_turn(progress):
            acquired.set()

    with paths.wait_turn(RecordingProgress()):
        waiting = threading.Thread(target=second)
        waiting.start()
        assert progress.first.wait(10)
        assert not acquired.is_set()
    waiting.join(10)
    assert acquired.is_set()
    assert progress.lines == ["waiting for another guest to end"]


@pytest.mark.usefixtures("empty_cache")
def test_as_many_guests_as_were_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BULKMM_GUESTS", "2")
    progress = RecordingProgress()
    with paths.wait_turn(progress), paths.wait_turn(progress):
        assert progress.lines == []


@pytest.mark.usefixtures("empty_cache")
@pytest.mark.parametrize("many", ["0", "65", "two"])
def test_other_numbers_of_guests_are_refused(
    monkeypatch: pytest.MonkeyPatch, many: str
) -> None:
    monkeypatch.setenv("BULKMM_GUESTS", many)
    with pytest.raises(UsageError, match=r"BULKMM_GUESTS=.*: give 1 to 64"):
        paths.guests_at_once()


def test_a_run_removes_what_nobody_has(tmp_path: Path) -> None:
    root = DebianRoot(tmp_path)
    stale = root.var / "runs" / "left"
    stale.mkdir(parents=True)
    (stale / "console").touch()
    # as one that goes between the look at all and the look at it
    (root.var / "runs" / "going").symlink_to("gone")
    with ExitStack() as stack:
        first = stack.enter_context(vm.run_directory(root))
        assert not stale.exists()
        second = stack.enter_context(vm.run_directory(root))
        assert first.is_dir()
        assert second.is_dir()
    assert [path.name for path in (root.var / "runs").iterdir()] == ["going"]


def test_what_a_guest_uses_is_not_cleaned(
    empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cached, "need_root", lambda: None)
    cache = empty_cache
    (cache / "root-1/files").mkdir(parents=True)
    (cache / "root-1/files/console").touch()
    keep_dir = run._make_directory(cache, "a")
    run._keep(cache / "root-1/files", keep_dir)
    with (
        paths.protect_cache(cache),
        pytest.raises(BulkmmError, match=r"a guest .* is running"),
    ):
        prepare.clean_cache(argparse.Namespace())
    assert (cache / "root-1").is_dir()
    prepare.clean_cache(argparse.Namespace())
    assert not (cache / "root-1").exists()
    assert (keep_dir / "console").is_file()


def test_a_file_in_another_folder_is_another_content(tmp_path: Path) -> None:
    names = ("a/one", "a/two", "b/one")
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("text")
    keys = {paths.content_key([tmp_path / n for n in names[k : k + 2]]) for k in (0, 1)}
    (tmp_path / "c").mkdir()
    (tmp_path / "a/two").rename(tmp_path / "c/two")
    keys.add(paths.content_key([tmp_path / "a/one", tmp_path / "c/two"]))
    assert len(keys) == 3
