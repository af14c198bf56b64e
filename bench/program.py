# SPDX-License-Identifier: GPL-2.0-only
"""The native bench program: its path and its output."""

import json
import os
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from bulkmm.shell.ending import LIBC, end_with_parent
from bulkmm.shell.errors import BulkmmError

PROGRAM = Path(__file__).parents[1] / "build" / "native" / "bmm-bench"
LIST_TIMEOUT = 60  # seconds
PR_SET_THP_DISABLE = 41
# ways of bench/populate_python.py, which nobody else imports: numpy takes long to load
FILL, LIBRARY = "python-fill", "python"
WRONG_OUTPUT = 1  # its exit code when a variant wrote something wrong


def find_program() -> Path:
    """Return the program: BULKMM_BENCH, else the one built in the checkout."""
    forced = os.environ.get("BULKMM_BENCH")
    path = Path(forced) if forced else PROGRAM
    if not (path.is_file() and os.access(path, os.X_OK)):
        hint = "BULKMM_BENCH is no program" if forced else "run make build"
        raise BulkmmError(f"the bench program was not found: {hint}")
    return path


def run_program(
    command: Sequence[object],
    limit: float,
    name: str,
    late: str,
    *,
    environment: dict[str, str] | None = None,
    prepare: Callable[[], None] = end_with_parent,
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end; ``late`` describes a time-out in the error.

    ``prepare`` is called in its process, and must have it end with the parent.
    """
    try:
        return subprocess.run(
            list(map(str, command)),
            capture_output=True,
            text=True,
            timeout=limit,
            check=False,
            env=environment,
            # an interrupt within Popen() leaves nobody who would end it
            preexec_fn=prepare,
        )
    except OSError as error:
        raise BulkmmError(f"{name} does not run: {error}") from error
    except subprocess.TimeoutExpired as error:
        raise BulkmmError(late) from error


def disable_huge_pages() -> None:
    """In the process: have the kernel use no transparent huge pages, even later."""
    LIBC.prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0)


def list_backends(subject: str) -> list[str]:
    """Return the backends of a subject on this CPU, slowest first."""
    late = f"the bench program listed nothing in {LIST_TIMEOUT} s"
    completed = run_program(
        [find_program(), "--list", subject], LIST_TIMEOUT, "the bench program", late
    )
    if completed.returncode:
        raise BulkmmError(f"the bench program ended with {completed.returncode}")
    return completed.stdout.split()


def parse_event(line: str) -> dict[str, Any]:
    """Return the event in a line of the program."""
    try:
        value = json.loads(line)
    except json.JSONDecodeError:
        value = None
    if not isinstance(value, dict):
        raise BulkmmError(f"the bench program printed no event: {line.strip()[:80]}")
    return value


def read_events(arguments: list[str], padding: str = "") -> Iterator[dict[str, Any]]:
    """Run the program and yield its JSON lines as they come.

    Padding in the environment shifts its stack.
    """
    command = [str(find_program()), *arguments]
    environment = {**os.environ, "BULKMM_BENCH_PADDING": padding}
    try:
        child = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
            preexec_fn=end_with_parent,  # noqa: PLW1509 - no threads here
        )
    except OSError as error:
        raise BulkmmError(f"the bench program does not run: {error}") from error
    with child:
        try:
            yield from map(parse_event, child.stdout or ())
        except BaseException:
            child.kill()
            raise
    if child.returncode not in (0, WRONG_OUTPUT):
        raise BulkmmError(f"the bench program ended with {child.returncode}")
