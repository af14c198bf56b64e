# SPDX-License-Identifier: GPL-2.0-only
"""Goals of core and module, as data, and whether a result meets them.

A goal is a ratio: time of the fastest base / time of ours, paired like all ratios
of a bench, in every scenario that its pattern matches. Two runs of the same code
may differ by two or three percent.

A selection is one for each operation, size and alignment: one pointer serves memory
that is in the cache, that is not, and that is used next. So it is compared with single
backends by the geometric mean of these scenarios.
"""

import re
import statistics
from collections.abc import Iterator, Sequence
from operator import attrgetter

from msgspec import Struct
from msgspec.structs import replace

from bench.judge import by_scenario
from bench.subjects import SIZE, Arms
from bulkmm.results import stats
from bulkmm.results.model import Document, Ratio, Result
from bulkmm.results.sheet import Sheet

PARITY = 0.98
LIMIT = 0.97
FROM_64K = f"(?!4k){SIZE}"  # below, mostly the drain of each extent is measured
CLEARED = f"clear-{FROM_64K}"
FIRST = 1 / 1.1  # the first use of a gigabyte takes at most 10 % longer: 5 ms
NEAR = 0.9
APART = 1.03  # what a later backend has to win by (core/calibrate.c)
BEST = 1 / APART
SELECTION = "selection of"
USE = r"-again|-then-\w+"
HEADINGS = ("goal", "at least", "met", "the least of them")


class Goal(Struct, frozen=True):
    """One goal."""

    title: str
    scenario: str  # a pattern for the whole name
    variant: str  # a pattern, too; its group is the number of threads, \1 below
    bases: str  # the fastest present; "NAME:" is each of its backends
    least: float = PARITY
    per_thread: bool = False  # the ratio is shared by the threads
    until: str = ""  # an arm: no goal where the variant has NEAR of its speed


# the kernel itself maps huge vmalloc() and whole blocks of ioremap()
SERVED_SHAPES = "(vmap(?!-1page)|ioremap(?!-1g)|vmalloc(?!.*-huge))-.*"
CACHED, STREAMING, PEERS = "bulkmm-cached", "bulkmm-streaming", "glibc libpmem2"
DEVICES = "(pmem|hmm)-.*"
STAMPED = "memmap-stamp"  # in kept results only, until they are measured again
COPIED, COPIED_AGAIN = f"copy-{FROM_64K}", f"copy-{SIZE}-misaligned-again"

