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
from bulkmm.errors import BulkmmError, Exit, GuestError, UsageError
from bulkmm.report import command

COMMAND = ("-m", "bulkmm.cli")


def ran(*words: str, **more: Any) -> subprocess.CompletedProcess[bytes]:
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
    ours, theirs = os.pipe()
    os.close(ours)
    yield theirs
    os.close(theirs)


@pytest.mark.parametrize(
    ("error", "code", "says"),
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
        (SystemExit(0), 0, ""),
    ],
)
def test_an_error_is_a_line(
    error: BaseException,
    code: int,
    says: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(_args: object) -> NoReturn:
        raise error

    monkeypatch.delenv("BULKMM_TRACEBACK", raising=False)
    monkeypatch.setattr(command, "run_show", fail)
    assert cli.main(["show", "x.json"]) == code
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(says)
    assert said.err.count("\n") == (1 if says else 0)


def test_a_traceback_only_if_asked_for() -> None:
    script = (
        "import sys; from bulkmm import cli; from bulkmm.report import command; "
        "command.run_show = lambda args: 1 / 0; sys.exit(cli.main(['show', 'x']))"
    )
    for asked, said in (("", b"BULKMM_TRACEBACK=1"), ("1", b"Traceback")):
        environment = {**os.environ, "BULKMM_TRACEBACK": asked}
        done = ran("-c", script, capture_output=True, env=environment)
        assert said in done.stderr
        assert (b"Traceback" in done.stderr) is bool(asked)
        assert done.returncode == (1 if asked else Exit.INTERNAL)


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
    counted = [*argv, *(["--count", "1"] if words == "watch" else [])]
    whole = ran(*COMMAND, *counted, capture_output=True)
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, stream: unread}
    done = ran(*COMMAND, *(argv if stream == "stdout" else counted), **streams)
    assert not re.search(b"Traceback|Exception ignored", done.stderr or b"")
    assert done.returncode == whole.returncode
    if stream == "stderr" and words != "watch":
        assert done.stdout == whole.stdout


def test_a_verdict_that_nobody_reads(unread: int) -> None:
    script = "import sys; from bulkmm.sheet import print_lines; "
    script += "from bulkmm import cli; from bulkmm.report import compare; "
    script += "compare.run_compare = lambda args: print_lines('ab' * 9) or 1; "
    script += "sys.exit(cli.main(['compare', 'a.json', 'b.json']))"
    assert ran("-c", script, stdout=unread).returncode == Exit.VERDICT


def test_progress_that_nobody_reads(unread: int) -> None:
    script = "from bulkmm import streams; from bulkmm.lab.progress import Progress; "
    script += "streams.replace(); shown = Progress(); "
    script += "[shown.note('a') for _ in range(9)]; print('done')"
    done = ran("-c", script, stdout=subprocess.PIPE, stderr=unread)
    assert (done.returncode, done.stdout) == (0, b"done\n")


def test_a_terminal_that_knows_no_letters_but_ascii(loaded: Fake) -> None:
    loaded.write("/proc/sys/kernel/osrelease", "7.3-\N{SNOWMAN}")
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}
    words = ["status", "--root", str(loaded.root)]
    more = {"capture_output": True, "env": {**os.environ, **ascii_only}}
    done = ran(*COMMAND, *words, **more)
    assert done.returncode == Exit.OK
    assert b"on 7.3-?" in done.stdout


def test_without_a_word_it_helps(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == Exit.OK
    assert "COMMAND" in capsys.readouterr().out
