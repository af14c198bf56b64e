# SPDX-License-Identifier: GPL-2.0-only
"""populate-guest: libbulkmm and the module together, then the library alone.

In every state of the module memory is populated in the kernel's ways and by the
library (lab/guest/bmmfault.c): every byte must be zero, and the module must
recognise it as populated, not touched. The library alone meets several nodes,
DAX, pages of 1 GiB, version 2 cgroups and a poisoned page; and stages a file in
small pages, by each of the kernel's ways.
"""

import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from bulkmm.results.model import Check
from bulkmm.shell.size import GIB, MIB, PAGE
from lab import state
from lab.machine.vm import Hot, Outcome
from lab.scenario import base
from lab.scenario.base import Event, Measure, Scenario
from lab.scenario.clear import enter_arm, expect_hits, taken_away

SIZE = 64  # MiB per visit: enough for several threads
FOLIO = 2 * MIB
FOLIOS = SIZE * MIB // FOLIO
ARMS = ("absent", "off", "auto", "streaming")
SERVING = ARMS[2:]
TRACED_MODE = "auto"  # the mode in which populating and touching differ
TOUCH, BASE, CORRUPTED = "touch", "madvise", "corrupted"
LIBRARY = ("bulkmm-1", "bulkmm-2")
TIMED_WAYS = (BASE, *LIBRARY)  # in every state of the module
# by kind of page; other ways, including devices, are in clear-populate
WAYS = {
    "thp": (TOUCH, BASE, *LIBRARY),
    "2m": (TOUCH, BASE, *LIBRARY, "map-populate", "fallocate"),
}
TIMED, TRACED = "timed", "traced"
NO_FAULTS = 8  # a program's own faults
EFAULT, EHWPOISON = 14, 133
POOL, POISONED, LIMIT = 7, 9, 18  # of enum bmm_cause
KILLED = 128 + 9
BREAKING = "CONFIG_MEMORY_FAILURE"  # a page needs it
FILE = "/tmp/pool"  # noqa: S108 - in the guest


@dataclass(frozen=True)
class Case:
    """A call of the library and its expected result."""

    name: str
    words: str  # of the job
    result: Mapping[str, object]


def _good(mib: int, **more: object) -> dict[str, object]:
    return {"error": 0, "done": mib * MIB, "wrong": 0, "same": 1, **more}


def _node(node: int) -> dict[str, object]:
    """Return what is expected if one thread works; its callback runs on all CPUs."""
    return _good(96, nodes=f"{node}" * 8 + ".", cpus="3.")


def _bad(error: int, cause: int, **more: object) -> dict[str, object]:
    return {"error": error, "cause": cause, **more}


def _two_nodes(nodes: str) -> dict[str, object]:
    """Return what is expected of both nodes; where threads run, native tests show."""
    return _good(96, nodes=nodes)


CASES = (
    Case("node 1 asked for", "4k 96 node=1", _node(1)),
    Case("node 1 asked for, one thread", "4k 96 node=1 threads=1", _node(1)),
    Case("bound to node 1, one thread", "4k 96 bind=1 threads=1", _node(1)),
    Case("started on node 1, one thread", "4k 96 cpu=1 threads=1", _node(1)),
    Case("node 0 asked for, huge pages", "thp 96 node=0", _node(0)),
    Case("bound to node 1", "4k 96 bind=1", _node(1)),
    Case("halves bound to a node each", "4k 96 halves", _two_nodes("00001111.")),
    Case("interleaved", "4k 96 interleave", _two_nodes("xxxxxxxx.")),
    Case("hugetlb of node 1", "2m 32 node=1", _good(32, nodes="11111111.")),
    Case(
        "hugetlb of a node without",
        "2m 32 node=0",
        _bad(EFAULT, POOL, done=0, failed_len=FOLIO),
    ),
    Case(
        "two pages of 1 GiB of a pool of one",
        "1g 2048",
        _bad(EFAULT, POOL, done=GIB, reached=GIB, failed_len=GIB, wrong=0),
    ),
    Case(
        "a broken page",
        "4k 4 poison",
        _bad(EHWPOISON, POISONED, reached=2 * MIB, failed_len=4096, wrong=0),
    ),
    Case("a DAX device", "$DAX 32", _good(32)),
    Case("a file on DAX", "$DAX 32", _good(32)),
    Case("a file on DAX that was read", "$DAX.read 32 read", _good(32)),
)
STAGED_FILE = "/mnt/staged"
STAGED_BYTES = 2 * (16 * MIB + PAGE)  # of small pages
STAGED = (
    Case("from the page cache", STAGED_FILE, {"copied": STAGED_BYTES}),
    Case("to node 1", f"{STAGED_FILE} node=1", {"copied": STAGED_BYTES, "node": 1}),
    Case("below a filter of system calls", f"{STAGED_FILE} filter", {"copied": 0}),
    Case(
        "into a file of huge pages",
        f"{STAGED_FILE} to=/tmp/huge/staged",
        {"copied": 0, "huge": 1},
    ),
    Case("from the disk", f"{STAGED_FILE} cold", {"copied": STAGED_BYTES}),
    Case("from the disk, below a filter", f"{STAGED_FILE} cold filter", {"copied": 0}),
    Case("by a user without rights", f"{STAGED_FILE} user", {"copied": STAGED_BYTES}),
)
GROUPED = (
    Case(
        "cgroup 2, huge pages",
        "pool_grouped huge hugetlb.2MB.max 16M 2m 32",
        _bad(EFAULT, LIMIT, code=0, done=16 * MIB),
    ),
    Case(
        "cgroup 2, less than a CPU",
        "pool_grouped quota cpu.max '90000 100000' 4k 128 interleave",
        _good(128, code=0, threads=1),
    ),
    Case(
        "cgroup 2, two CPUs",
        "pool_grouped cpus cpu.max '200000 100000' 4k 128 interleave",
        _good(128, code=0, threads=2),
    ),
    Case(
        "cgroup 2, memory",
        "pool_killed memory memory.max 32M 4k 96",
        {"code": KILLED, "killed": 1, "left": 0},
    ),
    Case(
        "cgroup 2, memory of a file",
        f"pool_killed file memory.max 32M {FILE} 96",
        {"code": KILLED, "killed": 1, "left": 0},
    ),
)


