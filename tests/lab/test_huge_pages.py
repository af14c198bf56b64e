# SPDX-License-Identifier: GPL-2.0-only
"""The job a huge-page run writes, and how its report is judged."""

from typing import Any

import pytest

from bulkmm.lab import scenario
from bulkmm.lab.families import clear, huge, proof
from bulkmm.lab.machine.vm import Outcome

START = {"event": "start", "release": "6.12.107+deb13-cloud-amd64"}
NEWER = {"event": "start", "release": "7.3.4+deb13-cloud-amd64"}


def work(name: str = "thp-2m", **chosen: Any) -> Any:
    return scenario.find(name).make(**{"seed": 1, **chosen})


def lines(name: str = "thp-2m", **chosen: Any) -> list[str]:
    return work(name, **chosen).job([]).splitlines()


def visit(**changed: Any) -> dict[str, Any]:
    plain = {
        "event": "visit",
        "label": "round",
        "arm": "auto",
        "backend": "",
        "kib": 2048,
        "way": "write-first",
        "hits": 4,
        "small": 0,
        "fell": 0,
        "alloc": 0,
        "alloc_on": "no",
        "min_pages": 16,
        "folios": 4,
        "refused": 0,
        "ns": 4000,
        "wrong": 0,
        "folio": 0,
        "offset": 0,
        "word": "0x0",
        "tags": 0,
        "tags_wrong": 0,
    }
    return {**plain, **changed}


def verdict(
    name: str,
    *visits: dict[str, Any],
    scenario_name: str = "thp-2m",
    start: dict[str, Any] = START,
    allocator: str = "off",
) -> bool:
    """Return the verdict of the check whose name begins like this."""
    zeroing = {"event": "zeroing", "allocator": allocator}
    outcome = Outcome(lambda _event: None, [start, zeroing, *visits])
    found = [c for c in work(scenario_name).checks(outcome) if c.name.startswith(name)]
    assert len(found) == 1
    return found[0].ok


def test_every_round_visits_every_arm_by_every_way() -> None:
    arm, visits = "", []
    for line in lines(rounds=3):
        if line.startswith("clear_arm "):
            arm = line.split()[1]
        if line.startswith("visit round "):
            visits.append((arm, line.split()[2]))
    wanted = {(arm, way) for arm in proof.ARMS for way in clear.ANYWHERE}
    assert set(visits) == wanted
    assert len(visits) == 3 * len(wanted) == work(rounds=3).steps


def test_order_follows_the_seed() -> None:
    assert lines(rounds=9) == lines(rounds=9)
    assert lines(rounds=9) != lines(rounds=9, seed=2)


def test_every_way_is_taken_with_backends_forced() -> None:
    for name in proof.LISTS:
        forced = [li for li in lines("hugetlb-2m") if f"each_backend {name} " in li]
        assert [line.split()[2] for line in forced] == list(clear.HUGETLB)


def test_every_size_has_a_planted_byte() -> None:
    job = lines("mthp")
    assert len([li for li in job if li.startswith("visit planted ")]) == 7
    assert len([li for li in job if li.startswith("folios thp ")]) == 7


def test_a_byte_left_on_purpose_is_no_planted_one() -> None:
    job = lines(break_one_word=True)
    assert not [li for li in job if li.startswith("visit planted")]
    assert job[-2].startswith("visit broken-on-purpose ")
    assert job[-2].endswith(" -p")


def test_a_child_finds_pages_for_its_copies() -> None:
    for shape in clear.SHAPES.values():
        if shape.kind == "hugetlb":
            assert shape.pool == 2 * shape.batch


def test_chosen_folios_and_ways() -> None:
    job = lines(folios=3, ways=("fork",), rounds=1)
    assert "visit round fork -n 3 -b 16" in job
    assert [li for li in job if "write-first" in li] == [
        "visit planted write-first -n 3 -b 16 -p"  # a child looks a second time
    ]


def test_a_gib_is_forked_only_when_asked_to() -> None:
    assert not [li for li in lines("hugetlb-1g") if clear.FORK in li]
    asked = lines("hugetlb-1g", ways=("fork",), rounds=1)
    assert "visit round fork -n 1 -b 1" in asked


def test_chosen_sizes() -> None:
    sizes = [li for li in lines("mthp", kib=(64,)) if li.startswith("folios")]
    assert sizes == ["folios thp 64 0"]


def test_kernel_command_line() -> None:
    assert work().cmdline == ""
    assert work(init_on_alloc="0").cmdline == "init_on_alloc=0"
    whole = "hugepagesz=1G hugepages=2 init_on_alloc=1"
    assert work("hugetlb-1g", init_on_alloc="1").cmdline == whole


@pytest.mark.parametrize(
    ("changed", "ok"),
    [
        ({}, True),
        ({"wrong": 1, "offset": 8}, False),
        ({"folios": 0}, False),
    ],
)
def test_bytes(changed: dict[str, Any], *, ok: bool) -> None:
    assert verdict("every byte zero", visit(**changed)) is ok


@pytest.mark.parametrize(
    ("changed", "ok"),
    [
        ({"wrong": 1, "folio": 3, "offset": 2097144}, True),
        ({"wrong": 0}, False),
        ({"wrong": 2, "folio": 3, "offset": 2097144}, False),
        ({"wrong": 1, "folio": 2, "offset": 2097144}, False),
        ({"wrong": 1, "folio": 3, "offset": 0}, False),
    ],
)
def test_planted_byte(changed: dict[str, Any], *, ok: bool) -> None:
    assert verdict("a planted byte", visit(label="planted", **changed)) is ok


