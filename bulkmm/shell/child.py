# SPDX-License-Identifier: GPL-2.0-only
"""Child processes that never outlive the lab.

A child runs in its own session, so that Ctrl-C reaches only the lab, which then
kills the child's whole group. If the lab itself is killed, the kernel ends the
child (parent-death signal), and ``--kill-child`` ends what the child started in
its PID namespace.
"""

import math
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from tempfile import TemporaryFile
from typing import IO, Any

from bulkmm.shell.errors import BulkmmError

ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "LC_ALL": "C.UTF-8",
    "HOME": "/root",
    "DEBIAN_FRONTEND": "noninteractive",
}
TIED = ("setpriv", "--pdeathsig", "SIGKILL")
ALONE = (*TIED, "unshare", "--mount", "--pid", "--fork", "--kill-child")
SHORTEST, LONGEST = 0.0005, 0.05  # s between looks at whether a child runs on
WRAPPERS = {*ALONE, "chroot"}  # what starts a program, and is not what failed


@contextmanager
def start_child(
    argv: Sequence[str], output: IO[str]
) -> Iterator[subprocess.Popen[str]]:
    """Start a child whose whole group is killed when the block exits."""
    try:
        child = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=ENVIRONMENT,
            start_new_session=True,
            text=True,
        )
    except FileNotFoundError as error:
        raise BulkmmError(f"{error.filename} is not installed") from error
    try:
        yield child
    finally:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        wait_child(child)


def wait_child(child: subprocess.Popen[Any], limit: float = math.inf) -> int | None:
    """Wait for a child for this many seconds; return its code, None if it runs on.

    After an interrupt, too: one that reaches Popen.wait() can leave its lock taken, and
    the next call waits for that, or never sees the child end (subprocess.py, 3.11).
    """
    end, pause = time.monotonic() + limit, SHORTEST
    while child.returncode is None:
        try:
            pid, status = os.waitpid(child.pid, os.WNOHANG)
        except ChildProcessError:  # the interrupt came between this call and its code
            child.returncode = -signal.SIGINT
            break
        if pid:
            child.returncode = os.waitstatus_to_exitcode(status)
        elif time.monotonic() >= end:
            break
        else:
            time.sleep(pause)
            pause = min(2 * pause, LONGEST)
    return child.returncode


def run_child(argv: Sequence[str], limit: float) -> str:
    """Run a child to its end and return its output; raise if it fails."""
    with TemporaryFile("w+", encoding="utf-8", errors="replace") as output:
        with start_child(argv, output) as child:
            code = wait_child(child, limit)
        output.seek(0)
        text = output.read()
    if code != 0:
        raise ChildError(argv, code, text)
    return text


@contextmanager
def explain_failure(problem: str, *, whole: bool = False) -> Iterator[None]:
    """Explain what a failed child could not do; ``whole``: with its full output."""
    try:
        yield
    except ChildError as error:
        reason = f"\n{error.output}" if whole else f" {error}"
        raise BulkmmError(f"{problem}:{reason}") from error


class ChildError(BulkmmError):
    """A child process failed; carries its output."""

    def __init__(self, argv: Sequence[str], code: int | None, output: str) -> None:
        lines = output.strip().splitlines() or ["(it said nothing)"]
        self.timed_out = code is None
        how = "ran out of time" if self.timed_out else f"failed with code {code}"
        words = (a for a in argv if not a.startswith(("-", "/")))
        name = next((word for word in words if word not in WRAPPERS), argv[0])
        super().__init__(f"{name} {how}: {lines[-1]}")
        self.output = output
