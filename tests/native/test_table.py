# SPDX-License-Identifier: GPL-2.0-only
"""The table: emulated times have no ratio, and share no table with work."""

import io

from rich.console import Console

from bulkmm import stats, table
from bulkmm.results import Check, Document
from bulkmm.table import TIMES


def document(accelerator: str, scenario: str, base: str, variant: str) -> Document:
    slow = [300e6 + i * 1e6 for i in range(15)]
    fast = [100e6 + i * 1e6 for i in range(15)]
    arms = [
        stats.summarise(scenario, base, "ns", 1677721600, slow),
        stats.summarise(scenario, variant, "ns", 1677721600, fast),
        stats.summarise(scenario, "again", "ns", 1677721600, slow),
    ]
    machine = {"accelerator": accelerator, "kernel": "6.18", "cpu": {"model": "A CPU"}}
    if accelerator != "native":
        machine["guest"] = {"kernel": "6.12.107"}
    return Document(
        machine=machine,
        results=arms,
        ratios=[stats.ratio(arms[0], arm) for arm in arms[1:]],
        checks=[Check("bytes", ok=True, detail="")],
    )


NATIVE = document("native", "memmap-stamp", "rebuild", "bulkmm")
EMULATED = document("TCG", "pmem-fsdax-100g", "off", "on")
WORK = {  # instructions and stores of each arm
    "off": (18_660_000, 6_711_000),
    "on": (5_850_000, 4_142_000),
    "again": (18_661_000, 6_711_000),
}


def counted(scenario: str = "pmem-fsdax-100g") -> Document:
    """Return an emulated run whose work was counted as well."""
    held = document("TCG", scenario, "off", "on")
    for i, unit in enumerate(("instructions", "stores")):
        arms = [
            stats.summarise(scenario, arm, unit, 64, [work[i] + k for k in range(15)])
            for arm, work in WORK.items()
        ]
        held.results += arms
        held.ratios += [stats.ratio(arms[0], arm) for arm in arms[1:]]
    return held


def shown(*documents: Document, width: int = 80) -> str:
    out = io.StringIO()
    table.print_documents(list(documents), Console(file=out, width=width))
    return out.getvalue()


def test_emulated_times_have_no_ratio() -> None:
    for document in (EMULATED, counted()):
        assert any(ratio.unit == "ns" for ratio in document.ratios)
        for text in (shown(document), table.markdown(document)):
            assert TIMES not in text
            assert "published" not in text


def test_times_and_work_share_no_table() -> None:
    text = shown(NATIVE, counted())
    assert text.index("GB/s") < text.index("bulkmm") < text.index("fewer instructions")
    assert f"2.87{TIMES}" in text
    assert "68.6 %" in text
