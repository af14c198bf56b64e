# SPDX-License-Identifier: GPL-2.0-only
"""The cover letters of upstream/, and what they repeat of results/.

A letter that compares with "base" has rows of the table in docs/upstream.md, of its
series and of the CPU that it names by family and model.
"""

import re
from collections.abc import Container
from pathlib import Path

import result_files
from docpages import ROOT

from bulkmm.report import patched
from bulkmm.results import submit
from bulkmm.results.conditions import DASH
from bulkmm.results.model import Document
from bulkmm.results.result_tables import TIMES
from bulkmm.results.size_grid import AGAINST

LETTERS = sorted((ROOT / "upstream").glob("*/*/0000-cover-letter.patch"))
SCENARIOS = {  # by what a letter calls them
    "fsdax, map=dev": "pmem-fsdax-16g",
    "devdax, 2 MiB, map=dev": "pmem-devdax-16g",
    "devdax, 1 GiB, map=dev": "pmem-devdax-16g-align-1g",
    "devdax, 2 MiB, map=mem": "pmem-devdax-16g-map-mem",
    "device-private": "hmm-private-16g",
    "2 MiB, touched": "thp-2m",
    "2 MiB, populated": "thp-2m-populate",
    "2 MiB, touched, then read": "thp-2m-then-read",
    "2 MiB, touched, then written": "thp-2m-then-write",
    "256 KiB, touched": "thp-256k",
    "256 KiB, populated": "thp-256k-populate",
    "64 KiB, touched": "thp-64k",
    "64 KiB, populated": "thp-64k-populate",
    "first": "copy-2m",
    "middle": "copy-2m-middle",
    "last": "copy-2m-last",
    "the last block joins": "hotplug-contiguous",
    "all blocks are online": "hotplug-contiguous-whole",
    "vmap(), single pages": "vmap-100m-order0",
    "spread over 64 GiB": "vmap-100m-order0-far",
    "64 KiB runs": "vmap-100m-order4",
    "1 MiB runs": "vmap-100m-order8",
    "2 MiB runs": "vmap-100m-order9",
    "all contiguous (PMDs)": "vmap-100m-order8-adjacent",
    "one page a call": "vmap-1page",
    "vmalloc(), 1 MiB a call": "vmalloc-1m",
    "ioremap(), 1 MiB a call": "ioremap-1m",
    "ioremap(), 100 MiB": "ioremap-100m",
}
# the words around the figures of format_conditions()
CONDITIONS = re.compile(r"95 %\s+intervals of \d+ processes;[^;]*? \d+ % at most")
ASCII = str.maketrans({"\N{MICRO SIGN}": "u", TIMES: "x", DASH: "-"})
CPU = re.compile(r"family (\d+), model (\d+)")
TIME = r"[\d.]+ [mun]?s"
ROW = re.compile(rf"^ +(\S.*?)  +({TIME}  +{TIME}  +\d.*)$", re.MULTILINE)


def has_result(text: str) -> bool:
    """Return whether results/ has what a letter's table shows."""
    return "--against patched" in text


def find_result(letter: Path) -> Path:
    """Return the result of a letter's series, of the CPU and returns that it names."""
    text = letter.read_text("utf-8")
    cpu = CPU.search(text)
    assert cpu, "it names no CPU, as in: family 25, model 17"
    end = "-plain" if submit.PLAIN_RETURNS in text else ""
    name = f"*-{cpu[1]}-{cpu[2]}-*/patched-{letter.parts[-3]}{end}.json"
    files = sorted(result_files.RESULTS.glob(name))
    assert files, f"there is no results/{name}"
    return files[0]


def format_conditions(document: Document, scenarios: Container[str]) -> str:
    """Return what a letter with these scenarios says of how they were measured."""
    controls = [
        one.ratio
        for one in document.ratios
        if one.variant == f"{AGAINST}-again" and one.scenario in scenarios
    ]
    percent = max((abs(round(100 * ratio) - 100) for ratio in controls), default=0)
    return (
        f"95 % intervals of {document.run['processes']} processes; two equal kernels "
        f"differ by {percent} % at most"
    )


def format_rows(document: Document) -> dict[str, str]:
    """Return the rows of a result as letters have them, in ASCII, by scenario."""
    rows = {}
    for scenario, times, gain, *_ in patched.make_table(document).rows:
        row = f"{times} {gain}".replace(" →", "").replace(" !", "")
        rows[scenario] = row.replace(" ~", " np").translate(ASCII)
    return rows


def read_rows(text: str) -> dict[str, str]:
    """Return the rows of a letter, with single spaces, by what it calls them."""
    rows = {label: " ".join(figures.split()) for label, figures in ROW.findall(text)}
    return {label: row.replace(", not proven", " np") for label, row in rows.items()}


def drop_results(text: str) -> str:
    """Return a letter without the figures that test_letters.py compares."""
    if not has_result(text):
        return text
    return CONDITIONS.sub(" ", ROW.sub(" ", text))
