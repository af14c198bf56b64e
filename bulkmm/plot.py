# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm plot``: results as an SVG figure.

Operations measured over a range of sizes become lines of throughput by size, one
panel for each use of the memory; any other scenario becomes a strip of its raw
samples. ``bulkmm.panels`` decides what is drawn.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, Literal

from bulkmm import files, options
from bulkmm.errors import BulkmmError, Exit, UsageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from bulkmm.panels import Panel
    from bulkmm.results import Document

# Okabe and Ito's palette, safe for common colour blindness, without yellow, which is
# lost on white. Markers distinguish them in print.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#E69F00", "#56B4E9")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*")
DASHES = ("-", "--", ":", "-.")
COLUMNS, PANEL_WIDTH, PANEL_HEIGHT = 2, 5.0, 3.1  # inches
BESIDE = 1.3  # sizes differ by 2 or more
STYLE: Any = {"markersize": 5, "linewidth": 1.2, "elinewidth": 0.8, "capsize": 2}
LEGEND_WIDTH, TEXT_WIDTH = 110, 170  # characters that fit across two columns
SETTINGS: Any = {
    "svg.fonttype": "none",  # text stays text: searchable, accessible, translatable
    "svg.hashsalt": "bulkmm",  # else the names of elements are random
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],  # comes with matplotlib, on every machine
    "font.size": 9,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "axes.axisbelow": True,
    "text.parse_math": False,  # a $ in a name is a $
}


def add_parser(sub: options.Subparsers) -> None:
    """Add ``plot`` to the parser of the whole command."""
    plot = options.add(
        sub,
        "plot",
        "draw kept results as SVG",
        """Draw kept results: throughput by size with 95 % intervals, a panel for each
        operation and use; raw samples of all that has no sizes.""",
        run="bulkmm.plot:run_plot",
        example="bulkmm plot out/a.json -o out/a.svg",
    )
    options.take(plot, options.RESULTS)
    options.take(plot, "-o!, --output FILE.svg  write the figure to this file")


def run_plot(args: argparse.Namespace) -> int:
    """Draw all the files in one figure."""
    from bulkmm.results import Document

    check_file(args.output)
    save(Document.read_all(args.results), args.output, names_of(args.results))
    return Exit.OK


def names_of(paths: list[Path]) -> list[str]:
    """Return short names of files, or their paths if those are ambiguous."""
    short = [path.stem for path in paths]
    return short if len({*short}) == len(short) else [str(path) for path in paths]


def check_file(file: Path | None) -> None:
    """Reject a figure's file that cannot be written, before all the work."""
    if file is None:
        return
    if file.suffix != ".svg":
        raise UsageError(f"the figure {file} must be named .svg, the one format")
    files.need_place(file, "the figure")


def save(documents: list[Document], file: Path, names: list[str] | None = None) -> None:
    """Draw results in one figure; ``names`` distinguish files with the same arms."""
    files.write(file, svg(documents, names), "the figure")


def svg(documents: list[Document], names: list[str] | None = None) -> str:
    """Return the figure: the same bytes for the same results."""
    from bulkmm import panels

    found = panels.panels(documents, names)
    if not found:
        raise BulkmmError("nothing to draw: no results in what was given")
    text = render(
        lambda figure: _draw(figure, found, panels.footnotes(documents)),
        panels.title(found),
    )
    return _describe(text, panels.description(documents, found))


