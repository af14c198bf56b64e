# SPDX-License-Identifier: GPL-2.0-only
"""What ``-o`` names is written, whatever it is; a result is not lost by it."""

import argparse
import os
import stat
import sys
import tempfile
import threading
from pathlib import Path

import pytest
from programs import run_program

from bulkmm import cli
from bulkmm.results import finish
from bulkmm.results.model import Check, Document
from bulkmm.shell import files
from bulkmm.shell.errors import BulkmmError, Exit

NOBODY = 65534


def test_a_pipe_is_written_to_and_stays(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()), daemon=True)
    reader.start()
    files.need_place(pipe, "it")
    files.write_file(pipe, "text", "it")
    assert pipe.is_fifo()
    reader.join(10)
    assert read == ["text"]


def test_a_device_stays() -> None:
    """Another node of the null device, so that a failure costs nothing."""
    device = f"/dev/shm/bulkmm-test-{os.getpid()}"  # noqa: S108
    try:
        os.mknod(device, 0o600 | 0o020000, os.stat("/dev/null").st_rdev)  # noqa: PTH116
    except PermissionError:
        pytest.skip("no permission to make a device")
    try:
        assert cli.main(["status", "-o", device]) in (Exit.OK, Exit.VERDICT)
        assert not os.path.isfile(device)  # noqa: PTH113
    finally:
        os.unlink(device)  # noqa: PTH108


def test_a_link_stays_and_its_file_is_replaced(tmp_path: Path) -> None:
    directory, file, link = (tmp_path / name for name in ("there", "there/a", "link"))
    directory.mkdir()
    file.write_text("old")
    link.symlink_to(file)
    files.write_file(link, "new", "it")
    assert link.is_symlink()
    assert file.read_text() == "new"
    assert [one.name for one in directory.iterdir()] == ["a"]


def test_a_file_keeps_its_mode(tmp_path: Path) -> None:
    file = tmp_path / "a"
    before = os.umask(0o077)
    try:
        files.write_file(file, "new", "it")
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        file.chmod(0o644)
        files.write_file(file, "newer", "it")
    finally:
        os.umask(before)
    assert stat.S_IMODE(file.stat().st_mode) == 0o644
    assert [one.name for one in tmp_path.iterdir()] == ["a"]


def test_what_others_wait_for_is_not_written_to(tmp_path: Path) -> None:
    """Nor is what another writer of the same file has begun."""
    victim, file = tmp_path / "victim", tmp_path / "a"
    victim.write_text("kept")
    (tmp_path / ".a.part").symlink_to(victim)
    files.write_file(file, "new", "it")
    assert (victim.read_text(), file.read_text()) == ("kept", "new")
    assert (tmp_path / ".a.part").is_symlink()


@pytest.mark.skipif(os.geteuid() != 0, reason="gives up its rights")
def test_a_directory_without_permission_is_refused_before_the_work() -> None:
    """In one that everybody can reach."""
    with tempfile.TemporaryDirectory(prefix="bulkmm-test-") as public:
        Path(public).chmod(0o555)
        os.seteuid(NOBODY)
        try:
            with pytest.raises(BulkmmError, match="no permission"):
                files.need_place(Path(public) / "a", "it")
        finally:
            os.seteuid(0)


def finish_write(
    file: Path, calls: list[str], *, fails: bool = False, ok: bool = True
) -> int:
    checks = [Check("a", ok, detail="")]
    machine = {"accelerator": "native", "cpu": {}}
    document = Document(machine=machine, checks=checks)

    def show() -> None:
        calls.append("table")
        if fails:
            raise OSError

    args = argparse.Namespace(argv=[], output=file, json=False)
    args.submit_file = file.with_name("submitted") if ok else None
    return finish.finish_run(args, document, show)


def test_a_result_that_cannot_be_written_is_shown(tmp_path: Path) -> None:
    calls: list[str] = []
    with pytest.raises(BulkmmError, match="cannot be written"):
        finish_write(tmp_path / "no" / "file", calls)
    assert calls == ["table"]


def test_a_result_that_cannot_be_shown_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(OSError):  # noqa: PT011 - as it was raised
        finish_write(tmp_path / "file", [], fails=True)
    for name in ("file", "submitted"):
        assert (tmp_path / name).read_text().startswith('{"schema_version"')
    with pytest.raises(OSError):  # noqa: PT011 - as it was raised
        finish_write(tmp_path / "file", [], fails=True, ok=False)
    assert "check failed: a" in capsys.readouterr().err


FULL = "standard output: No space left on device"


@pytest.mark.parametrize(
    ("words", "code", "stderr"),
    [
        ("lab list >&-", Exit.OK, ""),
        ("nosuch 2>&-", Exit.USAGE, ""),
        ("status --json --nosuch >&- 2>&-", Exit.USAGE, ""),
        ("lab list >/dev/full", Exit.ENVIRONMENT, f"bulkmm: {FULL}\n"),
        ("lab list >/dev/null 2>/dev/full", Exit.OK, ""),
        ("status --json --nosuch >/dev/full 2>/dev/full", Exit.USAGE, ""),
    ],
)
def test_a_stream_that_is_closed_or_full(words: str, code: Exit, stderr: str) -> None:
    result = run_program(["sh", "-c", f'"$0" -m bulkmm.cli {words}', sys.executable])
    assert (result.returncode, result.stderr) == (code, stderr)
