# SPDX-License-Identifier: GPL-2.0-only
"""Each path on each kernel of the lab, reduced: the module's result is the kernel's.

Nothing is booted: the code runs in a process.
"""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from nativelib import SIZES, Pair, harness, measured, prepared, small, wrong

from bulkmm import cli
from bulkmm.errors import BulkmmError, Exit
from bulkmm.native import measure
from bulkmm.native.run import SUBJECTS
from bulkmm.results import Document

pytestmark = pytest.mark.lab

SMALL = ("64k", "256k")
USED = ("-again", "-then-read", "-then-write", "-then-random")
SCENARIOS = {
    "memmap": {
        *("pmem-fsdax-3g", "pmem-devdax-3g"),
        *("pmem-devdax-3g-align-1g", "pmem-devdax-3g-map-mem"),
    },
    "clear": {
        *(f"thp-{size}{how}" for size in SMALL for how in ("", "-populate")),
        *(f"thp-2m{how}" for how in ("-populate", *USED)),
        "thp-2m",
    },
    "copy": {*(f"copy-2m{hint}" for hint in ("", "-middle", "-last"))},
    "vmap": {
        *(f"vmap-100m-order{order}" for order in (0, 4, 8, 9)),
        *("vmap-100m-order0-far", "vmap-100m-mixed", "vmap-1page"),
        *("vmap-100m-order8-adjacent", "vmap-100m-order9-empty"),
        *(f"vmap-256k-order0{how}" for how in ("", "-far", "-split", "-empty")),
        *("vmalloc-1m", "vmalloc-100m-huge"),
        *("ioremap-256k", "ioremap-1m", "ioremap-100m", "ioremap-1g"),
    },
}
MORE = {  # with all rows
    "memmap": {
        *("pmem-fsdax-3g-map-mem", "pmem-fsdax-3g-odd", "pmem-fsdax-3g-early"),
        *("pmem-devdax-3g-align-4k", "pmem-devdax-3g-align-1g-map-mem"),
        *("pmem-devdax-3g-odd", "pmem-devdax-3g-early-map-mem", "hmm-private-3g"),
    },
    "clear": {
        *("thp-16k", "thp-16k-again", "thp-32k", "hugetlb-2m", "hugetlb-2m-populate"),
        *(f"thp-64k{how}" for how in USED),
    },
    "copy": {
        *(f"copy-64k{hint}" for hint in ("", "-middle", "-last")),
        *(f"copy-2m{how}" for how in USED[1:]),
    },
    "vmap": set[str](),
}
UNSERVED = {"copy": {"migrate-2m", "migrate-64k"}}
# without pages of these sizes, and with another function that migrates them
LACKS = {"6.1": ("thp-16k", "thp-32k", "thp-64k", "thp-256k", "migrate")}


@pytest.mark.parametrize("subject", SUBJECTS)
def test_the_module_leaves_what_the_kernel_leaves(pair: Pair, subject: str) -> None:
    document = measured(replace(small(pair, subject), backends=True), subject)
    assert not wrong(document)
    held = {(one.scenario, one.variant) for one in document.results}
    lacks = LACKS.get(pair.series, ())
    named = SCENARIOS[subject] | MORE[subject], UNSERVED.get(subject, set())
    every, unserved = ({n for n in s if not n.startswith(tuple(lacks))} for s in named)
    assert {scenario for scenario, _ in held} == every | unserved
    # a use that writes over the result leaves nothing to compare
    compared = {one.name.split()[2] for one in document.checks}
    assert compared == {n for n in every | unserved if not n.endswith("-then-write")}
    for scenario in every:
        assert (scenario, "stock") in held
        assert ((scenario, "limit") in held) != scenario.endswith(USED)
        assert {v for s, v in held if s == scenario} & {*measure.SUBJECTS[subject].ours}
    backends = {variant for _, variant in held if variant.startswith("bulkmm")}
    streams = any(variant.endswith(":movnti") for variant in backends)
    assert streams == (subject in ("memmap", "clear"))
    assert picked(document) <= {"kernel", *(v.partition(":")[2] for v in backends)}
    assert document.machine["kernel"].startswith(pair.series)


