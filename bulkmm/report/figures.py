# SPDX-License-Identifier: GPL-2.0-only
"""The page's figures: SVG within the page, in the page's own colours.

Drawn by what ``bulkmm plot`` draws with. The colours become variables of the
page's style, so that one figure serves a light and a dark screen.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from bulkmm import plot
from bulkmm.results import spread_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from bulkmm.panels import Panel
    from bulkmm.results import Ratio

WIDTH = 3.7  # inches: letters stay readable on a phone
ROW, HEAD, FOOT = 0.34, 0.15, 0.55  # of a forest and of strips
SWEEP = 3.0
LEFT, RIGHT = 0.03, 0.97
PROVEN, UNPROVEN = plot.COLOURS[0], "#777777"
# what the colours become; black is a variant's as well as the letters'
VARIABLES = {
    **{colour.lower(): f"var(--c{i})" for i, colour in enumerate(plot.COLOURS)},
    "#000000": "var(--ink)",
    "#ffffff": "var(--paper)",
    "#dddddd": "var(--rule)",
    UNPROVEN: "var(--faint)",
}


@dataclass(frozen=True)
class Drawn:
    """A figure and what it is called."""

    svg: str
    title: str
    about: str


def forest(ratios: list[Ratio], title: str, number: int) -> Drawn:
    """Draw ratios with their intervals, one below the other, on one scale."""

    def draw(figure: Figure) -> None:
        height = HEAD + ROW * len(ratios) + FOOT
        axes = _axes(figure, height)
        for i, ratio in enumerate(ratios):
            _whisker(axes, ratio, i)
        axes.axvline(1, color="black", linewidth=1)
        axes.set_xscale("log", base=2)
        _ticks(axes, ratios)
        axes.set_ylim(len(ratios) - 0.4, -0.75)
        axes.set_xlabel("time of the base / time of the variant")

    about = "; ".join(
        f"{r.scenario}, {r.base} / {r.variant}: {r.ratio:.2f}, "
        f"{r.spread} from {r.ci95[0]:.2f} to {r.ci95[1]:.2f}"
        for r in ratios
    )
    return _within(plot.render(draw, title, None), title, about, number)


def _axes(figure: Figure, height: float) -> Axes:
    """Return axes that fill the figure: names stand above the lines, not beside."""
    figure.set_size_inches(WIDTH, height)
    figure.patch.set_alpha(0)
    bottom = (FOOT - 0.1) / height
    axes = figure.add_axes((LEFT, bottom, RIGHT - LEFT, 1 - bottom - HEAD / height))
    axes.patch.set_alpha(0)
    axes.yaxis.set_visible(False)
    for side in ("left", "right", "top"):
        axes.spines[side].set_visible(False)
    return axes


def _name(axes: Axes, text: str, at: float) -> None:
    behind = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}
    where = axes.get_yaxis_transform()
    axes.text(0, at - 0.2, text, transform=where, fontsize=8, bbox=behind)


def _whisker(axes: Axes, ratio: Ratio, at: int) -> None:
    colour = PROVEN if ratio.significant else UNPROVEN
    low, high = ratio.ci95
    axes.plot([low, high], [at + 0.1] * 2, color=colour, linewidth=2)
    marker = "o" if ratio.significant else "D"
    (point,) = axes.plot([ratio.ratio], [at + 0.1], marker, color=colour, markersize=6)
    point.set_gid(f"ratio{at}")
    mark = "" if ratio.significant else " ~"
    _name(axes, f"{ratio.scenario}: {ratio.base} / {ratio.variant}{mark}", at)


def _ticks(axes: Axes, ratios: list[Ratio]) -> None:
    ends = [end for ratio in ratios for end in (*ratio.ci95, 1.0) if end > 0]
    low, high = min(ends), max(ends)
    every = [0.125, 0.25, 0.5, 0.7, 1, 1.4, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 128]
    named = [tick for tick in every if low * 0.9 <= tick <= high * 1.1]
    axes.set_xticks(named, [f"{tick:g}\N{MULTIPLICATION SIGN}" for tick in named])
    axes.set_xticks([], minor=True)
    axes.set_xlim(low * 0.9, high * 1.1)


def strips(panel: Panel, number: int) -> Drawn:
    """Draw every sample of a scenario, downwards in the order taken."""

    def draw(figure: Figure) -> None:
        axes = _axes(figure, HEAD + 1.4 * ROW * len(panel.arms) + FOOT)
        plot.draw_strips(axes, panel, "strip")
        for i, arm in enumerate(panel.arms):
            _name(axes, arm.label, i - 0.22)
        axes.set_ylim(len(panel.arms) - 0.5, -0.85)

    about = "; ".join(
        f"{arm.label}: median {arm.median:.4g} {panel.unit}, "
        f"{spread_of(len(arm.samples))} from {arm.low:.4g} to {arm.high:.4g}, "
        f"{len(arm.samples)} samples"
        for arm in panel.arms
    )
    title = f"{panel.title}: every sample"
    return _within(plot.render(draw, title, None), title, about, number)


def sweep(panel: Panel, looks: dict[str, dict[str, object]], number: int) -> Drawn:
    """Draw throughput by size."""

    def draw(figure: Figure) -> None:
        keys = plot.draw_lines(_sweep_axes(figure, panel), panel, looks, "sweep")
        figure.legend(
            list(keys.values()), list(keys), loc="lower center", ncols=2, frameon=False
        )

    about = "; ".join(
        f"{arm.label}: " + ", ".join(f"{p.rate:.1f}" for p in arm.points)
        for arm in panel.arms
    )
    title = f"{panel.title}: throughput by size, GB/s"
    return _within(plot.render(draw, title, None), title, about, number)


def _sweep_axes(figure: Figure, panel: Panel) -> Axes:
    legend = 0.2 * -(-len(panel.arms) // 2) + 0.1
    height = SWEEP + legend
    figure.set_size_inches(WIDTH, height)
    figure.patch.set_alpha(0)
    bottom = (legend + 0.5) / height
    axes = figure.add_axes((0.11, bottom, 0.86, 0.97 - bottom))
    axes.patch.set_alpha(0)
    return axes


def _within(svg: str, title: str, about: str, number: int) -> Drawn:
    """Return a figure that can stand in a page with others."""
    body = svg[svg.index("<svg ") :]
    body = re.sub(r"<style type=\"text/css\">.*?</style>", "", body, flags=re.DOTALL)
    body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
    body = re.sub(r"<title>.*?</title>", "", body, flags=re.DOTALL)
    body = re.sub(r'(\bid="|url\(#|href="#)', rf"\1f{number}-", body)
    body = re.sub(
        r"#[0-9a-f]{6}\b", lambda found: VARIABLES.get(found[0], found[0]), body
    )
    body = re.sub(r'\b(?:width|height)="[\d.]+pt" ?', "", body, count=2)
    names = f"f{number}-title f{number}-about"
    head = (
        f'<title id="f{number}-title">{escape(title)}</title>'
        f'<desc id="f{number}-about">{escape(about)}</desc>'
    )
    opened, _, rest = body.partition(">")
    opened = opened.replace("<svg ", f'<svg role="img" aria-labelledby="{names}" ', 1)
    return Drawn(f"{opened}>{head}{rest}", title, about)
