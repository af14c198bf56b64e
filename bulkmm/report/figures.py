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

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from bulkmm.panels import Panel

WIDTH = 3.7  # inches: letters stay readable on a phone
SWEEP = 3.0
# what the colours become; black is a variant's as well as the letters'
VARIABLES = {
    **{colour.lower(): f"var(--c{i})" for i, colour in enumerate(plot.COLOURS)},
    "#000000": "var(--ink)",
    "#ffffff": "var(--paper)",
    "#dddddd": "var(--rule)",
}


@dataclass(frozen=True)
class Drawn:
    """A figure and what it is called."""

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
