# SPDX-License-Identifier: GPL-2.0-only
"""The page says what the results say; test_golden.py has it word for word."""

import re
from xml.etree import ElementTree as ET

import made
from conftest import Written
from pagelib import named, parsed, rows, section, text

from bulkmm import table
from bulkmm.report import breakdown, command


def test_every_sample_is_on_the_page(root: ET.Element, written: Written) -> None:
    for name, document in written.documents.items():
        said = text(section(root, name))
        for result in document.printed().results:
            assert ", ".join(f"{value:.10g}" for value in result.samples) in said


def test_no_ratio_of_emulated_times(root: ET.Element, written: Written) -> None:
    guest = written.documents["guest"]
    assert any(ratio.unit == "ns" for ratio in guest.ratios)
    assert table.TIMES not in "".join(
        text(one) for one in named(section(root, "guest"), "table")
    )
    emulated = [r for r in rows(root, "Medians").values() if "TCG" in text(r)]
    assert len(emulated) == 3
    for row in emulated:
        assert not re.search(f"RK3588|Ice Lake|{table.TIMES}", text(row))
        assert "%" in text(row)


def test_native_comes_first_then_what_has_something_published() -> None:
    arms = [
        made.arm(scenario, variant, 1)
        for scenario in ("other", "memmap-stamp")
        for variant in ("off", "on")
    ]
    native, kvm = (made.document(arms, [("off", "on")], w) for w in ("native", "KVM"))
    root = parsed(kvm, native)
    heads = [
        " ".join([text(named(row, "th")[0]), *map(text, named(row, "td")[:2])])
        for row in named(named(root, "tbody")[0], "tr")
    ]
    assert heads == [
        *("memmap-stamp b native", "other b native"),
        *("memmap-stamp a KVM", "other a KVM"),
    ]
    said = [text(h) for h in named(root, "h2")]
    assert said.index("b native") < said.index("a KVM")


def test_results_without_ratios_or_figures() -> None:
    lone = made.document([made.arm("alone", "only", 1, 1)], [])
    for document in (lone, made.document([], [])):
        said = command.html([document], ["x"])
        ET.fromstring(said)  # noqa: S314 - our own
        assert 'id="headline"' not in said
        assert "<figure>" not in said


def test_failed_checks_stand_above_the_figures(root: ET.Element) -> None:
    said = text(section(root, "guest"))
    assert "1 of 2 checks failed; do not use these figures: taint" in said
    assert said.index("checks failed") < said.index("medians")
    assert "checks failed" not in text(section(root, "native"))


def test_many_traced_functions_have_few_rows() -> None:
    many = {f"f{i}": 10 + i for i in range(40)}
    document = made.guest()
    document.run["breakdown"] = [
        made.traced("bind", arm, 2000, many) for arm in ("absent", "on")
    ]
    ((name, sheet),) = breakdown.sheets(document)
    assert name == "bind"
    *parts, whole = sheet.rows
    assert len(parts) == breakdown.MOST + 1
    assert parts[0][0] == "f39"
    assert whole[2:] == ["100.0 %", "100.0 %"]
    assert not list(breakdown.sheets(made.native()))
