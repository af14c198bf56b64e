# SPDX-License-Identifier: GPL-2.0-only
"""However a command ends, it ends in a line and a code that the docs have."""

import errno
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any, NoReturn

import pytest
from fakekernel import Fake

from bulkmm import cli
from bulkmm.report import command
from bulkmm.shell.errors import BulkmmError, Exit, GuestError, UsageError

COMMAND = ("-m", "bulkmm.cli")


def run_python(*words: str, **more: Any) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([sys.executable, *words], check=False, **more)


def test_how_programs_end_is_heard_although_its_starter_ignored_that() -> None:
    script = (
        "import subprocess; from bulkmm import cli; cli.main(['--version']); "
        "raise SystemExit(subprocess.call(['sh', '-c', 'exit 5']))"
    )
    argv = ["env", "--ignore-signal=CHLD", sys.executable, "-c", script]
    assert subprocess.call(argv, stdout=subprocess.DEVNULL) == 5


@pytest.fixture
def unread() -> Iterator[int]:
    """Return the end of a pipe whose reader has gone."""
    reader, writer = os.pipe()
    os.close(reader)
    yield writer
    os.close(writer)


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (BulkmmError("no tool"), 3, "bulkmm: no tool"),
        (UsageError("no such thing"), 2, "bulkmm: no such thing"),
        (GuestError("panic"), 4, "bulkmm: panic"),
        (KeyboardInterrupt(), 130, "bulkmm: interrupted"),
        (OSError(errno.ENOSPC, "No space left", "a"), 3, "bulkmm: a: No space left"),
        (MemoryError(), 3, "bulkmm: out of memory"),
        (
            ZeroDivisionError("a\nb"),
            70,
            "bulkmm: internal error: ZeroDivisionError: a b",
        ),
        (RecursionError(), 70, "bulkmm: internal error: RecursionError"),
        (
            ModuleNotFoundError(name="elftools.elf"),
            3,
            "bulkmm: elftools.elf is not installed: run make build",
        ),
        (
            ModuleNotFoundError("no lab.x", name="lab.x"),
            70,
            "bulkmm: internal error: ModuleNotFoundError: no lab.x",
        ),
        (SystemExit(0), 0, ""),
    ],
)
def test_an_error_is_a_line(
    error: BaseException,
    code: int,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(_args: object) -> NoReturn:
        raise error

    monkeypatch.delenv("BULKMM_TRACEBACK", raising=False)
    monkeypatch.setattr(command, "run_show", fail)
    assert cli.main(["show", "x.json"]) == code
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith(message)
    assert output.err.count("\n") == (1 if message else 0)


def test_a_traceback_only_if_asked_for() -> None:
    script = (
        "import sys; from bulkmm import cli; from bulkmm.report import command; "
        "command.run_show = lambda args: 1 / 0; sys.exit(cli.main(['show', 'x']))"
    )
    for value, text in (("", b"BULKMM_TRACEBACK=1"), ("1", b"Traceback")):
        environment = {**os.environ, "BULKMM_TRACEBACK": value}
        result = run_python("-c", script, capture_output=True, env=environment)
        assert text in result.stderr
        assert (b"Traceback" in result.stderr) is bool(value)
        assert result.returncode == (1 if value else Exit.INTERNAL)


@pytest.mark.parametrize(
    "words", ["--help", "status", "lab list", "doctor", "nothing", "watch"]
)
@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_reader_that_has_gone(
    loaded: Fake, unread: int, words: str, stream: str
) -> None:
    """The command ends as with one, in the same code."""
    argv = words.split()
    if words in ("status", "doctor", "watch"):
        argv += ["--root", str(loaded.root)]
    argv_once = [*argv, *(["--count", "1"] if words == "watch" else [])]
    whole = run_python(*COMMAND, *argv_once, capture_output=True)
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, stream: unread}
    result = run_python(
        *COMMAND, *(argv if stream == "stdout" else argv_once), **streams
    )
    assert not re.search(b"Traceback|Exception ignored", result.stderr or b"")
    assert result.returncode == whole.returncode
    if stream == "stderr" and words != "watch":
        assert result.stdout == whole.stdout


def test_a_verdict_that_nobody_reads(unread: int) -> None:
    script = "import sys; from bulkmm.results.table import print_lines; "
    script += "from bulkmm import cli; from bulkmm.report import compare; "
    script += "compare.run_compare = lambda args: print_lines('ab' * 9) or 1; "
    script += "sys.exit(cli.main(['compare', 'a.json', 'b.json']))"
    assert run_python("-c", script, stdout=unread).returncode == Exit.VERDICT


def test_progress_that_nobody_reads(unread: int) -> None:
    script = (
        "from bulkmm.shell import streams; from bulkmm.shell.progress import Progress; "
    )
    script += "streams.replace_streams(); progress = Progress(); "
    script += "[progress.note('a') for _ in range(9)]; print('done')"
    result = run_python("-c", script, stdout=subprocess.PIPE, stderr=unread)
    assert (result.returncode, result.stdout) == (0, b"done\n")


def test_a_terminal_that_knows_no_letters_but_ascii(loaded: Fake) -> None:
    loaded.write("/proc/sys/kernel/osrelease", "7.3-\N{SNOWMAN}")
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}
    words = ["status", "--root", str(loaded.root)]
    more = {"capture_output": True, "env": {**os.environ, **ascii_only}}
    result = run_python(*COMMAND, *words, **more)
    assert result.returncode == Exit.OK
    assert b"on 7.3-?" in result.stdout


def test_without_a_word_it_helps(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == Exit.OK
    assert "COMMAND" in capsys.readouterr().out


@pytest.mark.parametrize("words", ["", "status", "pool grow", "help"])
def test_help_is_a_command(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["help", *words.split()]) == Exit.OK
    text = capsys.readouterr().out
    assert cli.main([*words.replace("help", "").split(), "--help"]) == Exit.OK
    assert capsys.readouterr().out == text
