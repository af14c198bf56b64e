# SPDX-License-Identifier: GPL-2.0-only
"""Goals of core and module, as data, and whether a result meets them.

A goal is a ratio: time of the fastest base / time of ours, paired like all ratios
of a bench, in every scenario whose fields match. Two runs of the same code
may differ by two or three percent.

A selection is one for each operation, size and alignment: one pointer serves memory
that is in the cache, that is not, and that is used next. So it is compared with single
backends by the geometric mean of these scenarios.
"""

import statistics
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from bench.judge import by_scenario
from bench.subjects import Arms
from bulkmm.results import stats
from bulkmm.results.model import Document, Ratio, Result
from bulkmm.results.table import Table
from bulkmm.shell.size import GIB, KIB, MIB, PAGE, TIB

PARITY = 0.98
LIMIT = 0.97
FIRST = 1 / 1.1  # the first use of a gigabyte takes at most 10 % longer: 5 ms
NEAR = 0.9
APART = 1.03  # what a later backend has to win by (core/calibrate.c)
BEST = 1 / APART
HEADINGS = ("goal", "at least", "met", "the least of them")
MOST_THREADS = 1 << 20
Fields = dict[str, Any]  # of results, as in Result.matches()


class Goal(Struct, frozen=True, eq=False):
    """One goal, equal to itself only."""

    title: str
    scenarios: Fields | tuple[Fields, ...]  # several: any of them
    variant: str  # a way, without threads and backends
    bases: str  # ways of as many threads, of which the fastest; "": its backends
    least: float = PARITY
    threads: range = range(1, 2)
    per_thread: bool = False  # against one thread; the ratio is shared by the threads
    until: str = ""  # a way: no goal where the variant has NEAR of its speed

    @property
    def is_selection(self) -> bool:
        """Return whether it is against single backends."""
        return not self.bases

    def covers(self, result: Result) -> bool:
        """Return whether it is for the scenario of a result."""
        wanted = self.scenarios
        fields = (wanted,) if isinstance(wanted, dict) else wanted
        return any(map(result.matches, fields))


CACHED, STREAMING, PEERS = "bulkmm-cached", "bulkmm-streaming", "glibc libpmem2"
COLD = {"use": ""}
HOT = {"use": "again"}
# below, mostly the drain of each extent is measured
FROM_64K = {"size": range(64 * KIB, TIB)}
CLEAR = {"operation": "clear", "memory": ""}
CLEARED = {**CLEAR, **FROM_64K, **COLD}
USED = {**CLEAR, "use": ("then-read", "then-write", "then-random")}
COPY = {"operation": "copy", "placement": ""}
COPIED = {**COPY, **FROM_64K, **COLD}
MISALIGNED = {"operation": "copy", "placement": "misaligned"}
PLACED = {"operation": "copy", "placement": ("", "middle", "last"), **COLD}
HUGE = {"operation": "clear", "memory": ("thp", "hugetlb")}
DEVICES = {"operation": "memmap", **COLD}
# in kept results only, until they are measured again
STAMPED = {"operation": "memmap", "use": "stamp"}
VMAP = {"operation": "vmap"}
BIG_VMAP = {**VMAP, "size": 100 * MIB, "placement": ""}
POPULATED = {"operation": "populate"}
STAGED = {"operation": "stage", **COLD}
SEVERAL = range(2, MOST_THREADS)
# the kernel itself maps huge vmalloc() and whole blocks of ioremap()
SERVED_SHAPES = (
    {**VMAP, "size": range(PAGE + 1, TIB)},
    {"operation": "ioremap", "size": range(GIB)},
    {"operation": "vmalloc", "memory": ""},
)

