# SPDX-License-Identifier: GPL-2.0-only
"""Standard output and error that do not end a command whose reader has gone."""

from __future__ import annotations

import io
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


STDERR = 2


class Stream(io.FileIO):
    """Drops what nobody reads: the command finishes, with its own exit code.

    An error of another kind is raised once, for what reports it must not fail too.
    """

    broken = False

    def write(self, data: ReadableBuffer, /) -> int:
        """Write it all, or nothing once a write has failed."""
        try:
            if not self.broken:
                return super().write(data)
        except OSError as error:
            self.broken = True
            if not isinstance(error, BrokenPipeError) and self.fileno() != STDERR:
                raise
        return memoryview(data).nbytes


def replace() -> None:
    """Replace the standard streams; those that the caller closed lead nowhere."""
    for name in ("stdout", "stderr"):
        held = getattr(sys, name)
        if held is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w"))
        elif held is getattr(sys, f"__{name}__"):
            raw = Stream(held.fileno(), "w", closefd=False)
            made = io.TextIOWrapper(
                io.BufferedWriter(raw),
                held.encoding,
                errors="replace",  # a name that the terminal cannot show
                line_buffering=held.line_buffering,
                write_through=held.write_through,
            )
            setattr(sys, name, made)


def unread() -> bool:
    """Return whether the reader of standard output has gone."""
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    return isinstance(raw, Stream) and raw.broken
