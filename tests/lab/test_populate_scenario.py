# SPDX-License-Identifier: GPL-2.0-only
"""populate-guest: the job, how a run is judged, a short run."""

import json
from pathlib import Path
from typing import Any

import pytest
from lablib import lab

from bulkmm.errors import Exit
from bulkmm.lab import matrix, scenario
from bulkmm.lab.families import populate
from bulkmm.lab.machine.vm import Outcome
from bulkmm.results import Check

NAME = "populate-guest"
FOLIOS = populate.SIZE * populate.MIB // populate.FOLIO


def work(**chosen: Any) -> Any:
    return scenario.find(NAME).make(**{"seed": 1, "rounds": 1, **chosen})


def visit(way: str = "madvise", **changed: Any) -> dict[str, Any]:
    event = {"event": "visit", "label": populate.TRACED, "arm": "auto", "kind": "2m"}
    found = {"hits": FOLIOS, "alloc": 0, "fell": 0, "alloc_on": "no"}
    touched = way == populate.TOUCH
    seen = {"streaming": 0 if touched else FOLIOS, "cached": FOLIOS if touched else 0}
    return {**event, **found, **seen, "way": way, "wrong": 0, "faults": 0, **changed}


def said(case: populate.Case, **changed: Any) -> dict[str, Any]:
    wanted = {k: v for k, v in case.says.items() if v is not None}
    return {"event": "pool-case", "faults": 0, **wanted, **changed}


def outcome(
    visits: list[dict[str, Any]],
    cases: dict[str, dict[str, Any]],
    release: str = "6.12.107",
) -> Outcome:
    everything = {case.name: said(case) for case in populate.CASES}
    everything |= {case.words.split()[1]: said(case) for case in populate.GROUPED}
    everything["the rest of the file"] = {"error": 0, "wrong": 0}
    everything |= cases
    start = {"event": "start", "release": release}
    zeroing = {"event": "zeroing", "allocator": "on"}
    hook = {"event": "clear-counters", "served": "yes", "inflight": 0}
    hook["hook"] = "0 folio_zero_user: attached"
    reported = [
        {**event, "event": "pool-case", "name": name}
        for name, event in everything.items()
    ]
    held = {"event": "pool-held", "bytes": 30 << 20}
    events = [start, zeroing, *visits, *reported, held, hook]
    return Outcome(lambda _event: None, events)


def all_visits() -> list[dict[str, Any]]:
    return [
        visit(way, kind=kind) for kind, ways in populate.WAYS.items() for way in ways
    ]


def judged(
    visits: list[dict[str, Any]] | None = None,
    cases: dict[str, dict[str, Any]] | None = None,
    **more: str,
) -> list[Check]:
    seen = outcome(all_visits() if visits is None else visits, cases or {}, **more)
    return [check for check in work().checks(seen) if not check.ok]


def test_a_good_run_passes() -> None:
    assert judged() == []


@pytest.mark.parametrize(
    ("way", "changed", "says"),
    [
        ("madvise", {"wrong": 1}, "every byte zero, and there (2m madvise)"),
        ("bulkmm-2", {"faults": 9}, "every byte zero, and there (2m bulkmm-2)"),
        ("map-populate", {"hits": FOLIOS - 1}, "counters (2m map-populate)"),
        ("bulkmm-1", {"alloc": 1}, "counters (2m bulkmm-1)"),
        ("madvise", {"fell": 1}, "counters (2m madvise)"),
        ("madvise", {"arm": "off"}, "counters (2m madvise)"),
        (
            "fallocate",
            {"streaming": 0, "cached": FOLIOS},
            "taken for populated (2m fallocate)",
        ),
        ("touch", {"streaming": FOLIOS, "cached": 0}, "taken for touched (2m touch)"),
    ],
)
def test_a_visit_that_is_wrong(way: str, changed: dict[str, Any], says: str) -> None:
    visits = all_visits()
    (bad,) = (v for v in visits if (v["kind"], v["way"]) == ("2m", way))
    bad |= changed
    assert [check.name for check in judged(visits)] == [says]


def test_a_way_that_was_not_visited_fails() -> None:
    visits = [v for v in all_visits() if v["way"] != "bulkmm-1"]
    assert len(judged(visits)) == 6


def test_what_the_allocator_clears_is_counted_there() -> None:
    """On a later kernel: transparent huge pages alone, and no trace of them."""
    visits = all_visits()
    for one in visits:
        if one["kind"] == "thp":
            one |= {"hits": 0, "alloc": FOLIOS, "alloc_on": "yes", "streaming": 0}
    assert judged(visits, release="7.3.4") == []
    assert len(judged(visits)) > len(populate.WAYS["thp"])


@pytest.mark.parametrize(
    ("case", "changed"),
    [
        (populate.CASES[0], {"nodes": "11111110."}),
        (populate.CASES[0], {"cpus": "3."}),
        (populate.CASES[0], {"faults": 100}),
        (populate.CASES[0], {"same": 0}),
        (populate.CASES[0], {"error": 12}),
        (populate.GROUPED[1], {"threads": 2}),
    ],
)
def test_a_case_that_is_wrong(case: populate.Case, changed: dict[str, Any]) -> None:
    name = case.name if case in populate.CASES else case.words.split()[1]
    (bad,) = judged(cases={name: said(case, **changed)})
    assert bad.name == f"library: {case.name}"


def test_what_is_left_must_be_kept() -> None:
    (bad,) = judged(cases={"the rest of the file": {"error": 14, "wrong": 0}})
    assert bad.name == "library: what was populated is kept"


def test_the_job_visits_every_way_in_every_state() -> None:
    lines = work(rounds=2).job(["nd_pmem"]).splitlines()
    for kind, ways in populate.WAYS.items():
        for way in ways:
            assert f"pool_visit traced {kind} {populate.SIZE} {way}" in lines
        for way in populate.COMPARED:
            counted = f"pool_visit counted {kind} {populate.SIZE} {way}"
            assert lines.count(counted) == 2 * len(populate.ARMS)
    assert sum(line.startswith("pool_visit") for line in lines) == work(rounds=2).steps


def test_the_other_architecture_has_none_of_it() -> None:
    cells = [cell for cell in matrix.cells() if cell.scenario == NAME]
    assert {cell.arch for cell in cells} == {"x86_64"}


@pytest.mark.vm
def test_short_run_in_which_one_byte_is_left(tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    done = lab(NAME, "--rounds", "1", "--break-one-word", "-o", str(file))
    assert done.returncode == Exit.VERDICT, done.stderr
    document = json.loads(file.read_text())
    failed = {check["name"] for check in document["checks"] if not check["ok"]}
    assert failed == {
        f"every byte zero, and there ({k} corrupted)" for k in ("thp", "2m")
    }
    names = {r["variant"] for r in document["results"]}
    assert {"madvise+off", "bulkmm-2+streaming"} <= names
