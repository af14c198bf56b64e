# SPDX-License-Identifier: GPL-2.0-only
"""The page says what the results say."""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import made
from pagelib import named, parsed, rows, section, text, values

from bulkmm import facts, grid, published, table
from bulkmm.control.text import number
from bulkmm.report import command

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Written

    from bulkmm.results import Document, Ratio, Result


def test_every_number_is_that_of_the_result(root: ET.Element, written: Written) -> None:
    seen = 0
    for name, document in written.documents.items():
        part = section(root, name)
        rated = "fewer" if document.counted else "faster"
        for scenario in document.scenarios:
            held = rows(part, f"{scenario}: {rated}")
            every = rows(part, f"Samples of {scenario},")
            samples = {name.partition(",")[0]: row for name, row in every.items()}
            for result in leading(document, scenario):
                assert values(held[result.variant]) == expected(document, result)
                assert values(samples[result.variant]) == result.samples
                seen += 1
    assert seen == 4 + 9 + 24


def leading(document: Document, scenario: str) -> list[Result]:
    """Return the results of a scenario that have a row."""
    unit = "instructions" if document.counted else "ns"
    every = (r for r in document.results if r.unit == unit)
    return [r for r in every if r.scenario == scenario]


def expected(document: Document, result: Result) -> list[float]:
    """Return what the row of an arm must have."""
    numbers = [result.median, *result.ci95]
    if facts.where(document) == "native":
        numbers.append(result.bytes / result.median)
    if document.counted:
        numbers.append(table.stores_of(document, result).median)
    every = (r for r in document.ratios if r.unit == result.unit)
    bases = [r for r in every if r.scenario == result.scenario]
    first = table.main_base(bases)
    for ratio in bases:
        if (ratio.base, ratio.variant) == (first, result.variant):
            numbers += said_of(ratio)
    return numbers


def said_of(ratio: Ratio) -> list[float]:
    """Return the numbers that are printed of a ratio: of work, what is gone."""
    held = [ratio.ratio, *ratio.ci95]
    return held if ratio.unit == "ns" else [table.removed(one) for one in held]


def test_what_is_printed_is_the_number_beside_it(root: ET.Element) -> None:
    for element in named(root, "data"):
        value, said = float(str(element.get("value"))), text(element)
        times = [number(value / scale) for scale in (1, 1e3, 1e6, 1e9)]
        forms = (*times, table.count(value), f"{value:.2f}", f"{value:.1f}")
        assert said in forms


def test_published_figures_stand_beside_ours(
    root: ET.Element, written: Written
) -> None:
    heads = rows(root, "Medians")
    ours = written.documents["native"]
    row = heads["memmap-stamp native"]
    ratio = next(r for r in ours.ratios if r.variant == "bulkmm")
    arms = {r.variant: r for r in ours.results}
    old = [p.ratio for p in published.for_scenario("memmap-stamp")]
    assert len(old) == 3
    assert values(row) == [
        *(arms["rebuild"].median, *arms["rebuild"].ci95),
        *(arms["bulkmm"].median, *arms["bulkmm"].ci95),
        *said_of(ratio),
        *old,
    ]
    for figure in published.for_scenario("memmap-stamp"):
        said = f"{figure.before_ms} → {figure.after_ms} ms"
        assert said in text(row)


def test_nothing_published_stands_beside_emulated_work(root: ET.Element) -> None:
    emulated = [row for row in rows(root, "Medians").values() if "TCG" in text(row)]
    assert len(emulated) == 3
    for row in emulated:
        assert table.TIMES not in text(row)
        assert not re.search("RK3588|Ice Lake", text(row))


def test_no_ratio_of_emulated_times(root: ET.Element, written: Written) -> None:
    guest = written.documents["guest"]
    assert any(ratio.unit == "ns" for ratio in guest.ratios)
    assert table.TIMES not in text(section(root, "guest"))
    for row in (r for r in rows(root, "Medians").values() if "TCG" in text(r)):
        cells = {e.get("data-title"): text(e) for e in row}
        assert table.TIMES not in cells["Fewer:"]
        assert "%" in cells["Fewer:"]


def test_native_comes_first_then_what_has_something_published() -> None:
    arms = [
        made.arm(scenario, variant, 1)
        for scenario in ("other", "memmap-stamp")
        for variant in ("off", "on")
    ]
    native, kvm = (made.document(arms, [("off", "on")], w) for w in ("native", "KVM"))
    root = parsed(kvm, native)
    heads = rows(root, "Medians")
    assert list(heads) == ["memmap-stamp b", "other b", "memmap-stamp a", "other a"]
    said = [text(h) for h in named(root, "h2")]
    assert said.index("b native") < said.index("a KVM")


def test_grids_are_those_of_the_table(root: ET.Element, written: Written) -> None:
    document = written.documents["sweep"]
    held = grid.grids(document, table.factor)
    assert len(held) == 2
    for one in held:
        shown = rows(section(root, "sweep"), one.headings[0])
        cells = [
            [text(e) for e in row if e.tag in ("th", "td")] for row in shown.values()
        ]
        assert cells == one.rows


def test_results_without_ratios_or_figures(tmp_path: Path) -> None:
    lone = made.document([made.arm("alone", "only", 1, 1)], [])
    nothing = made.document([], [])
    for document in (lone, nothing):
        said = command.html([document], ["x"])
        ET.fromstring(said)  # noqa: S314
        assert 'id="headline"' not in said
    assert tmp_path.is_dir()


def test_failed_checks_stand_above_the_figures(root: ET.Element) -> None:
    said = text(section(root, "guest"))
    assert "1 of 2 checks failed; do not use these figures: taint" in said
    assert said.index("checks failed") < said.index("every sample")
    assert "checks failed" not in text(section(root, "native"))


def test_machine_kernel_and_method(root: ET.Element) -> None:
    said = text(section(root, "guest"))
    for fact in ("A & B 25 1", "7.3.4+deb13-cloud-amd64", "0123abc", "seed 7", "TCG"):
        assert fact in said
    for word in (
        "order statistics",
        "bootstrapped",
        "Mann-Whitney",
        "never to be quoted",
    ):
        assert word in text(section(root, "Method"))


def test_the_result_can_be_downloaded(root: ET.Element, written: Written) -> None:
    links = {e.get("download"): str(e.get("href")) for e in named(root, "a")}
    for name, document in written.documents.items():
        kind, _, held = links[f"{name}.json"].partition(",")
        assert kind == "data:application/json;base64"
        assert base64.b64decode(held).decode() == document.to_json()
