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
                error.filename = "standard output"
                raise
        return memoryview(data).nbytes


def replace_streams() -> None:
    """Replace the standard streams; those that the caller closed lead nowhere."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w"))
        elif stream is getattr(sys, f"__{name}__"):
            raw = Stream(stream.fileno(), "w", closefd=False)
            wrapper = io.TextIOWrapper(
                io.BufferedWriter(raw),
                stream.encoding,
                errors="replace",  # a name that the terminal cannot show
                line_buffering=stream.line_buffering,
                write_through=stream.write_through,
            )
            setattr(sys, name, wrapper)


def is_unread() -> bool:
    """Return whether the reader of standard output has gone."""
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    return isinstance(raw, Stream) and raw.broken