def picked(document: Document) -> set[str]:
    """Return the names of what the module selected."""
    of = [one for one in document.run["picks"].values() if "bulkmm" in one]
    return {name for one in of for name in one["bulkmm"].split("/")}


def test_what_the_kernel_does_alone(pair: Pair) -> None:
    job = measure.Job(pair.kernel, None, rounds=1, processes=1, size=2 << 30)
    document = measured(job, "hotplug")
    assert not wrong(document)
    assert {one.variant for one in document.results} >= {"stock", "limit"}


@pytest.mark.parametrize("subject", SUBJECTS)
def test_a_broken_word_is_found(older: Pair, subject: str) -> None:
    document = measured(replace(small(older, subject), corrupt=True), subject)
    ours = {one.variant for one in document.results} & {*measure.SUBJECTS[subject].ours}
    broken = wrong(document)
    assert broken == [c.name for c in document.checks if c.name.split()[-1] in ours]
    assert len(broken) >= len(SCENARIOS[subject])


def shared(pair: Pair, subject: str, *words: str) -> tuple[int, str, list[int]]:
    """Return code, last words, and reads of the clock, with shared memory read-only."""
    said = [subject, f"--size={SIZES[subject]}", "--seed=1", "--shared", *words]
    ended = harness(prepared(pair.kernel, pair.module, "host").path, *said)
    events = [json.loads(line) for line in ended.out.splitlines()]
    seen = [one["clocks"] for one in events if one["event"] == "shared"]
    return ended.code, ended.said, seen


def test_clearing_shares_nothing(pair: Pair) -> None:
    code, said, clocks = shared(pair, "clear", "--backends")
    assert code == 0, said
    assert len(clocks) > 3 * len(SCENARIOS["clear"])
    assert set(clocks) == {0}


def test_a_shared_store_is_found(pair: Pair) -> None:
    code, said, _ = shared(pair, "clear", "--break-one-word")
    assert code == Exit.ENVIRONMENT
    assert said.startswith("SIGSEGV in bulkmm:bmm_calibrate")


@pytest.mark.parametrize("mitigations", ["on", "off"])
def test_mitigations(older: Pair, mitigations: str) -> None:
    document = measured(
        replace(small(older, "memmap"), mitigations=mitigations), "memmap"
    )
    assert not wrong(document)
    assert ("plain" in document.run["returns"]) == (mitigations == "off")


def test_the_kernel_alone(pair: Pair) -> None:
    document = measured(replace(small(pair, "memmap"), module=None), "memmap")
    assert {one.variant.partition(":")[0] for one in document.results} == {
        *("stock", "stock-again", "limit")
    }


def test_a_scenario_that_is_none(older: Pair) -> None:
    with pytest.raises(BulkmmError, match="no scenario vmap-1t of this size"):
        measured(replace(small(older, "vmap"), only=("vmap-1t",)), "vmap")


def test_only_what_is_named_is_run(older: Pair) -> None:
    names = {"vmap-1page", "thp-64k"}
    job = replace(small(older, "clear"), only=tuple(names))
    found = measured(job, "clear", "vmap", "memmap")
    assert {row.scenario for row in found.results} == names


def test_memory_that_is_written_repeatedly_counts_once(older: Pair) -> None:
    again = replace(small(older, "clear"), only=("thp-2m-again",))
    assert measured(again, "clear").run["bytes"] == SIZES["clear"]


def test_the_command(older: Pair, tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    words = ["bench", "kernel", "memmap", "--size", "1G", "--rounds", "1"]
    words += ["--processes", "2", "--scenario", "pmem-fsdax-1g"]
    words += ["--kernel", str(older.kernel), "--module", str(older.module)]
    assert cli.main([*words, "-o", str(file)]) == Exit.OK
    assert Document.read(file).scenarios == ["pmem-fsdax-1g"]
    assert cli.main([*words, "--break-one-word"]) == Exit.VERDICT
