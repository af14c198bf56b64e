# SPDX-License-Identifier: GPL-2.0-only
"""Errors and their exit codes."""

from collections.abc import Iterable
from enum import IntEnum

MOST_NAMES = 16  # that an error lists


class Exit(IntEnum):
    """Exit codes of the bulkmm command (documented in docs/command.md)."""

    OK = 0
    VERDICT = 1  # it ran, but a check failed
    USAGE = 2  # unknown scenario, kernel, backend, bad size
    ENVIRONMENT = 3  # permission, disk, network or a tool is missing
    GUEST = 4  # panic, time-out, missing end marker, bad kernel log
    INTERNAL = 70  # a bug in bulkmm; EX_SOFTWARE of sysexits.h
    INTERRUPTED = 130


class BulkmmError(Exception):
    """An error that is shown to the user as one clear line."""

    exit = Exit.ENVIRONMENT


class UsageError(BulkmmError):
    """The user's request is unknown or senseless."""

    exit = Exit.USAGE


def unknown_word(
    kind: str, name: str, choices: Iterable[str], command: str = ""
) -> UsageError:
    """Return the error for an unknown word, suggesting the closest known one.

    ``command`` lists all of them; if there are many, the error does not.
    """
    from difflib import get_close_matches

    names = list(choices)
    if close := get_close_matches(name, names, n=1):
        hint = f": did you mean {close[0]}?"
    elif len(names) > MOST_NAMES:
        hint = f" (see: {command})" if command else ""
    else:
        hint = f": there are {', '.join(names) or 'none'}"
    return UsageError(f"unknown {kind} {name}{hint}")


class GuestError(BulkmmError):
    """The guest did not finish: panic, time-out, or a bad kernel log."""

    exit = Exit.GUEST


class InterruptedWorkError(BulkmmError):
    """Ctrl-C; the message says what was done."""

    exit = Exit.INTERRUPTED
