# SPDX-License-Identifier: GPL-2.0-only
"""How commands end: their programs with them, and with nothing left half done."""

import ctypes
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None, use_errno=True)
SIGNALS = signal.SIGINT, signal.SIGTERM, signal.SIGHUP
Interruptible = Callable[[], AbstractContextManager[None]]


def end_with_parent(how: signal.Signals = signal.SIGKILL) -> None:
    """In the process: have the kernel end it when its parent does."""
    LIBC.prctl(PR_SET_PDEATHSIG, how, 0, 0, 0)


@contextmanager
def undisturbed() -> Iterator[Interruptible]:
    """Hold the signals that end the command until the block ends.

    Yield what opens a part of the block to them. The first that comes there interrupts
    it; those after it are dropped, so that what it makes necessary is done in peace.
    """
    came: list[int] = []
    state = ""

    def heard(number: int, _frame: object) -> None:
        nonlocal state
        came.append(number)
        if state == "open":
            state = "interrupted"
            raise KeyboardInterrupt

    @contextmanager
    def interruptible() -> Iterator[None]:
        nonlocal state
        state = "open"
        try:
            if came:
                heard(came[0], None)
            yield
        finally:
            state = state.replace("open", "")

    usual = {one: signal.getsignal(one) for one in SIGNALS}
    try:
        for one, handler in usual.items():
            if handler is not signal.SIG_IGN:
                # not by a mask: other threads would hear them, and children inherit it
                signal.signal(one, heard)
        yield interruptible
    finally:
        for one, handler in usual.items():
            signal.signal(one, handler)
        if came and state != "interrupted":
            signal.raise_signal(came[0])