class Populate(Scenario):
    """Memory populated by the kernel and by the library in every state."""

    observations = (("cases", "pool-case"), ("staged", "stage-case"))
    visited = "visit"

    def lines(self) -> list[str]:
        return ["zeroing", *self._visits(self.chance), *self._cases()]

    def _visits(self, chance: random.Random) -> list[str]:
        lines = []
        for kind, ways in WAYS.items():
            pages = FOLIOS if kind == "2m" else 0
            lines.append(f"folios {'hugetlb' if pages else kind} 2048 {pages}")
            for name in self.each_round(ARMS, chance):
                lines.append(enter_arm(name))
                lines += ["pool_backends"] if name in SERVING else []
                order = chance.sample(TIMED_WAYS, len(TIMED_WAYS))
                lines += _visit_lines(TIMED, kind, order)
            lines += [enter_arm(TRACED_MODE), "pool_trace 1"]
            lines += _visit_lines(TRACED, kind, ways)
            if self.options.break_one_word:
                lines += _visit_lines(TRACED, kind, [CORRUPTED])
            lines += ["pool_trace 0", "state absent"]
        return lines

    def _cases(self) -> list[str]:
        lines = []
        before = {
            "hugetlb of node 1": ["pool_on_node 2048 1 24"],
            "a DAX device": ["pool_dax devdax"],
            "a file on DAX": ["pool_dax fsdax", "pool_dax_file"],
        }
        for case in CASES:
            lines += before.get(case.name, [])
            lines.append(f"pool_case '{case.name}' {case.words}")
        lines += ["must umount /mnt", "stage_begin"]
        lines += [f"stage_case '{case.name}' {case.words}" for case in STAGED]
        lines += ["stage_end", "pool_groups"]
        for case in GROUPED:
            lines.append(case.words)
        lines += [f"pool_held {FILE}", f"pool_case 'the rest of the file' {FILE} 96"]
        return lines

    def measurements(self, outcome: Outcome) -> Iterable[Measure]:
        for kind in WAYS:
            visits = outcome.of("visit", label=TIMED, kind=kind)
            by_name = base.group_items(
                visits, lambda event: f"{event['way']}+{event['arm']}"
            )
            times = {
                name: base.collect_values(events, "ns")
                for name, events in by_name.items()
            }
            yield Measure(f"populate-{SIZE}m-{kind}", SIZE * MIB, _pairs(), times)

    def judge(self, outcome: Outcome) -> Iterable[Check]:
        visits = state.list_visits(outcome, "visit")
        for kind, ways in WAYS.items():
            away = kind == "thp" and taken_away(outcome)
            for way in (*ways, *([CORRUPTED] if self.options.break_one_word else [])):
                of = {"kind": kind, "way": way}.items()
                group = [visit for visit in visits if of <= visit.event.items()]
                yield from _of_way(f"{kind} {way}", way, group, away=away)
        reports = base.group_items(
            outcome.of("pool-case"), lambda event: str(event["name"])
        )
        for case in CASES:
            yield _of_case(case, reports.get(case.name, []))
        for case in GROUPED:
            yield _of_case(case, reports.get(case.words.split()[1], []))
        staged = base.group_items(
            outcome.of("stage-case"), lambda event: str(event["name"])
        )
        for case in STAGED:
            wanted = {"error": 0, "wrong": 0, "folios": 0, "huge": 0, **case.result}
            yield base.check_values(
                f"staged: {case.name}", staged.get(case.name, []), wanted
            )
        # a killed process's progress is kept and can be resumed
        progress = outcome.of("pool-held")
        ok = 0 < progress[0]["bytes"] <= 32 * MIB
        yield base.check_values(
            "library: what was populated is kept", progress, {}, ok=ok
        )
        rest = reports.get("the rest of the file", [])
        yield base.check_values(
            "library: the rest of the file", rest, {"error": 0, "wrong": 0}
        )
        yield state.check_attached(outcome, "clear")


