# SPDX-License-Identifier: GPL-2.0-only
"""`bulkmm stage`: to files, to a memfd that others map, and what is refused."""

import json
import mmap
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import rootlib
from populatelib import MIB, PROGRAM
from programs import run_command, run_program

STAGE = [*PROGRAM, "stage"]


def run_stage(
    *words: object, code: int = 0, inside: Sequence[str] = ()
) -> subprocess.CompletedProcess[str]:
    return run_command([*inside, *STAGE, *words], code=code)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    place = tmp_path / "model"
    place.mkdir()
    (place / "part-1").write_bytes(os.urandom(3 * MIB + 5))
    (place / "part-2").write_bytes(os.urandom(MIB))
    (place / "empty").touch()
    return place


@contextmanager
def staged_memfd(*words: object) -> Iterator[tuple[subprocess.Popen[str], Any]]:
    """Run it with a memfd until the block ends; yield it and what it printed."""
    command = list(map(str, [*STAGE, *words, "--json"]))
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            (record,) = json.loads(process.stdout.readline())["stage"]
            yield process, record
        finally:
            process.kill()


def test_each_becomes_a_file_of_a_directory(shm: Path, model: Path) -> None:
    """With the same name and size; only the owner may read it."""
    run_stage(*sorted(model.iterdir()), "--to", shm)
    for path in model.iterdir():
        copy = shm / path.name
        assert copy.read_bytes() == path.read_bytes()
        assert copy.stat().st_mode & 0o7777 == 0o400


def test_all_become_a_single_file(shm: Path, model: Path) -> None:
    paths = sorted(model.iterdir())
    lines = run_stage(*paths, "--to", shm / "all").stdout.splitlines()
    assert lines[1] == f"  offset 0, 0 bytes: {model / 'empty'}"
    assert lines[2].startswith("  offset 0, 3145733 bytes: ")
    assert lines[3].startswith("  offset 3149824, 1048576 bytes: ")
    content = (shm / "all").read_bytes()
    assert content[:3145733] == (model / "part-1").read_bytes()
    assert content[3149824:] == (model / "part-2").read_bytes()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_memfd_is_there_until_it_ends(model: Path, number: signal.Signals) -> None:
    with staged_memfd(model / "part-1") as (process, record):
        with Path(record["path"]).open("rb") as file:
            assert file.read() == (model / "part-1").read_bytes()
            mapping = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
        with pytest.raises(OSError, match="not permitted"):
            Path(record["path"]).write_bytes(b"")
        process.send_signal(number)
        assert process.wait(10) == (-number if number == signal.SIGKILL else 0)
        assert not Path(record["path"]).exists()
        assert mapping[:] == (model / "part-1").read_bytes()  # its user keeps it


def test_what_maps_files_reads_a_memfd_by_a_link(model: Path, tmp_path: Path) -> None:
    """Its size is that of the file, to the byte, as safetensors wants it."""
    with staged_memfd(model / "part-1") as (_, record):
        (tmp_path / "link").symlink_to(record["path"])
        result = run_program(["cmp", tmp_path / "link", model / "part-1"], timeout=60)
        assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("wait", [0.0, 0.2, 0.4])
def test_killed_at_any_time_it_leaves_nothing(shm: Path, wait: float) -> None:
    """Or, if it was done by then, all of it."""
    source = shm / "source"
    source.write_bytes(b"x" * (96 * MIB))
    (shm / "to").mkdir()
    command = [*STAGE, str(source), "--to", str(shm / "to")]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        time.sleep(wait)
        process.kill()
    sizes = [path.stat().st_size for path in (shm / "to").iterdir()]
    assert sizes in ([], [96 * MIB])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "stage: give a FILE"),
        (["MODEL/none"], "MODEL/none: No such file or directory"),
        (["MODEL"], "MODEL is not a file"),
        (["MODEL/part-1", "MODEL/../model/part-1", "--to", "SHM"], "same name"),
        (["MODEL/part-1", "--to", "SHM/none/a"], "SHM/none"),
        (["MODEL/part-1", "--to", "SHM/old"], "SHM/old exists already"),
        (["MODEL/part-1", "--to", "SHM", "--huge", "2M"], "only applies to a memfd"),
        (["MODEL/part-1", "--to", "/proc"], "/proc is on proc: give a place on tmpfs"),
        (["MODEL/part-1", "--huge", "3M"], "--huge 3M: not a page size"),
        (["MODEL/part-1", "--node", "999"], "there is no memory node 999"),
    ],
)
def test_what_is_refused(
    shm: Path, model: Path, words: list[str], message: str
) -> None:
    (shm / "old").touch()
    arguments = [
        word.replace("MODEL", str(model)).replace("SHM", str(shm)) for word in words
    ]
    wanted = message.replace("MODEL", str(model)).replace("SHM", str(shm))
    code = run_program([*STAGE, *arguments], timeout=60)
    assert code.returncode
    assert wanted in code.stderr
    assert [path.name for path in shm.iterdir()] == ["old"]


def test_a_file_system_or_a_cgroup_that_is_full(tmp_path: Path) -> None:
    """Seen before anything is read, or, where that cannot be, met."""
    source = tmp_path / "source"
    source.touch()
    os.truncate(source, 128 * MIB)
    words = source, "--to"
    with (
        rootlib.mount_memory("tmpfs", "size=64m", tmp_path / "m") as small,
        rootlib.mount_memory("tmpfs", "size=1g", tmp_path / "n") as large,
        rootlib.full_cgroup(96 * MIB) as inside,
    ):
        error = run_stage(*words, small, code=3).stderr
        assert f"{small}/source: 128 MiB more needed, its file system has" in error
        error = run_stage(*words, large, code=3, inside=inside).stderr
        assert "/memory.limit_in_bytes leaves" in error
        failed = run_stage(*words, large, code=3, inside=[*inside, *rootlib.HIDDEN])
        # at byte 0 it is not told where
        where = rf"{re.escape(str(source))}(?: \(at byte \d+\))?"
        assert re.search(f"{where}: no memory: of the cgroup", failed.stderr)
        assert [*small.iterdir()] == [*large.iterdir()] == []
        assert not os.statvfs(large).f_blocks - os.statvfs(large).f_bfree


@pytest.mark.parametrize(
    ("kind", "words", "message"),
    [
        ("ramfs", [], "is on ramfs: give a place on tmpfs or hugetlbfs"),
        ("hugetlbfs", ["--huge", "thp"], "hugetlbfs, which is huge without"),
    ],
)
def test_file_systems_that_are_refused(
    tmp_path: Path, model: Path, kind: str, words: list[str], message: str
) -> None:
    rootlib.needs_root()
    place = tmp_path / "mount"
    place.mkdir()
    subprocess.run(["mount", "-t", kind, "none", place], check=True)
    try:
        result = run_stage(model / "part-1", "--to", place, *words, code=2)
    finally:
        subprocess.run(["umount", place], check=True)
    assert message in result.stderr
