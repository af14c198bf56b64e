# SPDX-License-Identifier: GPL-2.0-only
"""Many scenarios as grids: what is in them, what is not, and how wide they are."""

from bulkmm import grid, stats
from bulkmm.results import Document, Result

SIZES = ("4k", "64k", "2m", "1g")
TIMES_NS = {"glibc": 200, "glibc-again": 201, "plain": 100, "bulkmm": 50, "limit": 40}


def arm(scenario: str, variant: str, ns: float) -> Result:
    samples = [ns + i / 100 for i in range(11)]
    return stats.summarise(scenario, variant, "ns", 1000, samples)


def document(sizes: tuple[str, ...] = SIZES, accelerator: str = "native") -> Document:
    found = Document(machine={"accelerator": accelerator})
    for size in sizes:
        arms = {v: arm(f"copy-{size}", v, ns) for v, ns in TIMES_NS.items()}
        found.results += arms.values()
        found.ratios += [
            stats.ratio(arms[base], arms[variant])
            for base in ("limit", "plain", "glibc")
            for variant in ("glibc-again", "bulkmm")
        ]
    return found


def factor(ratio: object) -> str:
    return f"{getattr(ratio, 'ratio', 0):.1f}"


def test_goals_are_against_the_fastest_peer() -> None:
    """Neither the slower one nor the bound that nobody can beat."""
    _, best = grid.grids(document(), factor)
    assert best.headings == ["best peer / ours", "bulkmm"]
    assert best.rows == [[f"copy-{size}", "plain 2.0"] for size in SIZES]


def test_control() -> None:
    (line,) = grid.controls(document())
    assert line.startswith("copy: A/A control glibc / glibc-again: 0 of 4 ~")


def test_emulated_results_have_no_throughput() -> None:
    assert not grid.grids(document(accelerator="TCG"), factor)


def test_neither_one_backend_nor_threads_are_a_column() -> None:
    found = document()
    found.results += [
        arm("copy-1g", "bulkmm:movnti", 50),
        arm("copy-1g", "limit:rep", 40),
        arm("copy-1g", "bulkmm-2t", 25),
    ]
    found.run["picks"] = {"copy-4k": {"bulkmm": "movnti"}}
    rates, best = grid.grids(found, factor)
    assert rates.headings == ["copy, GB/s", "glibc", "plain", "bulkmm", "limit"]
    assert best.rows[0] == ["copy-4k", "movnti; plain 2.0"]
    assert "bulkmm:movnti" in grid.grids(found, factor, all_rows=True)[0].headings
