# SPDX-License-Identifier: GPL-2.0-only
"""Each path on each kernel of the lab, reduced: the module's result is the kernel's.

Nothing is booted: the code runs in a process.
"""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from nativelib import SIZES, Pair, harness, measure_subjects, prepared, small, wrong

from bench.kernel import measure
from bench.kernel.run import SUBJECTS
from bulkmm import cli
from bulkmm.results.model import Document
from bulkmm.shell.errors import BulkmmError, Exit, UsageError

pytestmark = pytest.mark.lab

# scenarios with all rows, of the newest kernels; docs/native.md names them
MANY = {"memmap": 12, "clear": 19, "copy": 11, "vmap": 19}
# without pages of these sizes, and with another function that migrates them
FEWER = {("6.1", "clear"): 11, ("6.1", "copy"): 2}
# peers of devices whose struct pages are all alike
TEMPLATES = {"template-copy", "template-movnti"}
USED = ("-again", "-then-read", "-then-write", "-then-random")


@pytest.mark.parametrize("subject", SUBJECTS)
def test_the_module_leaves_what_the_kernel_leaves(pair: Pair, subject: str) -> None:
    document = measure_subjects(replace(small(pair, subject), backends=True), subject)
    assert not wrong(document)
    arms = {(one.scenario, one.variant) for one in document.results}
    scenarios = {scenario for scenario, _ in arms}
    assert len(scenarios) == MANY[subject] - FEWER.get((pair.series, subject), 0)
    # a use that writes over the result leaves nothing to compare
    verified_scenarios = {one.name.split()[2] for one in document.checks}
    assert verified_scenarios == {n for n in scenarios if not n.endswith("-then-write")}
    for scenario in (n for n in scenarios if not n.startswith("migrate")):
        assert (scenario, "stock") in arms
        assert ((scenario, "limit") in arms) != scenario.endswith(USED)
        assert {v for s, v in arms if s == scenario} & {
            *measure.SUBJECTS[subject].own_variants
        }
    backends = {variant for _, variant in arms if variant.startswith("bulkmm")}
    streams = any(variant.endswith(":movnti") for variant in backends)
    assert streams == (subject in ("memmap", "clear"))
    assert picked(document) <= {"kernel", *(v.partition(":")[2] for v in backends)}
    assert document.machine["kernel"].startswith(pair.series)


def picked(document: Document) -> set[str]:
    """Return the names of what the module selected."""
    of = [one for one in document.run["picks"].values() if "bulkmm" in one]
    return {name for one in of for name in one["bulkmm"].split("/")}


@pytest.mark.parametrize("subject", ["memmap", "hotplug"])
def test_the_kernel_alone(pair: Pair, subject: str) -> None:
    job = measure.Job(pair.kernel, None, rounds=1, processes=1, size=2 << 30)
    document = measure_subjects(job, subject)
    assert not wrong(document)
    variants = {one.variant.partition(":")[0] for one in document.results}
    templates = TEMPLATES if subject == "memmap" else set()
    assert variants == {"stock", "stock-again", "limit"} | templates


@pytest.mark.parametrize("subject", SUBJECTS)
def test_a_broken_word_is_found(older: Pair, subject: str) -> None:
    document = measure_subjects(replace(small(older, subject), corrupt=True), subject)
    own_variants = {one.variant for one in document.results} & {
        *measure.SUBJECTS[subject].own_variants
    }
    broken = wrong(document)
    assert broken == [
        c.name for c in document.checks if c.name.split()[-1] in own_variants
    ]
    assert broken


def shared(pair: Pair, subject: str, *words: str) -> tuple[int, str, list[int]]:
    """Return code, last words, and reads of the clock, with shared memory read-only."""
    arguments = [subject, f"--size={SIZES[subject]}", "--seed=1", "--shared", *words]
    result = harness(prepared(pair.kernel, pair.module, "host").path, *arguments)
    events = [json.loads(line) for line in result.out.splitlines()]
    clocks = [one["clocks"] for one in events if one["event"] == "shared"]
    return result.code, result.message, clocks


def test_clearing_shares_nothing(pair: Pair) -> None:
    code, message, clocks = shared(pair, "clear", "--backends")
    assert code == 0, message
    assert len(clocks) > 30
    assert set(clocks) == {0}


def test_a_shared_store_is_found(pair: Pair) -> None:
    code, message, _ = shared(pair, "clear", "--break-one-word")
    assert code == Exit.ENVIRONMENT
    assert message.startswith("SIGSEGV in bulkmm:bmm_calibrate")


@pytest.mark.parametrize("mitigations", ["on", "off"])
def test_mitigations(older: Pair, mitigations: str) -> None:
    document = measure_subjects(
        replace(small(older, "memmap"), mitigations=mitigations), "memmap"
    )
    assert not wrong(document)
    assert ("plain" in document.run["returns"]) == (mitigations == "off")


def test_predictors_are_reset(older: Pair) -> None:
    """Which of two kernels was faster was chance without."""
    document = measure_subjects(small(older, "memmap"), "memmap")
    assert document.run["predictors"] == "reset"


def test_a_scenario_that_is_none(older: Pair) -> None:
    with pytest.raises(BulkmmError, match=r"vmap-1t: not with this size, or not on"):
        measure_subjects(replace(small(older, "vmap"), only=("vmap-1t",)), "vmap")


def test_a_device_has_the_size_that_its_scenario_names(older: Pair) -> None:
    job = replace(small(older, "memmap"), size=None, only=("pmem-fsdax-100g", "thp-2m"))
    subject = measure.SUBJECTS["memmap"]
    for quick in (False, True):
        request = measure.make_request(replace(job, quick=quick), subject)
        assert request.amount.size == 100 << 30
    with pytest.raises(UsageError, match="one size, not of 2 GiB and 100 GiB"):
        measure.make_request(replace(job, size=2 << 30), subject)


def test_only_what_is_named_is_run(older: Pair) -> None:
    names = {"vmap-1page", "thp-64k"}
    job = replace(small(older, "clear"), only=tuple(names))
    document = measure_subjects(job, "clear", "vmap", "memmap")
    assert {row.scenario for row in document.results} == names


def test_memory_that_is_written_repeatedly_counts_once(older: Pair) -> None:
    again = replace(small(older, "clear"), only=("thp-2m-again",))
    assert measure_subjects(again, "clear").run["bytes"] == SIZES["clear"]


def test_the_command(older: Pair, tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    words = ["bench", "kernel", "memmap", "--size", "1G", "--rounds", "1"]
    words += ["--processes", "2", "--scenario", "pmem-fsdax-1g"]
    words += ["--kernel", str(older.kernel), "--module", str(older.module)]
    assert cli.main([*words, "-o", str(file)]) == Exit.OK
    assert Document.read(file).scenarios == ["pmem-fsdax-1g"]
    assert cli.main([*words, "--break-one-word"]) == Exit.VERDICT
