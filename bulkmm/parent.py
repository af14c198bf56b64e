# SPDX-License-Identifier: GPL-2.0-only
"""A process that does not outlive the one that started it."""

import ctypes
import signal

PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None, use_errno=True)


def end_with_parent() -> None:
    """In the process: have the kernel end it when its parent does."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