def _visit_lines(label: str, kind: str, ways: list[str] | tuple[str, ...]) -> list[str]:
    return [f"pool_visit {label} {kind} {SIZE} {way}" for way in ways]


def _pairs() -> list[tuple[str, str]]:
    """Return the pairs: kernel or library, module off or on, neither or both."""
    return [
        *((f"{BASE}+{arm}", f"{way}+{arm}") for way in LIBRARY for arm in ARMS),
        *((f"{way}+off", f"{way}+streaming") for way in TIMED_WAYS),
        *((f"{BASE}+absent", f"{way}+streaming") for way in LIBRARY),
    ]


def _of_way(
    name: str, way: str, visits: list[state.Visit], *, away: bool
) -> Iterator[Check]:
    """Check what was populated, by whom, and that it was told from what was touched."""

    def expected(visit: state.Visit) -> tuple[state.Expect, state.Expect]:
        """Return that every folio is served, whatever becomes of smaller ones."""
        clear, alloc = expect_hits(visit, {FOLIO // PAGE: FOLIOS}, taken_away=away)
        smaller = {"small": visit.fell("clear")["small"]}
        return replace(clear, fell=smaller), alloc

    events = [one.event for one in visits]
    most = max((int(one["faults"]) for one in events), default=0)
    ok = most <= NO_FAULTS + (FOLIOS if way == "fallocate" else 0)
    yield base.check_values(
        f"every byte zero, and there ({name})", events, {"wrong": 0}, ok=ok
    )
    yield state.judge_visits(f"counters ({name})", visits, expected)
    if not away:
        traced = [one for one in events if one["label"] == TRACED]
        touched = FOLIOS if way == TOUCH else 0
        title = f"taken for {'touched' if touched else 'populated'} ({name})"
        yield base.check_values(
            title, traced, {"streaming": FOLIOS - touched, "cached": touched}
        )


def _of_case(case: Case, reports: list[Event]) -> Check:
    """Check what a call of the library says; it leaves nothing to fault in.

    Some kernels cannot break a page: 6.1's cloud flavour.
    """
    lacks = [event.get("lacks") for event in reports]
    if "poison" in case.words.split() and lacks == [BREAKING]:
        detail = f"the kernel lacks {BREAKING}"
        return Check(f"library: {case.name}: skipped", ok=True, detail=detail)
    wanted = {**case.result}
    if reports and wanted.get("error") == 0:
        wanted["faults"] = min(int(reports[0]["faults"]), NO_FAULTS)
    return base.check_values(f"library: {case.name}", reports, wanted)


SCENARIOS = (
    Populate(
        "populate-guest",
        "memory made resident by the kernel's ways and by libbulkmm, with the module "
        "and without",
        "every byte zero; the module knows what is populated and what is touched; "
        "nodes, DAX, pages of 1 GiB, cgroups and a broken page, as the library reports "
        "them; every byte of a file that it stages",
        family="populate",
        path="clear",
        takes=("rounds", "seed", "break_one_word"),
        runs=base.Runs(
            rounds=3,
            full=("--rounds 2",),
        ),
        machine=base.Machine(
            modules=base.NVDIMM,
            # NUMA balancing's hint faults are not faults on missing pages
            cmdline=f"numa_balancing=disable {base.GIB_PAGE}",
            hot=Hot(nodes=2, shared_out=True),
        ),
        size=GIB // 2,
        seconds=150,
        needs=base.Needs(
            lacking_debug=base.LACKING,  # all cgroup controllers and page node queries
            x86_only="the lab has its machine",
        ),
    ),
)
