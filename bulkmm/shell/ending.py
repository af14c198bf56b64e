# SPDX-License-Identifier: GPL-2.0-only
"""How commands end: their programs with them, and with nothing left half done."""

import ctypes
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

PR_SET_PDEATHSIG = 1
# of this process, and the value at which the OOM killer takes it before all others
OOM_SCORE, KILLED_FIRST = Path("/proc/self/oom_score_adj"), "1000"
LIBC = ctypes.CDLL(None, use_errno=True)
SIGNALS = signal.SIGINT, signal.SIGTERM, signal.SIGHUP
Interruptible = Callable[[], AbstractContextManager[None]]


def end_with_parent() -> None:
    """In the process: have the kernel end it when its parent does."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


class _Gate:
    """A handler that raises only where it may, and once."""

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self.open = self.raised = False

    def __call__(self, number: int, _frame: object) -> None:
        """Handle a signal."""
        self.numbers.append(number)
        if self.open and not self.raised:
            self.raised = True
            raise KeyboardInterrupt

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Let a signal interrupt the block, also one that came before."""
        self.open = True
        try:
            if self.numbers:
                self(self.numbers[0], None)
            yield
        finally:
            self.open = False


@contextmanager
def hold_signals() -> Iterator[Interruptible]:
    """Hold the signals that end the command until the block ends.

    Yield what opens a part of the block to them. The first that comes there interrupts
    it; those after it are dropped, so that what it makes necessary is done in peace.
    """
    gate = _Gate()
    usual = {number: signal.getsignal(number) for number in SIGNALS}
    try:
        for number, handler in usual.items():
            if handler is not signal.SIG_IGN:
                # not by a mask: other threads would hear them, and children inherit it
                signal.signal(number, gate)
        yield gate.interruptible
    finally:
        for number, handler in usual.items():
            signal.signal(number, handler)
            if gate.raised and isinstance(handler, _Gate):
                handler.raised = True
        if gate.numbers and not gate.raised:
            signal.raise_signal(gate.numbers[0])
