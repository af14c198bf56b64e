# SPDX-License-Identifier: GPL-2.0-only
"""Text for a terminal without the libraries that would take longer than the work."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def columns(rows: Iterable[Sequence[str]], indent: str = "") -> list[str]:
    """Return rows of words as lines, each column as wide as it must be."""
    held = list(rows)
    widths = [max(map(len, column)) for column in zip(*held, strict=True)]
    return [
        indent
        + "  ".join(w.ljust(n) for w, n in zip(row, widths, strict=True)).rstrip()
        for row in held
    ]


def size(nbytes: float) -> str:
    """Return bytes to three digits, such as 1.50 GiB."""
    unit = 0
    while nbytes >= 1000 and unit < len(BINARY) - 1:  # noqa: PLR2004
        nbytes /= 1024
        unit += 1
    return f"{number(nbytes) if unit else int(nbytes)} {BINARY[unit]}"


def number(value: float) -> str:
    """Return a number of at least 0 to three digits, more where they are whole."""
    decimals = 0 if value >= 99.95 else 1 if value >= 9.995 else 2  # noqa: PLR2004
    return f"{value:.{decimals}f}"


def duration(ns: float) -> str:
    """Return a time to three digits, such as 43.1 us."""
    for limit, unit, scale in ((1e3, "ns", 1), (1e6, "us", 1e3), (1e9, "ms", 1e6)):
        if ns < limit:
            return f"{number(ns / scale) if scale > 1 else round(ns)} {unit}"
    return f"{number(ns / 1e9)} s"
