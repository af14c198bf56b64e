# SPDX-License-Identifier: GPL-2.0-only
"""Text for a terminal, without libraries that load slower than the work takes."""

from collections.abc import Iterable, Sequence

from bulkmm.shell import width

BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
GAP = "  "  # between columns


def align_columns(rows: Iterable[Sequence[str]], indent: str = "") -> list[str]:
    """Return rows of words as lines with columns of minimal width."""
    table = list(rows)
    widths = _measure_columns(table)
    return [
        indent + GAP.join(w.ljust(n) for w, n in zip(row, widths, strict=True)).rstrip()
        for row in table
    ]


def wrap_columns(rows: Iterable[Sequence[str]], indent: str = "") -> list[str]:
    """Return aligned rows whose last column, of text, is wrapped to the terminal."""
    table = list(rows)
    beside = len(indent) + sum(n + len(GAP) for n in _measure_columns(table)[:-1])
    fits = beside < width.measure_width() * 2 / 3
    hanging = " " * beside if fits else f"{indent}{width.INDENT}"
    lines = align_columns(table, indent)
    return [part for line in lines for part in width.wrap_line(line, hanging)]


def split_columns(rows: Iterable[Sequence[str]], keys: int) -> list[str]:
    """Return aligned rows, in parts if they are wider than the terminal.

    Each part begins with the first columns, which tell rows apart.
    """
    table = list(rows)
    widths = [n + len(GAP) for n in _measure_columns(table)]
    room = width.measure_width() + len(GAP)
    parts = [[*range(keys)]]
    for i in range(keys, len(widths)):
        if len(parts[-1]) > keys and sum(widths[j] for j in (*parts[-1], i)) > room:
            parts.append([*range(keys)])
        parts[-1].append(i)
    lines: list[str] = []
    for part in parts:
        lines += ["", *align_columns([row[i] for i in part] for row in table)]
    return lines[1:]


def _measure_columns(rows: Sequence[Sequence[str]]) -> list[int]:
    """Return how wide columns are."""
    return [max(map(len, column)) for column in zip(*rows, strict=True)]


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
