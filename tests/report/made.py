# SPDX-License-Identifier: GPL-2.0-only
"""Results made up, in the names of the bench and of the lab."""

import random
from collections.abc import Iterable
from typing import Any

from bulkmm.results import stats
from bulkmm.results.model import Check, Document, Result

HOSTILE = 'x"<script>alert(1)</script>&amp;$y$'
GIB = 1 << 30


def machine(accelerator: str = "native") -> dict[str, Any]:
    """Return a machine."""
    facts: dict[str, Any] = {
        "accelerator": accelerator,
        "architecture": "x86_64",
        "cpu": {"model": "A & B", "family": 25, "model_number": 1, "cores": 2},
        "kernel": "6.18.44",
        "revision": "0123abc",
    }
    if accelerator != "native":
        facts["guest"] = {"kernel": "7.3.4+deb13-cloud-amd64"}
    return facts


def arm(scenario: str, variant: str, ms: float, n: int = 9) -> Result:
    """Return samples around a time."""
    chance = random.Random(f"{scenario} {variant}")  # noqa: S311
    samples = [ms * 1e6 * chance.uniform(0.97, 1.05) for _ in range(n)]
    return stats.summarise_arm(scenario, variant, "ns", GIB, samples)


def work(scenario: str, variant: str, millions: int, n: int = 5) -> list[Result]:
    """Return instructions and, as older results have, half as many stores."""
    return [
        stats.summarise_arm(
            scenario, variant, unit, GIB, [millions * share + i for i in range(n)]
        )
        for unit, share in (("instructions", 1_000_000), ("stores", 500_000))
    ]


def document(
    arms: Iterable[Result], pairs: Iterable[tuple[str, str]], where: str = "native"
) -> Document:
    """Return a document with the ratios of these pairs in each scenario."""
    results = list(arms)
    by_key = {(r.scenario, r.variant, r.unit): r for r in results}
    units = list(dict.fromkeys(r.unit for r in results))
    scenarios = list(dict.fromkeys(r.scenario for r in results))
    ratios = [
        stats.compute_ratio(
            by_key[scenario, base, unit], by_key[scenario, variant, unit]
        )
        for scenario in scenarios
        for unit in units
        for base, variant in pairs
        if {(scenario, base, unit), (scenario, variant, unit)} <= by_key.keys()
    ]
    checks = [Check("every byte", ok=True, detail="")]
    run = {"scenario": "all", "seed": 7}
    return Document(machine(where), results, ratios, checks, run)


def guest() -> Document:
    """Return a run of the lab, and a name that would break a careless page.

    Emulated: its times are there, and work that was counted.
    """
    arms = [
        arm(scenario, variant, ms, 5)
        for scenario in ("pmem-fsdax-100g", "pmem-devdax-100g", HOSTILE)
        for variant, ms in (("absent", 900), ("off", 905), ("on", 500))
    ]
    arms += [one for r in arms for one in work(r.scenario, r.variant, len(r.variant))]
    pairs = [("off", "on"), ("absent", "off")]
    result = document(arms, pairs, "TCG")
    result.run |= {"scenario": HOSTILE, "published": ["RK3588: 8.3x, once"]}
    result.checks.append(Check("taint", ok=False, detail=HOSTILE))
    return result


def bench() -> Document:
    """Return a bench of several processes, as ``bench all`` leaves it."""
    times = {
        "memmap-stamp": {"rebuild": 120, "bulkmm": 80, "limit": 79},
        **{
            f"clear-{size}": {
                "rep-stosb": 90,
                "rep-stosb-again": 91,
                "libpmem2": 50,
                "bulkmm-cached": 70,
                "bulkmm-streaming": 52,
                "limit": 49,
            }
            for size in ("4k", "64k", "2m", "32m")
        },
        "copy-64m": {"glibc": 100, "bulkmm-streaming": 90},
    }
    # a backend and threads, of which the tables say nothing
    times["clear-2m"] |= {"bulkmm-streaming:movnti": 52, "bulkmm-streaming-2t": 26}
    results = [
        stats.of_processes(
            scenario, name, GIB, [[ms * 1_000_000 + i] for i in range(5)]
        )
        for scenario, variants in times.items()
        for name, ms in variants.items()
    ]
    result = document(results, [])
    for scenario in times:
        arms = {r.variant: r for r in results if r.scenario == scenario}
        base, *names = arms
        result.ratios += stats.judge_ratios(
            stats.compare_arms(arms, [(base, name) for name in names])
        )
    result.machine["cpu"]["caches"] = {"L2": "512K"}
    result.run |= {"processes": 5, "picks": {"memmap-stamp": {"limit": "rep"}}}
    return result


def kernel(release: str = "7.3.4", bulkmm_ms: float = 40) -> Document:
    """Return a bench of a kernel's own code."""
    arms = []
    for scenario in ("pmem-fsdax-100g", "thp-2m-populate"):
        times = {"stock": 100, "stock-again": 100, "bulkmm": bulkmm_ms, "limit": 39}
        arms += [arm(scenario, name, ms) for name, ms in times.items()]
        arms[-4].median = 100e6
    pairs = [("stock", name) for name in ("stock-again", "bulkmm", "limit")]
    result = document(arms, pairs)
    result.machine["kernel"] = release
    picks = {"thp-2m-populate": {"bulkmm": "clzero"}}
    result.run |= {"processes": 9, "picks": picks}
    return result
