# SPDX-License-Identifier: GPL-2.0-only
"""`bulkmm bench stage`: every way, from the disk and from the page cache."""

import os
from pathlib import Path

import rootlib
from populatelib import MIB, PROGRAM
from programs import run_program

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
