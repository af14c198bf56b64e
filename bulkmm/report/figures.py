# SPDX-License-Identifier: GPL-2.0-only
"""The page's figures: SVG within the page, in the page's own colours.

Drawn by the code of ``bulkmm plot``. The colours become CSS variables, so that one
figure serves light and dark screens.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from bulkmm import plot

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from bulkmm.panels import Panel
    from bulkmm.report.breakdown import Operation

WIDTH = 3.7  # inches: text stays readable on a phone
SWEEP = 3.0
BAR = 0.44  # of a function's bars, its name above them
GREY = "#777777"
# CSS variables of the colours; black is for text and for a variant
VARIABLES = {
    **{colour.lower(): f"var(--c{i})" for i, colour in enumerate(plot.COLOURS)},
    "#000000": "var(--ink)",
    "#ffffff": "var(--paper)",
    "#dddddd": "var(--rule)",
    GREY: "var(--faint)",
}


@dataclass(frozen=True)
class Drawn:
    """A figure and its title."""

    svg: str
    title: str
    about: str


def sweep(panel: Panel, looks: dict[str, dict[str, object]], number: int) -> Drawn:
    """Draw throughput by size."""

    def draw(figure: Figure) -> None:
        axes = _sweep_axes(figure, panel)
        keys = plot.draw_lines(axes, panel, looks, "sweep")
        axes.set_ylabel("")  # the title has it
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


def shares(operation: Operation, title: str, number: int) -> Drawn:
    """Draw an operation's time by function, without and with the module."""
    lines = operation.lines

    def draw(figure: Figure) -> None:
        axes = _bar_axes(figure, len(lines))
        for i, line in enumerate(lines):
            axes.barh(i + 0.08, line.before, height=0.2, color=GREY)
            axes.barh(i + 0.3, line.after, height=0.2, color=plot.COLOURS[0])
            axes.text(
                0, i - 0.2, line.label, transform=axes.get_yaxis_transform(), fontsize=8
            )
        axes.set_ylim(len(lines) - 0.4, -0.75)
        axes.set_xlim(left=0)
        axes.set_xlabel("% of the time without the module (grey); with it (colour)")

    about = "; ".join(
        f"{line.label}: {line.before:.1f} %, then {line.after:.1f} %" for line in lines
    )
    return _within(plot.render(draw, title, None), title, about, number)


def _bar_axes(figure: Figure, rows: int) -> Axes:
    """Return axes that fill the figure: names stand above the bars, not beside."""
    height = BAR * rows + 0.7
    figure.set_size_inches(WIDTH, height)
    figure.patch.set_alpha(0)
    axes = figure.add_axes((0.03, 0.45 / height, 0.94, 1 - 0.6 / height))
    axes.patch.set_alpha(0)
    axes.yaxis.set_visible(False)
    for side in ("left", "right", "top"):
        axes.spines[side].set_visible(False)
    return axes


def _within(svg: str, title: str, about: str, number: int) -> Drawn:
    """Return a figure that can be embedded in a page with others."""
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
