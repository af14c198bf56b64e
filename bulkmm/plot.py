# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm plot``: results as an SVG figure.

Operations measured over a range of sizes become lines of throughput by size, one
panel for each use of the memory; of other scenarios the ratios are drawn.
``bulkmm.panels`` decides what is drawn.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from bulkmm import files, options
from bulkmm.errors import BulkmmError, Exit, UsageError

if TYPE_CHECKING:
    import argparse
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
COLUMNS, PANEL_WIDTH, PANEL_HEIGHT, ROW = 2, 5.0, 3.1, 0.2  # inches
BESIDE = 1.3  # sizes differ by 2 or more
WIDE = 8  # from this ratio of the ends on an axis has ticks at 1, 2, 5
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
        operation and use; ratios of all that has no sizes.""",
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
        raise BulkmmError("nothing to draw: no sizes or ratios in what was given")
    return render(found, panels.footnotes(documents))


def render(found: list[Panel], notes: list[str]) -> str:
    """Return panels as one SVG, with title and description for screen readers."""
    from html import escape

    import matplotlib as mpl
    from matplotlib.figure import Figure

    from bulkmm import panels

    out = io.StringIO()
    with mpl.rc_context():
        mpl.rcdefaults()  # ignore the user's matplotlibrc
        mpl.rcParams.update(SETTINGS)
        figure = Figure(layout="constrained")
        _draw(figure, found, notes)
        # A date or a program's version would change the bytes, not the figure.
        nothing = {"Date": None, "Creator": None, "Format": None, "Type": None}
        title = panels.title(found)
        figure.savefig(out, format="svg", metadata={**nothing, "Title": title})
    head, _, body = out.getvalue().partition("<svg ")
    said = escape(panels.description([*found]), quote=False)
    body = body.replace("</title>", f"</title>\n <desc>{said}</desc>", 1)
    return f'{head}<svg role="img" {body}'


def _draw(figure: Figure, found: list[Panel], notes: list[str]) -> None:
    import textwrap

    from bulkmm import panels

    series = [panel for panel in found if panel.arms]
    rated = [panel for panel in found if panel.ratios]
    lines = [line for note in notes for line in textwrap.wrap(note, TEXT_WIDTH)]
    heights = [PANEL_HEIGHT] * -(-len(series) // COLUMNS)
    heights += [ROW * len(panel.ratios) + 0.9 for panel in rated]
    inches = sum(heights) + 0.16 * len(lines) + 1.2
    figure.set_size_inches(PANEL_WIDTH * COLUMNS, inches)
    figure.set_facecolor("white")  # opaque: read on dark and on light pages
    grid = figure.add_gridspec(len(heights), COLUMNS, height_ratios=heights)
    looks = looks_of(series)
    keys: dict[str, Any] = {}
    for i, panel in enumerate(series):
        axes = figure.add_subplot(grid[i // COLUMNS, i % COLUMNS])
        keys = {**draw_lines(axes, panel, looks, f"panel{i}"), **keys}
        axes.set_title(panel.title, loc="left", fontweight="bold")
    for i, panel in enumerate(rated, len(heights) - len(rated)):
        axes = figure.add_subplot(grid[i, :])
        draw_ratios(axes, panel)
        axes.set_title(panel.title, loc="left", fontweight="bold")
    figure.supxlabel("\n".join(lines), fontsize=8, x=0.01, ha="left")
    _head(figure, panels.title(found), {label: keys[label] for label in looks})


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


def draw_ratios(axes: Axes, panel: Panel) -> None:
    """Draw a row for each ratio with its interval; hollow: not proven."""
    from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

    for y, one in enumerate(panel.ratios):
        low, high = one.ci95
        axes.plot([low, high], [y, y], color=COLOURS[0], linewidth=1.5)
        proven = one.significant and not one.unstable
        fill = COLOURS[0] if proven else "white"
        axes.plot(one.ratio, y, "o", color=COLOURS[0], markerfacecolor=fill)
    alike = len({one.base for one in panel.ratios}) == 1
    axes.set_yticks(
        range(len(panel.ratios)),
        [
            f"{r.scenario}: {r.variant}" + ("" if alike else f" against {r.base}")
            for r in panel.ratios
        ],
    )
    axes.set_ylim(len(panel.ratios) - 0.5, -0.5)
    axes.axvline(1, color="black", linewidth=1)
    axes.set_xscale("log")
    low, high = axes.get_xlim()
    wide = high / low > WIDE
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)) if wide else MaxNLocator(8))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}\N{MULTIPLICATION SIGN}")
    axes.xaxis.set_minor_locator(NullLocator())
