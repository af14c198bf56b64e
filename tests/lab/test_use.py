# SPDX-License-Identifier: GPL-2.0-only
"""The jobs of clear-populate and mthp-pair, and their verdicts."""

from typing import Any

from bulkmm.lab import scenario
from bulkmm.lab.families import use
from bulkmm.lab.machine.vm import Outcome

Event = dict[str, Any]
NEW, OLD = "7.3.4+deb13-cloud-amd64", "6.12.107+deb13-cloud-amd64"
LATER = ("7.4.1+deb13-cloud-amd64", "7.10.1+deb13-amd64", "8.0-rc1-amd64")
WAYS = (*use.TOUCHING, *use.POPULATING, *use.LOCKED, *use.GUESTS, "vfio")
MODULES = ["kvm", "kvm_amd", "vfio", "vfio_pci", "vfio_iommu_type1"]


def brought(way: str, **changed: int) -> Event:
    """Return what a way comes to when all is right."""
    touched = way in use.TOUCHED
    counts = {"streaming": 0 if touched else 4, "cached": 4 if touched else 0}
    return {
        "event": "brought", "way": way, "cached_max": 2 << 20, **counts, **changed
    }  # fmt: skip


def failed(name: str, events: list[Event], release: str = NEW) -> list[str]:
    """Return the names of the checks that fail."""
    work = scenario.find(name).make()
    start = {"event": "start", "release": release}
    outcome = Outcome(lambda _event: None, [start, *events])
    return [check.name for check in work.checks(outcome) if not check.ok]


def seen(*changed: Event) -> list[Event]:
    """Return a run, some of whose ways came to something else."""
    other = {one["way"]: one for one in changed}
    none = brought("touch", cached_max=0, streaming=4, cached=0)
    return [*(other.get(way, brought(way)) for way in WAYS), none]


def test_populated_pages_bypass_the_cache() -> None:
    assert failed("clear-populate", seen()) == []
    wrong = seen(brought("vfio", streaming=3, cached=1))
    assert failed("clear-populate", wrong) == ["vfio bypasses the cache"]
    wrong = seen(brought("kvm-run", streaming=1))
    assert failed("clear-populate", wrong) == ["kvm-run is a touch"]
    wrong = seen(brought("brk-locked", streaming=0))
    assert failed("clear-populate", wrong) == ["brk-locked bypasses the cache"]


def test_a_way_that_the_older_kernel_has_not() -> None:
    none = seen(brought("mprotect-locked", streaming=0))
    assert failed("clear-populate", none, OLD) == []
    for release in (NEW, *LATER):
        wrong = failed("clear-populate", none, release)
        assert wrong == ["mprotect-locked bypasses the cache"]


def test_every_way_is_needed() -> None:
    some = [one for one in seen() if one.get("way") != "vfio"]
    assert failed("clear-populate", some) == ["every way"]


def test_devices_only_where_there_are_some() -> None:
    work = scenario.find("clear-populate").make()
    assert "brought_by_device" in work.job(MODULES)
    assert "kvm" not in work.job([])
    assert "init_on_alloc=0" in work.cmdline


def paired(arm: str, hits: int, together_ns: int = 90) -> list[Event]:
    """Return a visit of two rounds."""
    visit = {"event": "paired", "arm": arm, "rounds": 2, "folios": 10, "hits": hits}
    times = {"ns0": 100, "ns1": 90, "together_ns": together_ns}
    pair = {"event": "pair", "arm": arm, "folios": 10, **times}
    return [visit, pair, pair]


SERVED = [*paired("off", 0), *paired("cached", 40), *paired("streaming", 40)]


def test_both_cpus_at_once_and_served() -> None:
    served = SERVED
    assert failed("mthp-pair", served) == []
    apart = [one | {"together_ns": 0} for one in served]
    assert failed("mthp-pair", apart) == ["both at once"]
    lost = [*served, *paired("cached", 39)]
    assert failed("mthp-pair", lost) == ["hits (cached)"]
