# SPDX-License-Identifier: GPL-2.0-only
"""The page in a real browser: on a desk, on a phone, in the dark."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import made
import pytest
from playwright.sync_api import sync_playwright

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conftest import Written
    from playwright.sync_api import Browser, Page

DESK, PHONE = (1200, 900), (390, 740)
NORMAL = 4.5  # contrast that WCAG 2 asks for between letters and their ground


@dataclass
class Opened:
    """A page, and all that it did besides being shown."""

    page: Page
    fetched: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    program = shutil.which("chromium")
    assert program, "chromium is not installed: scripts/setup tests"
    with sync_playwright() as play:
        # root, which CI is, may not have the browser's own sandbox
        made_ready = play.chromium.launch(
            executable_path=program, args=["--no-sandbox", "--disable-gpu"]
        )
        yield made_ready
        made_ready.close()


@pytest.fixture
def opened(browser: Browser, written: Written) -> Iterator[Callable[..., Opened]]:
    contexts = []

    def show(size: tuple[int, int] = DESK, **more: Any) -> Opened:
        width, height = size
        context = browser.new_context(
            viewport={"width": width, "height": height}, **more
        )
        contexts.append(context)
        held = Opened(context.new_page())
        held.page.on("request", lambda request: held.fetched.append(request.url))
        held.page.on("console", lambda said: held.complaints.append(said.text))
        held.page.on("pageerror", lambda error: held.complaints.append(str(error)))
        held.page.goto(written.file.as_uri())
        return held

    yield show
    for context in contexts:
        context.close()


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fetches_nothing_and_complains_of_nothing(
    opened: Callable[..., Opened],
    written: Written,
    size: tuple[int, int],
    scheme: str,
) -> None:
    held = opened(size, color_scheme=scheme)
    held.page.wait_for_load_state("networkidle")
    assert held.fetched == [written.file.as_uri()]
    assert held.complaints == []
    wide = held.page.evaluate("document.documentElement.scrollWidth")
    assert wide <= size[0]  # no scrolling to the side


def test_what_the_names_hold_is_shown_and_not_run(
    opened: Callable[..., Opened],
) -> None:
    page = opened().page
    assert page.evaluate("document.scripts.length") == 0
    assert page.get_by_role("row").filter(has_text=made.HOSTILE).count() >= 1


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_numbers_in_the_browser_are_those_of_the_results(
    opened: Callable[..., Opened], written: Written, size: tuple[int, int]
) -> None:
    page = opened(size).page
    for name, document in written.documents.items():
        shown = page.evaluate(
            """name => [...document.querySelectorAll('section')]
                .filter(part => part.querySelector('h2').textContent.startsWith(name))
                .flatMap(part => [...part.querySelectorAll('td data')])
                .map(cell => Number(cell.value))""",
            name,
        )
        unit = "instructions" if document.counted else "ns"
        held = [r for r in document.results if r.unit == unit]
        wanted = [n for r in held for n in (r.median, *r.ci95, *r.samples)]
        left = list(shown)
        for number in wanted:
            left.remove(number)


def test_a_phone_shows_rows_as_cards_that_are_still_a_table(
    opened: Callable[..., Opened],
) -> None:
    page = opened(PHONE).page
    heads = page.get_by_role("table", name=re.compile("^Medians"))
    assert heads.get_by_role("rowheader").count() == 4
    assert heads.get_by_role("columnheader").count() == 6
    card = heads.get_by_role("row").filter(has_text="memmap-stamp").first
    box = card.bounding_box()
    assert box
    assert box["width"] <= PHONE[0]
    letters = page.evaluate(
        """() => Math.min(...[...document.querySelectorAll('[viewBox] text')].map(
            text =>
            parseFloat(getComputedStyle(text).fontSize) *
            text.ownerSVGElement.getBoundingClientRect().width /
            text.ownerSVGElement.viewBox.baseVal.width))"""
    )
    assert letters >= 8  # CSS pixels


APART = """() => {
    const found = [];
    for (const row of document.querySelectorAll('.forest tbody tr')) {
        const [label, line, said] = [...row.children].map(cell => {
            const range = document.createRange();
            range.selectNodeContents(cell);
            return range.getBoundingClientRect();
        });
        const apart = (a, b) => a.right <= b.left || b.right <= a.left
            || a.bottom <= b.top || b.bottom <= a.top;
        found.push(apart(label, line) && apart(line, said) && apart(label, said)
            && said.right <= innerWidth);
    }
    return found;
}"""


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_labels_of_a_forest_are_off_the_line(
    opened: Callable[..., Opened], size: tuple[int, int]
) -> None:
    page = opened(size).page
    found = page.evaluate(APART)
    assert len(found) > 4
    assert all(found)
    forest = page.get_by_role("table", name=re.compile("^How many times")).first
    assert forest.get_by_role("rowheader").count() >= 1
    assert forest.get_by_role("columnheader").count() == 3


def test_the_result_is_downloaded_whole(
    opened: Callable[..., Opened], written: Written
) -> None:
    page = opened().page
    with page.expect_download() as got:
        page.get_by_role("link", name="Download the result").first.click()
    assert got.value.suggested_filename == "native.json"
    held = written.documents["native"].to_json()
    assert got.value.path().read_text() == held


def test_a_table_that_is_too_wide_scrolls_on_its_own(
    opened: Callable[..., Opened],
) -> None:
    page = opened(PHONE).page
    grids = page.get_by_role("region", name="sweep: clear, GB/s")
    assert grids.count() == 1
    assert grids.get_attribute("tabindex") == "0"  # by the keyboard as well


def test_a_screen_reader_is_told_of_figures_and_tables(
    opened: Callable[..., Opened], written: Written
) -> None:
    page = opened().page
    figures = page.locator("svg:not([aria-hidden])").count()
    named = page.get_by_role("img", name=re.compile(r"\w"))
    assert named.count() == figures > 1
    assert page.get_by_role("heading", level=1).count() == 1
    assert page.get_by_role("main").count() == 1
    for name in written.documents:
        assert page.get_by_role("region", name=re.compile(f"^{name} ")).count() >= 1


def test_the_keyboard_can_skip_to_the_results(opened: Callable[..., Opened]) -> None:
    page = opened().page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the results"
    box = page.locator("a.skip").bounding_box()
    assert box
    assert box["x"] >= 0
    page.keyboard.press("Enter")
    assert page.url.endswith("#main")


CONTRAST = """() => {
    const canvas = document.createElement('canvas').getContext('2d');
    const light = colour => {
        canvas.fillStyle = colour;
        const parts = canvas.fillStyle.match(/[0-9a-f]{2}/g).map(x => {
            const part = parseInt(x, 16) / 255;
            return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
        });
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
    };
    const behind = element => {
        for (; element; element = element.parentElement) {
            const colour = getComputedStyle(element).backgroundColor;
            if (!/rgba\\(.*, 0\\)/.test(colour)) return colour;
        }
        return 'white';
    };
    const found = [];
    const all = document.body.querySelectorAll(':not(svg, svg *)');
    for (const element of [...all, ...document.querySelectorAll('svg text')]) {
        const own = [...element.childNodes].some(n => n.nodeType == 3 && n.data.trim());
        if (!own) continue;
        const style = getComputedStyle(element);
        const colour = element.closest('svg') ? style.fill : style.color;
        const [a, b] = [light(colour), light(behind(element))].sort((x, y) => y - x);
        found.push([(a + 0.05) / (b + 0.05), element.textContent.trim().slice(0, 40)]);
    }
    return found.sort((a, b) => a[0] - b[0]);
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_letters_stand_out_from_their_ground(
    opened: Callable[..., Opened], scheme: str
) -> None:
    page = opened(color_scheme=scheme).page
    found = page.evaluate(CONTRAST)
    assert len(found) > 100
    assert found[0][0] >= NORMAL, found[:5]
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    parts = [int(n) for n in re.findall(r"\d+", ground)]
    assert (sum(parts) > 3 * 128) == (scheme == "light")
