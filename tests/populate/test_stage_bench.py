# SPDX-License-Identifier: GPL-2.0-only
"""`bulkmm bench stage`: every way, from the disk and from the page cache."""

import os
from collections.abc import Sequence
from pathlib import Path

import pytest
import rootlib
from populatelib import MIB, PROGRAM
from programs import run_program

from bench import stage
from bench.stage import CACHED, FROM_DISK
from bulkmm.results.model import Document


def test_every_way_has_the_file_in_memory(tmp_path: Path) -> None:
    rootlib.needs_root()
    (tmp_path / "file").write_bytes(os.urandom(8 * MIB))
    words = ["--file", tmp_path / "file", "--processes", "1", "-o", tmp_path / "r.json"]
    with rootlib.alone_with_the_pool():
        result = run_program([*PROGRAM, "bench", "stage", *words], timeout=120)
    assert result.returncode == 0, result.stdout + result.stderr
    document = Document.read(tmp_path / "r.json")
    ways = {(each.memory, each.use, each.way) for each in document.results}
    rows = {
        *(("hugetlb", "", way) for way in FROM_DISK["hugetlb"]),
        *(("hugetlb", "again", way) for way in CACHED["hugetlb"]),
        *(("4k", "", way) for way in FROM_DISK["4k"]),
        *(("4k", "again", way) for way in CACHED["4k"]),
    }
    assert ways >= rows
    assert all(check.ok for check in document.checks)
    assert len(document.checks) == len(rows)


def test_the_file_is_checked_first(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    for name in ("file", "none"):
        words = ["--file", tmp_path / name]
        result = run_program([*PROGRAM, "bench", "stage", *words], timeout=60)
        assert result.returncode
        assert f"{name}: give a file of whole 2 MiB" in result.stderr


@pytest.mark.parametrize("number", [0, 1, 5])
def test_the_first_process_alone_verifies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """Each has memory back from the host before it is timed, in pages of its kind."""
    (tmp_path / "file").write_bytes(bytes(2 * MIB))
    calls: list[list[str]] = []

    def note(_name: str, command: Sequence[object]) -> str:
        calls.append([str(word) for word in command])
        return ""

    monkeypatch.setattr(stage, "_run", note)
    job = stage.Job(tmp_path / "file", 6)
    assert len(list(stage._process(job, {}, number, ""))) == 1
    back, ways = calls[::2], calls[1::2]
    assert len(ways) == sum(map(len, (*FROM_DISK.values(), *CACHED.values())))
    assert all(("--unverified" in way) == bool(number) for way in ways)
    for before, way in zip(back, ways, strict=True):
        assert before[1] == "back"
        assert f"-{before[2]}" in next(word for word in way if "stage-" in word)