# Of "bench all", "bench kernel" for a stock kernel's own code, "bench populate".
GOALS = (
    Goal("stamping against the limit", STAMPED, "bulkmm", "limit", LIMIT),
    Goal("streaming clear against libpmem2", CLEARED, STREAMING, "libpmem2"),
    Goal("streaming clear against the limit", CLEARED, STREAMING, "limit", LIMIT),
    Goal(
        "cached clear, then use, against rep-stosb, glibc, plain",
        *(USED, CACHED, "rep-stosb glibc plain"),
    ),
    Goal("cold streaming copy against glibc, libpmem2", COPIED, STREAMING, PEERS, 1.0),
    Goal(
        "cold streaming copy, misaligned, against libpmem2",
        *({**MISALIGNED, **FROM_64K, **COLD}, STREAMING, "libpmem2", 1.0),
    ),
    Goal(
        "hot cached copy, misaligned, against glibc",
        *({**MISALIGNED, **HOT}, CACHED, "glibc"),
    ),
    Goal("hot cached copy against glibc", {**COPY, **HOT}, CACHED, "glibc"),
    Goal(
        "hot cached copy, misaligned against aligned",
        *({**MISALIGNED, **HOT}, CACHED, "bulkmm-cached-aligned", 0.7),
    ),
    Goal(
        "filling with 24 bytes against 64",
        *({**CLEAR, **HOT}, "bulkmm-fill-24", "bulkmm-fill-64", NEAR),
    ),
    Goal(
        "first use against settled",
        *({"operation": "first-use"}, "first", "settled", FIRST),
    ),
    Goal("selection of stamping", {"operation": "memmap"}, "bulkmm", "", BEST),
    Goal("selection of cached clear", CLEAR, CACHED, "", BEST),
    Goal("selection of streaming clear", {**CLEAR, **COLD}, STREAMING, "", BEST),
    Goal("selection of cached copy", {"operation": "copy"}, CACHED, "", BEST),
    Goal(
        "selection of streaming copy",
        *({**PLACED, "placement": ("", "misaligned")}, STREAMING, "", BEST),
    ),
    Goal("memmap against stock", DEVICES, "bulkmm", "stock", 1.5),
    Goal("memmap against the limit", DEVICES, "bulkmm", "limit", 0.95),
    Goal(
        "populating 2 MiB against stock",
        *({**HUGE, "size": 2 * MIB, "use": "populate"}, "bulkmm", "stock", 2),
    ),
    Goal("cached clear against stock", HUGE, CACHED, "stock", 1),
    Goal("clear against stock", HUGE, "bulkmm", "stock", 1),
    Goal(
        "copy, first page in use, against stock",
        *({**COPY, **COLD, "size": 2 * MIB}, "bulkmm", "stock", 2),
    ),
    Goal("copy against stock", PLACED, "bulkmm", "stock", 0.98),
    Goal(
        "vmap, order 8 against stock",
        *({**BIG_VMAP, "memory": "order8"}, "pte", "stock", 6),
    ),
    Goal("vmap in blocks against stock", VMAP, "block", "stock", 20),
    Goal(
        "vmap, single pages against stock",
        *({**BIG_VMAP, "memory": "order0"}, "pte", "stock", 2.5),
    ),
    Goal("vmap of any shape against stock", SERVED_SHAPES, "pte", "stock", 1),
    Goal("one page against stock", {**VMAP, "size": PAGE}, "pte", "stock", 0.97),
    Goal(
        "populating, one thread, against the kernel's call",
        *(POPULATED, "bulkmm", "madvise"),
    ),
    Goal(
        "populating, each of several threads, against one",
        *(POPULATED, "bulkmm", "bulkmm", 0.95, SEVERAL),
        per_thread=True,
        until="limit",
    ),
    Goal(
        "populating against QEMU",
        *(POPULATED, "bulkmm", "qemu", PARITY, range(1, MOST_THREADS)),
    ),
    Goal(
        "populating from Python against C",
        *(POPULATED, "python", "bulkmm", LIMIT, range(1, MOST_THREADS)),
    ),
    Goal("staging from the disk against fio", STAGED, "bulkmm", "fio", 0.95),
    Goal("staging from the disk against a copy", STAGED, "bulkmm", "mmap-copy", 1.5),
    Goal(
        "staging from the disk against other programs",
        *(STAGED, "bulkmm", "dd cp vmtouch", 1),
    ),
    Goal(
        "staging from the page cache against populating and a streaming copy",
        *({**STAGED, "use": "again"}, "bulkmm", "populate-streaming", NEAR),
    ),
    Goal(
        "what is there already against populating it",
        # private pages of 4 KiB are the kernel's
        *({**POPULATED, "memory": ("thp", "memfd", "hugetlb")}, "resident", "madvise"),
        50,
    ),
)


class Outcome(Struct, frozen=True):
    """A goal and its ratio in each scenario, worst first."""

    goal: Goal
    ratios: list[Ratio]

    @property
    def missed(self) -> list[Ratio]:
        """Return where it was not reached."""
        return [one for one in self.ratios if one.ratio < self.goal.least]

    @property
    def verdict(self) -> str:
        """Return the outcome: met or not met, and in how many scenarios."""
        met = len(self.ratios) - len(self.missed)
        status = "not met" if self.missed else "met"
        return f"{status}: {met} of {len(self.ratios)}"


def judge_goals(document: Document) -> list[Outcome]:
    """Return the outcome of each goal for which the document has results."""
    scenarios = by_scenario(one for one in document.results if one.raw)
    per_goal = [
        Outcome(goal, sorted(_ratios(goal, scenarios), key=attrgetter("ratio")))
        for goal in GOALS
    ]
    return [one for one in per_goal if one.ratios]


