# SPDX-License-Identifier: GPL-2.0-only
"""How tests run programs."""

import os
import pty
import subprocess
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

# s; below pytest's own limit of a test, which would not show what was printed
LONGEST = 1100


def run_program(
    words: Iterable[object], *, check: bool = False, timeout: int = LONGEST, **more: Any
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, whatever that is, and keep what it prints."""
    argv = [*map(str, words)]
    more |= {"capture_output": True, "text": True}
    return subprocess.run(argv, check=check, timeout=timeout, **more)


def run_command(
    words: Iterable[object], *, code: int = 0, timeout: int = 60, **more: Any
) -> subprocess.CompletedProcess[str]:
    """Run a command that must end with a code; an error is a line."""
    result = run_program(words, timeout=timeout, **more)
    assert result.returncode == code, result.stdout + result.stderr
    assert not code or result.stderr.count("\n") == 1, result.stderr
    return result


def on_terminal(words: Iterable[object], **more: Any) -> tuple[int, bytes]:
    """Run a program on a terminal; return its exit code and what it shows there."""
    controller, terminal = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    more = {"stdout": terminal, "stderr": terminal, "env": environment} | more
    output = b""
    with subprocess.Popen([*map(str, words)], **more) as running:
        os.close(terminal)
        with suppress(OSError):  # the other end is closed
            while part := os.read(controller, 65536):
                output += part
    os.close(controller)
    return running.returncode, output
