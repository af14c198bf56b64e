# SPDX-License-Identifier: GPL-2.0-only
"""Text for a terminal, without libraries that load slower than the work takes."""

from collections.abc import Iterable, Sequence

BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def align_columns(rows: Iterable[Sequence[str]], indent: str = "") -> list[str]:
    """Return rows of words as lines with columns of minimal width."""
    table = list(rows)
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return [
        indent
        + "  ".join(w.ljust(n) for w, n in zip(row, widths, strict=True)).rstrip()
        for row in table
    ]


def format_size(nbytes: float) -> str:
    """Format bytes to three digits, such as 1.50 GiB, but 64 KiB if whole."""
    unit = 0
    while nbytes >= 1000 and unit < len(BINARY) - 1:  # noqa: PLR2004
        nbytes /= 1024
        unit += 1
    whole = nbytes == int(nbytes)
    return f"{int(nbytes) if whole else format_number(nbytes)} {BINARY[unit]}"


def format_number(value: float) -> str:
    """Format a number of at least 0 to three digits; whole parts in full."""
    decimals = 0 if value >= 99.95 else 1 if value >= 9.995 else 2  # noqa: PLR2004
    return f"{value:.{decimals}f}"


def choose_unit(ns: float) -> tuple[float, str]:
    """Return the largest unit in which a time is at least 1."""
    units = ((1e9, "s"), (1e6, "ms"), (1e3, "\N{MICRO SIGN}s"))
    return next((one for one in units if ns >= one[0]), (1, "ns"))


def format_duration(ns: float) -> str:
    """Format a time to three digits, such as 43.1 \N{MICRO SIGN}s."""
    divisor, unit = choose_unit(ns)
    return f"{format_number(ns / divisor) if divisor > 1 else round(ns)} {unit}"