def _arms(goal: Goal, scenarios: dict[str, Arms]) -> list[Arms]:
    """Return what a goal is judged by: scenarios, or means of those of a selection."""
    fit = [arms for arms in scenarios.values() if goal.covers(_any_result(arms))]
    if not goal.is_selection:
        return fit
    uses: dict[tuple[object, ...], list[Arms]] = {}
    for arms in fit:
        result = _any_result(arms)
        shape = result.operation, result.memory, result.size, result.placement
        uses.setdefault(shape, []).append(arms)
    return [_mean(group) for group in uses.values()]


def _any_result(arms: Arms) -> Result:
    """Return a result of a scenario: what was done is the same in all of its arms."""
    return next(iter(arms.values()))


def _mean(uses: Sequence[Arms]) -> Arms:
    """Return the variants that all uses have, each with its mean by process, round."""
    common = [name for name in uses[0] if all(name in arms for arms in uses)]
    return {name: _mean_of([arms[name] for arms in uses]) for name in common}


def _mean_of(results: Sequence[Result]) -> Result:
    """Return the mean, in the name of the use that comes first."""
    raw = [
        [round(statistics.geometric_mean(times)) for times in zip(*rounds, strict=True)]
        for rounds in zip(*(one.raw for one in results), strict=True)
    ]
    return stats.resample_raw(min(results, key=attrgetter("use")), raw)


def _ratios(goal: Goal, scenarios: dict[str, Arms]) -> Iterator[Ratio]:
    for arms in _arms(goal, scenarios):
        for arm in arms.values():
            if (arm.way, arm.backend) != (goal.variant, "") or (
                arm.threads not in goal.threads
            ):
                continue
            bases = [r for r in arms.values() if _is_base(goal, r, arm)]
            limit = {"way": goal.until, "threads": arm.threads, "backend": ""}
            near = next((r for r in arms.values() if r.matches(limit)), None)
            if bases and not (near and near.median >= NEAR * arm.median):
                base = min(bases, key=attrgetter("median")).variant
                ((ratio, _),) = stats.compare_arms(arms, [(base, arm.variant)])
                yield _by_thread(ratio, arm.threads) if goal.per_thread else ratio


def _by_thread(ratio: Ratio, count: int) -> Ratio:
    low, high = ratio.ci95
    return replace(ratio, ratio=ratio.ratio / count, ci95=(low / count, high / count))


def _is_base(goal: Goal, result: Result, arm: Result) -> bool:
    """Return whether a result is a base of an arm."""
    if goal.is_selection:
        return (result.way, result.threads) == (arm.way, 1) and result.backend != ""
    threads = 1 if goal.per_thread else arm.threads
    if result.threads != threads or result.backend:
        return False
    return result.way in goal.bases.split()


def make_table(outcomes: Iterable[Outcome]) -> Table:
    """Return each goal, its outcome, and its worst scenario."""
    rows = [
        (one.goal.title, f"{one.goal.least:.3f}", one.verdict, _describe(one.ratios[0]))
        for one in outcomes
    ]
    return Table(HEADINGS, rows)


def list_missed(outcomes: Iterable[Outcome], *, selections: bool = False) -> list[str]:
    """Return a line for each scenario in which a goal was not reached.

    Marked if part of its spread reaches the goal.
    """
    return [
        f"not met: {one.goal.title}: {_describe(ratio)}"
        + (" ~" if ratio.ci95[1] >= one.goal.least else "")
        for one in outcomes
        for ratio in one.missed
        if one.goal.is_selection or not selections
    ]


def list_disagreements(document: Document) -> list[str]:
    """Return a line for each selection in which processes differ by more than 3 %."""
    lines = []
    scenarios = by_scenario(one for one in document.results if one.raw)
    picks = document.run.get("picks", {})
    for goal in GOALS:
        for arms in _arms(goal, scenarios) if goal.is_selection else ():
            scenario = next(iter(arms.values())).scenario
            names = picks.get(scenario, {}).get(goal.variant, "")
            picked = [
                {"way": goal.variant, "threads": 1, "backend": name}
                for name in names.split("/")
                if name
            ]
            alike = (a for a in arms.values() for one in picked if a.matches(one))
            times = [arm.median for arm in alike if arm.median]
            if times and max(times) > APART * min(times):
                lines.append(
                    f"not met: processes agree: {scenario}, {goal.variant}: {names}, "
                    f"{max(times) / min(times):.2f} times as long"
                )
    return lines


def _describe(ratio: Ratio) -> str:
    from bulkmm.results import result_tables

    return (
        f"{ratio.scenario}, {ratio.base} {result_tables.format_gain(ratio, digits=3)}"
    )
