# SPDX-License-Identifier: GPL-2.0-only
"""The job a persistent-memory run writes, and how its report is judged."""

from typing import Any

import pytest

from bulkmm.errors import GuestError
from bulkmm.lab import scenario
from bulkmm.lab.choices import Options, device_size
from bulkmm.lab.families import pmem
from bulkmm.lab.machine.vm import Outcome

FSDAX = scenario.find("pmem-fsdax-100g")
DEVDAX = scenario.find("pmem-devdax-100g")
PRIVATE = scenario.find("hmm-private-64g")
GIB = 1 << 30


def lines(one: scenario.Scenario = FSDAX, **chosen: Any) -> list[str]:
    work = one.make(**{"seed": 1, **chosen})
    return work.job(["libnvdimm", "nfit"]).splitlines()


def outcome(*events: dict[str, Any]) -> Outcome:
    return Outcome(lambda _event: None, list(events))


def test_every_arm_is_traced_once() -> None:
    traced = [li.split()[1] for li in lines(rounds=2) if li.startswith("graphed ")]
    assert traced == list(pmem.ARMS)


def test_every_round_binds_every_arm_once() -> None:
    order = [li.split()[1] for li in lines(rounds=7) if li.endswith(" round")]
    assert len(order) == 21
    for at in range(0, 21, 3):
        assert sorted(order[at : at + 3]) == sorted(pmem.ARMS)


def test_order_follows_the_seed() -> None:
    assert lines(rounds=9) == lines(rounds=9)
    assert lines(rounds=9) != lines(rounds=9, seed=2)


def test_seeds_differ_by_default() -> None:
    assert Options().seed != Options().seed


def test_full_size_compares_first_and_last() -> None:
    compared = [li for li in lines(rounds=4) if li.startswith("compare")]
    assert len(compared) == 1 + 3
    assert compared[-3:] == ["compare last", "compare flipped", "compare restored"]


def test_reduced_size_compares_every_bind() -> None:
    compared = [li for li in lines(rounds=4, size=GIB) if li.startswith("compare r")]
    assert len(compared) == 4 + 1


def test_private_memory_is_not_the_machines() -> None:
    work = PRIVATE.make(size=GIB, seed=1)
    assert work.pmem == 0
    job = work.job([]).splitlines()
    assert f"private {GIB}" in job
    assert "use_device" not in job
    assert "limit 1 64" in job


def test_what_is_bound_is_unbound() -> None:
    job = lines(rounds=3)
    assert len([li for li in job if li.startswith("bind ")]) == job.count("unbind")


def test_broken_word_stays_broken_and_the_device_unused() -> None:
    job = lines(break_one_word=True)
    assert job.count("flip") == 1
    assert "use_device" not in job


def test_alignment_of_devdax() -> None:
    assert "namespace devdax mem 1G" in lines(DEVDAX, align="1G", map="mem")


@pytest.mark.parametrize(
    ("one", "align", "where", "pages"),
    [
        (FSDAX, "2M", "dev", 1 << 19),
        (FSDAX, "2M", "mem", 1 << 19),
        (DEVDAX, "2M", "dev", 1 << 19),
        (DEVDAX, "4K", "mem", 1 << 19),
        (DEVDAX, "2M", "mem", 1 << 17),
        (DEVDAX, "1G", "mem", 256),
    ],
)
def test_bytes_written(
    one: scenario.Scenario, align: str, where: str, pages: int
) -> None:
    options = Options(align=align, map=where)
    report = outcome({"event": "bind", "pages": 1 << 19})
    assert pmem.written(one, options, report) == pages * 64


def verdict(label: str, words: int, blocks: int = 0, word: int = 5) -> Any:
    said = (
        f"pages=10 pageblocks=1 words_differ={words} pageblocks_differ={blocks} "
        f"first_pfn=7 first_word={word} was=0000000000000000 is=0000000000000001"
    )
    event = {"event": "compare", "label": label, "verdict": said}
    return pmem.compared(event)