def render(
    draw: Callable[[Figure], None],
    title: str,
    layout: Literal["constrained"] | None = "constrained",
) -> str:
    """Return a figure as SVG: the same bytes whenever the same is drawn."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    out = io.StringIO()
    with mpl.rc_context():
        mpl.rcdefaults()  # ignore the user's matplotlibrc
        mpl.rcParams.update(SETTINGS)
        figure = Figure(layout=layout)
        draw(figure)
        # A date or a program's version would change the bytes, not the figure.
        nothing = {"Date": None, "Creator": None, "Format": None, "Type": None}
        figure.savefig(out, format="svg", metadata={**nothing, "Title": title})
    return out.getvalue()


def _describe(text: str, description: str) -> str:
    """Add title and description for screen readers."""
    from html import escape

    head, opened, rest = text.partition("<svg ")
    body = rest.replace(
        "</title>", f"</title>\n <desc>{escape(description, quote=False)}</desc>", 1
    )
    return f'{head}{opened}role="img" {body}'


def _draw(figure: Figure, found: list[Panel], notes: list[str]) -> None:
    import textwrap

    from bulkmm import panels

    columns = min(COLUMNS, len(found))
    rows = -(-len(found) // columns)
    lines = [line for note in notes for line in textwrap.wrap(note, TEXT_WIDTH)]
    inches = PANEL_HEIGHT * rows + 0.16 * len(lines) + 1.2
    figure.set_size_inches(PANEL_WIDTH * COLUMNS, inches)
    figure.set_facecolor("white")  # opaque: read on dark and on light pages
    series = [panel for panel in found if panel.by_size]
    arms = {arm.label: arm for panel in series for arm in panel.arms}
    looks = looks_of(series)
    grid = list(figure.subplots(rows, columns, squeeze=False).flat)
    keys: dict[str, Any] = {}
    for i, (panel, axes) in enumerate(zip(found, grid, strict=False)):
        if panel.by_size:
            keys = {**draw_lines(axes, panel, looks, f"panel{i}"), **keys}
        else:
            draw_strips(axes, panel, f"panel{i}")
            names = [arm.label for arm in panel.arms]
            axes.set_yticks(range(len(names)), names)
        axes.set_title(panel.title, loc="left", fontweight="bold")
    for axes in grid[len(found) :]:
        axes.set_axis_off()
    figure.supxlabel("\n".join(lines), fontsize=8, x=0.01, ha="left")
    _head(figure, panels.title(found), {label: keys[label] for label in arms})


def _head(figure: Figure, title: str, keys: dict[str, Any]) -> None:
    """Put the title and the legend above the panels."""
    if not keys:
        figure.suptitle(title, fontsize=12)
        return
    figure.legend(
        list(keys.values()),
        list(keys),
        loc="outside upper center",
        ncols=max(1, LEGEND_WIDTH // (max(map(len, keys)) + 7)),
        frameon=False,
        title=title,
        title_fontsize=12,
    )


def looks_of(series: list[Panel]) -> dict[str, Any]:
    """Return how each arm looks in all panels, by its label."""
    arms = {arm.label: arm for panel in series for arm in panel.arms}
    variants = list(dict.fromkeys(arm.variant for arm in arms.values()))
    return {
        label: _look(variants.index(arm.variant), arm.source)
        for label, arm in arms.items()
    }


def _look(variant: int, source: int) -> dict[str, Any]:
    """Return an arm's style: colour and marker by variant, dashes by source."""
    hollow = (source + source // len(DASHES)) % 2  # eight sources, none alike
    return {
        "color": COLOURS[variant % len(COLOURS)],
        "marker": MARKERS[variant % len(MARKERS)],
        "linestyle": DASHES[source % len(DASHES)],
        "markerfacecolor": "white" if hollow else COLOURS[variant % len(COLOURS)],
    }


def draw_lines(
    axes: Axes, panel: Panel, looks: dict[str, Any], gid: str
) -> dict[str, Any]:
    """Draw throughput by size; return the legend's handle for each arm."""
    keys = {}
    for i, arm in enumerate(panel.arms):
        # Shifted slightly, so that no interval hides another.
        shift = BESIDE ** ((i + 0.5) / len(panel.arms) - 0.5)
        x = [point.size * shift for point in arm.points]
        y = [point.rate for point in arm.points]
        below = [point.rate - point.low for point in arm.points]
        above = [point.high - point.rate for point in arm.points]
        bars = axes.errorbar(x, y, (below, above), **STYLE, **looks[arm.label])
        bars.lines[0].set_gid(f"{gid}-arm{i}")
        keys[arm.label] = bars
    sizes = sorted({point.size for arm in panel.arms for point in arm.points})
    _size_axis(axes, sizes)
    axes.set_ylim(bottom=0)  # heights are comparable only from zero
    axes.set_ylabel("GB/s, emulated" if panel.emulated else "GB/s")
    return keys


def _size_axis(axes: Axes, sizes: list[int]) -> None:
    """Label the measured sizes, or every second of many."""
    from bulkmm.control import text

    axes.set_xscale("log", base=2)
    named = sizes[:: -(-len(sizes) // 10)]
    axes.set_xticks(named, [text.size(size) for size in named], rotation=30)
    axes.set_xticks([], minor=True)
    axes.set_xlim(sizes[0] / 1.5, sizes[-1] * 1.5)


def draw_strips(axes: Axes, panel: Panel, gid: str) -> None:
    """Draw all samples, downwards in measured order, and the median's interval."""
    for i, arm in enumerate(panel.arms):
        n = len(arm.samples)
        y = [i - 0.3 + 0.6 * (k + 0.5) / n for k in range(n)]
        (dots,) = axes.plot(arm.samples, y, "o", markersize=3, color=COLOURS[0])
        dots.set_gid(f"{gid}-arm{i}")
        axes.plot([arm.low, arm.high], [i, i], color="black", linewidth=1)
        axes.plot([arm.median] * 2, [i - 0.35, i + 0.35], color="black", linewidth=1.5)
    axes.set_ylim(len(panel.arms) - 0.5, -0.5)
    axes.set_xlim(left=0)
    axes.set_xlabel(f"{panel.unit}, emulated" if panel.emulated else panel.unit)