# Of "bench all", "bench kernel" for a stock kernel's own code, "bench populate".
GOALS = (
    Goal("stamping against the limit", STAMPED, "bulkmm", "limit", LIMIT),
    Goal("streaming clear against libpmem2", CLEARED, STREAMING, "libpmem2"),
    Goal("streaming clear against the limit", CLEARED, STREAMING, "limit", LIMIT),
    Goal(
        "cached clear, then use, against rep-stosb, glibc, plain",
        *(f"clear-{SIZE}-then-.*", CACHED, "rep-stosb glibc plain"),
    ),
    Goal("cold streaming copy against glibc, libpmem2", COPIED, STREAMING, PEERS, 1.0),
    Goal(
        "cold streaming copy, misaligned, against libpmem2",
        *(f"{COPIED}-misaligned", STREAMING, "libpmem2", 1.0),
    ),
    Goal("hot cached copy, misaligned, against glibc", COPIED_AGAIN, CACHED, "glibc"),
    Goal("hot cached copy against glibc", f"copy-{SIZE}-again", CACHED, "glibc"),
    Goal(
        "hot cached copy, misaligned against aligned",
        *(COPIED_AGAIN, CACHED, "bulkmm-cached-aligned", 0.7),
    ),
    Goal(
        "filling with 24 bytes against 64",
        *(f"clear-{SIZE}-again", "bulkmm-fill-24", "bulkmm-fill-64", NEAR),
    ),
    Goal("first use against settled", "first-use-.*", "first", "settled", FIRST),
    Goal("selection of stamping", f"{STAMPED}|{DEVICES}", "bulkmm", "bulkmm:", BEST),
    Goal("selection of cached clear", "clear-.*", CACHED, f"{CACHED}:", BEST),
    Goal(
        "selection of streaming clear",
        *(f"clear-{SIZE}", STREAMING, f"{STREAMING}:", BEST),
    ),
    Goal("selection of cached copy", "copy-.*", CACHED, f"{CACHED}:", BEST),
    Goal(
        "selection of streaming copy",
        *(f"copy-{SIZE}(-misaligned)?", STREAMING, f"{STREAMING}:", BEST),
    ),
    Goal("memmap against stock", DEVICES, "bulkmm", "stock", 1.5),
    Goal("memmap against the limit", DEVICES, "bulkmm", "limit", 0.95),
    Goal(
        "populating 2 MiB against stock",
        *("(thp|hugetlb)-2m-populate", "bulkmm", "stock", 2),
    ),
    Goal("cached clear against stock", "(thp|hugetlb)-.*", CACHED, "stock", 1),
    Goal("clear against stock", "(thp|hugetlb)-.*", "bulkmm", "stock", 1),
    Goal("copy, first page in use, against stock", "copy-2m", "bulkmm", "stock", 2),
    Goal("copy against stock", "copy-[^-]+(-middle|-last)?", "bulkmm", "stock", 0.98),
    Goal("vmap, order 8 against stock", "vmap-100m-order8", "pte", "stock", 6),
    Goal("vmap in blocks against stock", "vmap-.*", "block", "stock", 20),
    Goal("vmap, single pages against stock", "vmap-100m-order0", "pte", "stock", 2.5),
    Goal("vmap of any shape against stock", SERVED_SHAPES, "pte", "stock", 1),
    Goal("one page against stock", "vmap-1page", "pte", "stock", 0.97),
    Goal(
        "populating, one thread, against the kernel's call",
        *("populate-.*", "bulkmm-1", "madvise"),
    ),
    Goal(
        "populating, each of several threads, against one",
        *("populate-.*", r"bulkmm-(?!1$)(\d+)", "bulkmm-1", 0.95),
        per_thread=True,
        until=r"limit-\1",
    ),
    Goal("populating against QEMU", "populate-.*", r"bulkmm-(\d+)", r"qemu-\1"),
    Goal(
        "what is there already against populating it",
        # private pages of 4 KiB are the kernel's
        *(r"populate-.*-(?!4k)\w+", "resident-1", "madvise", 50),
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


def outcomes(document: Document) -> list[Outcome]:
    """Return the outcome of each goal for which the document has results."""
    scenarios = by_scenario(one for one in document.results if one.raw)
    per_goal = [
        Outcome(goal, sorted(_ratios(goal, scenarios), key=attrgetter("ratio")))
        for goal in GOALS
    ]
    return [one for one in per_goal if one.ratios]


def _arms(goal: Goal, scenarios: dict[str, Arms]) -> list[Arms]:
    """Return what a goal is judged by: scenarios, or means of those of a selection."""
    fit = {
        name: scenarios[name] for name in scenarios if re.fullmatch(goal.scenario, name)
    }
    if not goal.title.startswith(SELECTION):
        return [*fit.values()]
    uses: dict[str, list[Arms]] = {}
    for name, arms in fit.items():
        uses.setdefault(re.sub(USE, "", name), []).append(arms)
    return [_mean(name, each) for name, each in uses.items()]


def _mean(name: str, uses: Sequence[Arms]) -> Arms:
    """Return the variants that all uses have, each with its mean by process, round."""
    common = [one for one in uses[0] if all(one in arms for arms in uses)]
    return {one: _mean_of(name, [arms[one] for arms in uses]) for one in common}


def _mean_of(name: str, results: Sequence[Result]) -> Result:
    raw = [
        [round(statistics.geometric_mean(times)) for times in zip(*rounds, strict=True)]
        for rounds in zip(*(one.raw for one in results), strict=True)
    ]
    return stats.of_processes(name, results[0].variant, results[0].bytes, raw)


def _ratios(goal: Goal, scenarios: dict[str, Arms]) -> Iterator[Ratio]:
    for arms in _arms(goal, scenarios):
        for match in filter(None, (re.fullmatch(goal.variant, name) for name in arms)):
            names, until = (match.expand(one) for one in (goal.bases, goal.until))
            bases = [name for name in arms if _is_base(names.split(), name)]
            near = arms.get(until)
            if bases and not (near and near.median >= NEAR * arms[match[0]].median):
                base = min(bases, key=lambda name: arms[name].median)
                ((ratio, _),) = stats.compared(arms, [(base, match[0])])
                yield _by_thread(ratio, int(match[1])) if goal.per_thread else ratio


def _by_thread(ratio: Ratio, count: int) -> Ratio:
    low, high = ratio.ci95
    return replace(ratio, ratio=ratio.ratio / count, ci95=(low / count, high / count))


def _is_base(bases: list[str], name: str) -> bool:
    return name in bases or name.startswith(tuple(b for b in bases if b[-1] == ":"))


def sheet(document: Document) -> Sheet:
    """Return each goal, its outcome, and its worst scenario."""
    rows = [
        (one.goal.title, f"{one.goal.least:.3f}", one.verdict, _describe(one.ratios[0]))
        for one in outcomes(document)
    ]
    return Sheet(HEADINGS, rows)


def missed(document: Document, begin: str = "") -> list[str]:
    """Return a line for each scenario in which a goal was not reached.

    Marked if part of its spread reaches the goal.
    """
    return [
        f"not met: {one.goal.title}: {_describe(ratio)}"
        + (" ~" if ratio.ci95[1] >= one.goal.least else "")
        for one in outcomes(document)
        for ratio in one.missed
        if one.goal.title.startswith(begin)
    ]


def disagreements(document: Document) -> list[str]:
    """Return a line for each selection in which processes differ by more than 3 %."""
    lines = []
    scenarios = by_scenario(one for one in document.results if one.raw)
    picks = document.run.get("picks", {})
    for goal in GOALS:
        if not goal.title.startswith(SELECTION):
            continue
        for arms in _arms(goal, scenarios):
            scenario = next(iter(arms.values())).scenario
            names = picks.get(scenario, {}).get(goal.variant, "")
            picked = [arms.get(f"{goal.variant}:{name}") for name in names.split("/")]
            times = [arm.median for arm in picked if arm and arm.median]
            if times and max(times) > APART * min(times):
                lines.append(
                    f"not met: processes agree: {scenario}, {goal.variant}: {names}, "
                    f"{max(times) / min(times):.2f} times as long"
                )
    return lines


def _describe(ratio: Ratio) -> str:
    from bulkmm.results import table

    return f"{ratio.scenario}, {ratio.base} {table.span(ratio, digits=3)}"
