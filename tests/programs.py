# SPDX-License-Identifier: GPL-2.0-only
"""How tests run programs."""

import subprocess
from collections.abc import Iterable
from typing import Any

# s; below pytest's own limit of a test, which would not show what was printed
LONGEST = 1100


def completed(
    words: Iterable[object], *, check: bool = False, timeout: int = LONGEST, **more: Any
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, whatever that is, and keep what it prints."""
    argv = [*map(str, words)]
    more |= {"capture_output": True, "text": True}
    return subprocess.run(argv, check=check, timeout=timeout, **more)
