# SPDX-License-Identifier: GPL-2.0-only
"""A result as an SVG figure of the report.

Operations measured over a range of sizes become lines of throughput by size, one
panel for each use of the memory; of other scenarios the ratios are drawn.
"""

from __future__ import annotations

import io
import re
from html import escape
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from bulkmm import grid
from bulkmm.control import text
from bulkmm.report import conclusion
from bulkmm.results import NS, STORES, Document, Ratio, Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

HOW_TO_READ = (
    "GB/s: bytes written, in the time of writing and of the use that follows. "
    "Ratios: filled if proven, hollow if not. Bars: 95 % interval, below six samples "
    "the range."
)
# Okabe and Ito's palette, safe for common colour blindness, without yellow, which is
# lost on white. Markers distinguish them in print.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#E69F00", "#56B4E9")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*")
COLUMNS, PANEL_WIDTH, PANEL_HEIGHT, ROW = 2, 5.0, 3.1, 0.2  # inches
LEGEND_WIDTH = 110  # characters that fit across two columns
BESIDE = 1.3  # sizes differ by 2 or more
WIDE = 8  # from this ratio of the ends on, an axis has ticks at 1, 2, 5
STYLE: Any = {"markersize": 5, "linewidth": 1.2, "elinewidth": 0.8, "capsize": 2}
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
Points = list[tuple[int, Result]]  # by size
Panels = dict[str, dict[str, Points]]  # by title; by variant
# of a figure that stands in a page beside others
NEEDLESS = re.compile(r"<style.*?</style>|<metadata>.*?</metadata>", re.DOTALL)
NAMES = re.compile(r'(\bid="|url\(#|href="#)')


def svg(whole: Document, name: str) -> str:
    """Return a result's figure as an element of a page, "" if there is nothing to draw.

    The same result makes the same bytes. ``name`` keeps its parts apart from those of
    other figures.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    document = whole.printed()
    series, ratios = _series(document), _unsized(document)
    if not series and not ratios:
        return ""
    out = io.StringIO()
    with mpl.rc_context():
        mpl.rcdefaults()  # ignore the user's matplotlibrc
        mpl.rcParams.update(SETTINGS)
        figure = Figure(layout="constrained", facecolor="white")  # on dark pages too
        title = _title(document, name, ratios) if ratios else ""
        _draw(figure, series, title, ratios)
        # A date or a program's version would change the bytes, not the figure.
        nothing = {"Date": None, "Creator": None, "Format": None, "Type": None}
        figure.savefig(out, format="svg", metadata={**nothing, "Title": "bulkmm"})
    said = escape(_described(series, title, ratios), quote=False)
    body = out.getvalue().partition("<svg ")[2]
    body = body.replace("</title>", f"</title>\n <desc>{said}</desc>", 1)
    own = re.sub(r"\W", "-", name)
    return NAMES.sub(rf"\g<1>{own}-", f'<svg role="img" {NEEDLESS.sub("", body)}')


def _series(document: Document) -> Panels:
    """Return throughput by size; an interval that includes 0 has no rate."""
    found: Panels = {}
    for one in grid.of_one_thread(grid.usual(document).results):
        sized = grid.SIZED.fullmatch(one.scenario)
        if not sized or one.unit != NS or not one.ci95[0] > 0:
            continue
        operation, _, number, unit, use = sized.groups(default="")
        words = [operation, grid.USES.get(use, use)]
        title = ", ".join(filter(None, words)) + _emulation(document)
        arm = found.setdefault(title, {}).setdefault(one.variant, [])
        arm.append((int(number) << 10 * "bkmgt".index(unit), one))
    return found


def _emulation(document: Document) -> str:
    return ": emulation (TCG)" if document.emulated else ""


def _unsized(document: Document) -> list[Ratio]:
    """Return the module's ratios in the scenarios that no panel has by size."""
    return [
        ratio
        for ratio in conclusion.ours(document)
        if not grid.SIZED.fullmatch(ratio.scenario) and ratio.unit != STORES
    ]


def _title(document: Document, name: str, ratios: list[Ratio]) -> str:
    work = "less work" if document.emulated else "faster"
    than = conclusion.base(ratios)
    return f"{name}: how many times {work} than {than}{_emulation(document)}"


