# SPDX-License-Identifier: GPL-2.0-only
"""What a guest's kernel log must not contain."""

from __future__ import annotations

import re

BAD = re.compile(
    r"BUG:|BUG at|WARNING:|Oops|Call Trace|Kernel panic|KASAN|KCSAN|UBSAN"
    r"|general protection|unable to handle|double fault|invalid opcode"
    r"|possible (?:recursive|circular) locking|suspicious RCU|lock held when"
    r"|INFO: task .* blocked|hung_task|rcu.*(?:stall|self-detected)"
    r"|soft lockup|hard LOCKUP|refcount_t|unchecked MSR|Bad page state"
    r"|list_(?:add|del) corruption|Out of memory|disagrees about version"
)
# taint that loading a module built outside the tree and unsigned sets
ALLOWED_TAINT = 1 << 12 | 1 << 13


def search(log: str) -> list[str]:
    """Return the lines of a kernel log that must not be there."""
    return [line for line in log.splitlines() if BAD.search(line)]


def last_lines(log: str, count: int = 15) -> str:
    """Return the end of a log, for an error message."""
    return "\n".join(f"  {line}" for line in log.strip().splitlines()[-count:])


def new_taint(before: int, after: int) -> int:
    """Return the taint bits that a run set and loading modules does not."""
    return after & ~before & ~ALLOWED_TAINT
