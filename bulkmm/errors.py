# SPDX-License-Identifier: GPL-2.0-only
"""What can go wrong, and the exit code that says so."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """Exit codes of the bulkmm command (documented in docs/command.md)."""

    OK = 0
    VERDICT = 1  # it ran, and a check failed
    USAGE = 2  # unknown scenario, kernel, backend, bad size
    ENVIRONMENT = 3  # permission, disk, network or a tool is missing
    GUEST = 4  # panic, time-out, missing end marker, bad kernel log
    INTERNAL = 70  # a fault of bulkmm's own; what sysexits.h has for it
    INTERRUPTED = 130


class BulkmmError(Exception):
    """An error that is shown to the user as one clear line."""

    exit = Exit.ENVIRONMENT


class UsageError(BulkmmError):
    """What the user asked for does not exist or makes no sense."""

    exit = Exit.USAGE


class GuestError(BulkmmError):
    """The guest did not finish: panic, time-out, or a bad kernel log."""

    exit = Exit.GUEST
