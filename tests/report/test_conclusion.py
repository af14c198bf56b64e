# SPDX-License-Identifier: GPL-2.0-only
"""What is concluded on top of the page, and how to take its results again."""

import shlex
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import made
from pagelib import named, section, text

from bulkmm import cli, table
from bulkmm.report.conclusion import commands, conclude
from bulkmm.results import Document, Ratio

ROOT = Path(__file__).parents[2]


def test_a_conclusion_stands_on_top(root: ET.Element) -> None:
    machine = "native On A & B (family 25, model 1), kernel 6.18.44:"
    said = [text(p) for p in named(named(root, "header")[0], "p")]
    assert said[0].startswith(f"{machine} of 1 comparison 1 is faster than the kernel")
    assert said[0].endswith(f"loop (1.51{table.TIMES}). 1 of 1 checks passed.")
    assert said[1].startswith(f"{machine} of 8 comparisons 8 are faster than rep-stosb")
    assert said[2].startswith("TCG Emulated (TCG), kernel 7.3.4+deb13-cloud-amd64: ")
    assert said[2].endswith(": 1 of 2 checks failed: no figure here is valid.")


def conclusion_of(*pairs: tuple[str, float], where: str = "native", **more: Any) -> str:
    """Return what is concluded of scenarios, each with its ratio."""
    ratios = [
        Ratio(name, "stock", "bulkmm", ratio, (ratio, ratio), **held)
        for name, ratio in pairs
        if (held := {"significant": True, "n": 9, **more})
    ]
    arms = [
        made.arm(name, variant, 1)
        for name, _ in pairs
        for variant in ("stock", "bulkmm")
    ]
    return conclude(Document(made.machine(where), arms, ratios))


def test_what_is_concluded() -> None:
    said = conclusion_of(("a", 2), ("b", 3), ("c", 0.9), ("d", 1.01))
    assert said.endswith(
        f"of 4 comparisons 3 are faster than the stock kernel's own code (median "
        f"2.00{table.TIMES}, 1.01{table.TIMES} to 3.00{table.TIMES}), 1 slower "
        f"(0.90{table.TIMES})."
    )
    for more in ({"significant": False}, {"unstable": True}):
        said = conclusion_of(("a", 2), **more)
        assert "0 are faster" in said
        assert said.endswith("1 not proven or unstable.")
    said = conclusion_of(("a", 2), ("b", 4), where="TCG", unit="instructions")
    assert "2 are less work than" in said
    assert "(median 67 %, 50 % to 75 %)" in said
    assert said.endswith("Work is no time.")
    assert table.TIMES not in said


def test_how_to_take_it_again(root: ET.Element) -> None:
    said = [text(e) for e in named(section(root, "Reproduce"), "pre")]
    assert said[0] == "git checkout 0123abc && make build .venv/bin/bulkmm bench all"
    held = Document.read(next(ROOT.glob("results/*/kernel-6.12.json")))
    held.machine["revision"] = "0123abc+"
    _, changed, again = commands(held)
    assert changed.startswith("#")
    words = shlex.split(again)
    assert words[:3] == [".venv/bin/bulkmm", "bench", "kernel"]
    asked = cli.parser().parse_args(words[1:])
    taken = held.run["processes"], held.run["memmap.rounds"]
    assert (asked.kernel, asked.processes, asked.rounds) == ("6.12", *taken)
    lab = made.guest()
    lab.run = {
        "scenario": "pmem-fsdax-100g",
        "srcversion": "x",
        "arch": "x86_64",
        "rounds": 5,
    }
    asked = cli.parser().parse_args(shlex.split(commands(lab)[-1])[1:])
    assert (asked.scenario, asked.kernel, asked.rounds) == ("pmem-fsdax-100g", "7.3", 5)