def _described(series: Panels, heading: str, ratios: list[Ratio]) -> str:
    """Return the figure in words."""
    said = [
        f"{title}, GB/s by size: {', '.join(arms)}." for title, arms in series.items()
    ]
    if ratios:
        shown = (f"{one.scenario} {one.variant} {one.ratio:.2f}" for one in ratios)
        said.append(f"{heading}: {', '.join(shown)}.")
    return " ".join(said)


def _draw(figure: Figure, series: Panels, heading: str, ratios: list[Ratio]) -> None:
    heights = [PANEL_HEIGHT] * -(-len(series) // COLUMNS)
    heights += [ROW * len(ratios) + 0.9] if ratios else []
    figure.set_size_inches(PANEL_WIDTH * COLUMNS, sum(heights) + 0.8)
    cells = figure.add_gridspec(len(heights), COLUMNS, height_ratios=heights)
    keys: dict[str, Any] = {}
    variants = list(dict.fromkeys(v for arms in series.values() for v in arms))
    for i, (title, arms) in enumerate(series.items()):
        axes = figure.add_subplot(cells[i // COLUMNS, i % COLUMNS])
        axes.set_title(title, loc="left", fontweight="bold")
        axes.set_ylabel("GB/s, emulated" if title.endswith("(TCG)") else "GB/s")
        for k, (variant, points) in enumerate(arms.items()):
            # Shifted slightly, so that no interval hides another.
            shift = BESIDE ** ((k + 0.5) / len(arms) - 0.5)
            points.sort(key=itemgetter(0))
            keys[variant] = _line(axes, points, shift, variants.index(variant))
        _size_axis(axes, sorted({size for held in arms.values() for size, _ in held}))
    if ratios:
        axes = figure.add_subplot(cells[-1, :])
        axes.set_title(heading, loc="left", fontweight="bold")
        _ratios(axes, ratios)
    if keys:
        figure.legend(
            keys.values(),
            keys,
            loc="outside upper center",
            ncols=max(1, LEGEND_WIDTH // (max(map(len, keys)) + 7)),
            frameon=False,
        )


def _line(axes: Axes, points: Points, shift: float, variant: int) -> Any:  # noqa: ANN401
    """Draw throughput by size; return what the legend shows of it."""
    rates = [(r.bytes / r.median, r.bytes / r.ci95[1], r.bytes / r.ci95[0])
             for _, r in points]  # fmt: skip
    ends = [[y - low for y, low, _ in rates], [high - y for y, _, high in rates]]
    sizes = [size * shift for size, _ in points]
    colour, marker = COLOURS[variant % len(COLOURS)], MARKERS[variant % len(MARKERS)]
    look = {"color": colour, "marker": marker, **STYLE}
    return axes.errorbar(sizes, [y for y, _, _ in rates], ends, **look)


def _size_axis(axes: Axes, sizes: list[int]) -> None:
    """Label the measured sizes, or every second of many."""
    axes.set_xscale("log", base=2)
    named = sizes[:: -(-len(sizes) // 10)]
    axes.set_xticks(named, [text.size(size) for size in named], rotation=30)
    axes.set_xticks([], minor=True)
    axes.set_xlim(sizes[0] / 1.5, sizes[-1] * 1.5)
    axes.set_ylim(bottom=0)  # heights are comparable only from zero


def _ratios(axes: Axes, rows: list[Ratio]) -> None:
    """Draw a row for each ratio with its interval; hollow: not proven."""
    from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

    for y, one in enumerate(rows):
        axes.plot(one.ci95, [y, y], color=COLOURS[0], linewidth=1.5)
        fill = COLOURS[0] if one.significant and not one.unstable else "white"
        axes.plot(one.ratio, y, "o", color=COLOURS[0], markerfacecolor=fill)
    alike = len({one.base for one in rows}) == 1
    labels = [
        f"{r.scenario}: {r.variant}" + ("" if alike else f" against {r.base}")
        for r in rows
    ]
    axes.set_yticks(range(len(rows)), labels)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.axvline(1, color="black", linewidth=1)
    axes.set_xscale("log")
    low, high = axes.get_xlim()
    wide = high / low > WIDE
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)) if wide else MaxNLocator(8))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}\N{MULTIPLICATION SIGN}")
    axes.xaxis.set_minor_locator(NullLocator())