@pytest.mark.parametrize(
    ("label", "words", "blocks", "word", "ok"),
    [
        ("last", 0, 0, 0, True),
        ("last", 1, 0, 5, False),
        ("last", 0, 1, 0, False),
        ("broken-on-purpose", 1, 0, 5, False),
        ("flipped", 1, 0, 5, True),
        ("flipped", 0, 0, 0, False),
        ("flipped", 2, 0, 5, False),
        ("flipped", 1, 0, 4, False),
    ],
)
def test_comparison(
    label: str, words: int, blocks: int, word: int, *, ok: bool
) -> None:
    assert verdict(label, words, blocks, word).ok is ok


def test_a_comparison_of_nothing_fails() -> None:
    said = "pages=0 words_differ=0 pageblocks_differ=0"
    event = {"event": "compare", "label": "last", "verdict": said}
    assert not pmem.compared(event).ok


def test_a_garbled_comparison_is_an_error() -> None:
    with pytest.raises(GuestError, match="the comparison said"):
        pmem.compared({"event": "compare", "label": "last", "verdict": "?"})


def counters(hits: int, **fallbacks: int) -> dict[str, Any]:
    counted = {f"fallback_{k}": v for k, v in fallbacks.items()}
    return {"event": "counters", "hits": hits, **counted}


@pytest.mark.parametrize(
    ("hits", "fallbacks", "ok"),
    [
        ((2, 3), {"off": 5}, True),
        ((2, 2), {"off": 5}, False),
        ((2, 3), {"unverified": 1}, False),
    ],
)
def test_counters_are_added_up_over_loads(
    hits: tuple[int, int], fallbacks: dict[str, int], *, ok: bool
) -> None:
    report = outcome(counters(hits[0], **fallbacks), counters(hits[1]))
    assert pmem._counted(Options(rounds=3), report).ok is ok


@pytest.mark.parametrize(
    ("workers", "shared", "ok"),
    [(1, 0, True), (1, 9, False), (2, 0, False), (2, 9, True)],
)
def test_who_else_stamped(workers: int, shared: int, *, ok: bool) -> None:
    report = outcome({"event": "counters", "shared_bytes": shared})
    assert pmem._shared(Options(workers=workers), report).ok is ok


def test_workers_are_asked_for() -> None:
    assert "BACKEND= WORKERS=3" in lines(workers=3)


def test_samples_leave_out_what_is_no_round() -> None:
    report = outcome(
        {"event": "bind", "arm": "absent", "label": "first", "ns": 9},
        {"event": "bind", "arm": "absent", "label": "round", "ns": 2},
        {"event": "bind", "arm": "on", "label": "round", "ns": 1},
        {"event": "bind", "arm": "on", "label": "proof", "ns": 7},
    )
    assert pmem.samples(report, "ns") == {"absent": [2.0], "off": [], "on": [1.0]}
    assert pmem.first_bind(report) == 9.0


@pytest.mark.parametrize(
    ("text", "size"), [("128M", 128 << 20), ("2g", 2 * GIB), ("100GiB", 100 * GIB)]
)
def test_sizes(text: str, size: int) -> None:
    assert device_size(text) == size


def test_faults_that_were_not_provoked_fail() -> None:
    faults = scenario.find("pmem-faults")
    assert not pmem.checks(faults, Options(), outcome())[0].ok
    seen = {"event": "check", "name": "a", "ok": "no", "detail": "b"}
    assert not pmem.checks(faults, Options(), outcome(seen))[0].ok


def test_the_limit_stores_what_a_bind_writes() -> None:
    assert lines(rounds=3).count("limit 1 64") == 3
    assert "limit 512 8192" in lines(DEVDAX, map="mem")
    assert "limit 512 32768" in lines(DEVDAX)
    assert pmem.limits(outcome({"event": "limit", "ns": 5})) == [5.0]