@pytest.mark.parametrize(
    ("label", "wrong", "ok"),
    [
        ("forced", 0, True),
        ("forced", 1, False),
        ("planted", 1, True),
        ("planted", 0, False),
        ("planted", 2, False),
    ],
)
def test_memory_tags(label: str, wrong: int, *, ok: bool) -> None:
    seen = visit(label=label, arm="cached", tags=100, tags_wrong=wrong)
    assert verdict("every memory tag zero", seen) is ok


def test_without_memory_tags_nothing_is_said_of_them() -> None:
    assert proof.tags([visit()]) == []


def test_no_planted_byte_fails() -> None:
    assert not verdict("a planted byte", visit())


@pytest.mark.parametrize(
    ("changed", "ok"),
    [
        ({}, True),
        ({"hits": 3}, False),
        ({"hits": 5}, False),
        ({"fell": 1}, False),
        ({"arm": "off"}, False),
        ({"arm": "off", "hits": 0}, True),
        ({"arm": "absent", "hits": 0}, True),
        ({"arm": "streaming", "hits": 0}, False),
        ({"kib": 32}, False),
        ({"kib": 32, "hits": 0, "small": 4}, True),
        ({"kib": 32, "min_pages": 0}, True),
        ({"small": 4}, False),
        ({"alloc": 1}, False),
    ],
)
def test_hits(changed: dict[str, Any], *, ok: bool) -> None:
    assert verdict("counters", visit(**changed)) is ok


@pytest.mark.parametrize(
    ("name", "start", "allocator", "hits", "ok"),
    [
        ("thp-2m", START, "on", 4, True),
        ("thp-2m", NEWER, "on", 0, True),
        ("thp-2m", NEWER, "on", 4, False),
        ("thp-2m", NEWER, "off", 4, True),
        ("hugetlb-2m", NEWER, "on", 4, True),
        ("hugetlb-2m", NEWER, "on", 0, False),
    ],
)
def test_hits_where_the_allocator_clears(
    name: str, start: dict[str, Any], allocator: str, hits: int, *, ok: bool
) -> None:
    one = visit(hits=hits)
    said = verdict(
        "counters", one, scenario_name=name, start=start, allocator=allocator
    )
    assert said is ok


@pytest.mark.parametrize(
    ("changed", "ok"),
    [
        ({"alloc": 4}, True),
        ({"alloc": 3}, False),
        ({"alloc": 4, "alloc_on": "no"}, False),
        ({"alloc": 4, "arm": "off"}, False),
        ({"alloc": 4, "kib": 1024}, False),
        ({"alloc": 0, "kib": 1024}, True),
    ],
)
def test_hits_of_the_allocator(changed: dict[str, Any], *, ok: bool) -> None:
    one = visit(**{"hits": 0, "alloc_on": "yes", **changed})
    assert verdict("counters", one, start=NEWER, allocator="on") is ok


def forced(arm: str, name: str, way: str) -> dict[str, Any]:
    return visit(label="forced", arm=arm, backend=name, way=way)


def test_every_backend_of_both_lists_by_every_way() -> None:
    whole = [forced(arm, "b", way) for arm in proof.LISTS for way in clear.ANYWHERE]
    assert verdict("backends forced", *whole)
    assert not verdict("backends forced", *whole[1:])
    cached = [one for one in whole if one["arm"] == "cached"]
    assert not verdict("backends forced", *cached)


@pytest.mark.parametrize(
    ("changed", "ok"),
    [
        ({}, True),
        ({"hook": "-16 folio_zero_user: taken"}, False),
        ({"inflight": 1}, False),
        ({"served": "no"}, False),
    ],
)
def test_hook(changed: dict[str, Any], *, ok: bool) -> None:
    seen = {"event": "clear-counters", "hook": "0 folio_zero_user: attached"}
    seen |= {"inflight": 0, "served": "yes", **changed}
    assert verdict("hook attached", seen) is ok


def test_a_hook_nobody_saw_is_not_attached() -> None:
    assert not verdict("hook attached")


def test_times_are_of_one_folio_and_of_rounds_only() -> None:
    taken = [visit(arm=arm, way="write-last") for arm in proof.ARMS]
    taken += [visit(label="forced", arm="cached", ns=9)]
    results, ratios = work().results(Outcome(lambda _event: None, taken))
    assert [r.variant for r in results] == list(proof.ARMS)
    assert {r.scenario for r in results} == {"thp-2m-demand"}
    assert all(r.samples == [1000.0] for r in results)
    assert results[0].bytes == 2 << 20
    assert len(ratios) == len(clear.PAIRS)


@pytest.mark.parametrize(
    ("soaked", "hits", "ok"),
    [
        ({"folios": 5, "wrong": 0}, 7, True),
        ({"folios": 0, "wrong": 0}, 7, False),
        ({"folios": 5, "wrong": 1}, 7, False),
        ({"folios": 5, "wrong": 0}, 0, False),
    ],
)
def test_soak(soaked: dict[str, Any], hits: int, *, ok: bool) -> None:
    one = {**visit(event="soaked", process=1), **soaked}
    total = {"event": "soak", "turns": 10, "loads": 1, "hits": hits}
    work = scenario.find("clear-faults").make()
    found = work.checks(Outcome(lambda _event: None, [one, total]))
    assert all(check.ok for check in found) is ok


@pytest.mark.parametrize(
    ("kib", "named"), [(16, "16k"), (1024, "1m"), (2048, "2m"), (1 << 20, "1g")]
)
def test_sizes(kib: int, named: str) -> None:
    assert huge.size(kib) == named
