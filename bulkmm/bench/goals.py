# SPDX-License-Identifier: GPL-2.0-only
"""Goals of core and module, as data, and whether a result meets them.

A goal is a ratio: time of the fastest base / time of ours, paired like all ratios
of a bench, in every scenario that its pattern matches. Two runs of the same code
may differ by two or three percent. Names ending in ``-N`` stand for any number of
threads, the same in ours and in the base.
"""

import re
from collections.abc import Iterator
from operator import attrgetter

from msgspec import Struct
from msgspec.structs import replace

from bulkmm import stats
from bulkmm.bench.judge import Arms, by_scenario
from bulkmm.bench.subjects import SIZE
from bulkmm.results import Document, Ratio
from bulkmm.sheet import Sheet

SAME = 0.98
LIMIT = 0.97
FROM_64K = f"(?!4k){SIZE}"  # below, mostly the drain of each extent is measured
FIRST = 1 / 1.1  # the first use of a gigabyte takes at most 10 % longer: 5 ms
NEAR = 0.9
APART = 1.03  # what a later backend has to win by (core/calibrate.c)
ANY = "N"
SELECTION = "selection of"


class Goal(Struct, frozen=True):
    """One goal."""

    what: str
    scenario: str  # a pattern for the whole name
    ours: str
    bases: tuple[str, ...]  # the fastest present; "NAME:" is each of its backends
    least: float = SAME
    each: bool = False  # one ratio per thread
    until: str = ""  # an arm: no goal where ours has NEAR of its speed


def _selection(what: str, scenario: str, ours: str) -> Goal:
    return Goal(f"{SELECTION} {what}", scenario, ours, (f"{ours}:",))


def _stock(what: str, scenario: str, ours: str, least: float) -> Goal:
    return Goal(f"{what} against stock", scenario, ours, ("stock",), least)


# the kernel itself maps huge vmalloc() and whole blocks of ioremap()
SERVED_SHAPES = "(vmap(?!-1page)|ioremap(?!-1g)|vmalloc(?!.*-huge))-.*"

# For a stock kernel's own code: "bench kernel".
KERNEL_GOALS = (
    _stock("memmap", "(pmem|hmm)-.*", "bulkmm", 1.5),
    Goal("memmap against the limit", "(pmem|hmm)-.*", "bulkmm", ("limit",), 0.95),
    _stock("populating 2 MiB", "(thp|hugetlb)-2m-populate", "bulkmm", 2),
    _stock("cached clear", "(thp|hugetlb)-.*", "bulkmm-cached", 1),
    _stock("clear", "(thp|hugetlb)-.*", "bulkmm", 1),
    _stock("vmap, order 8", "vmap-100m-order8", "pte", 6),
    _stock("vmap in blocks", "vmap-.*", "block", 20),
    _stock("vmap, single pages", "vmap-100m-order0", "pte", 2.5),
    _stock("vmap of any shape", SERVED_SHAPES, "pte", 1),
    _stock("one page", "vmap-1page", "pte", 0.97),
)

# For ways to make memory resident: "bench populate".
POPULATE_GOALS = (
    Goal(
        "populating, one thread, against the kernel's call",
        "populate-.*",
        "bulkmm-1",
        ("madvise",),
    ),
    Goal(
        "populating, each of several threads, against one",
        "populate-.*",
        f"bulkmm-{ANY}",
        ("bulkmm-1",),
        0.95,
        each=True,
        until=f"limit-{ANY}",
    ),
    Goal("populating against QEMU", "populate-.*", f"bulkmm-{ANY}", (f"qemu-{ANY}",)),
    Goal(
        "what is there already against populating it",
        "populate-.*",
        "resident-1",
        ("madvise",),
        50,
    ),
)

GOALS = (
    Goal("stamping against the limit", "memmap-stamp", "bulkmm", ("limit",), LIMIT),
    Goal(
        "streaming clear against libpmem2",
        f"clear-{FROM_64K}",
        "bulkmm-streaming",
        ("libpmem2",),
    ),
    Goal(
        "streaming clear against the limit",
        f"clear-{FROM_64K}",
        "bulkmm-streaming",
        ("limit",),
        LIMIT,
    ),
    Goal(
        "cached clear, then use, against rep-stosb, glibc, plain",
        f"clear-{SIZE}-then-.*",
        "bulkmm-cached",
        ("rep-stosb", "glibc", "plain"),
    ),
    Goal(
        "cold streaming copy against glibc, libpmem2",
        f"copy-{FROM_64K}",
        "bulkmm-streaming",
        ("glibc", "libpmem2"),
        1.0,
    ),
    Goal(
        "cold streaming copy, misaligned, against libpmem2",
        f"copy-{FROM_64K}-misaligned",
        "bulkmm-streaming",
        ("libpmem2",),
        1.0,
    ),
    Goal(
        "hot cached copy, misaligned, against glibc",
        f"copy-{SIZE}-misaligned-again",
        "bulkmm-cached",
        ("glibc",),
    ),
    Goal(
        "hot cached copy against glibc",
        f"copy-{SIZE}-again",
        "bulkmm-cached",
        ("glibc",),
    ),
    Goal(
        "hot cached copy, misaligned against aligned",
        f"copy-{SIZE}-misaligned-again",
        "bulkmm-cached",
        ("bulkmm-cached-aligned",),
        0.7,
    ),
    Goal(
        "filling with 24 bytes against 64",
        f"clear-{SIZE}-again",
        "bulkmm-fill-24",
        ("bulkmm-fill-64",),
        NEAR,
    ),
    Goal("first use against settled", "first-use-.*", "first", ("settled",), FIRST),
    _selection("stamping", "memmap-stamp", "bulkmm"),
    _selection("cached clear", "clear-.*", "bulkmm-cached"),
    _selection("streaming clear", f"clear-{SIZE}", "bulkmm-streaming"),
    _selection("cached copy", "copy-.*", "bulkmm-cached"),
    _selection("streaming copy", f"copy-{SIZE}(-misaligned)?", "bulkmm-streaming"),
    *KERNEL_GOALS,
    *POPULATE_GOALS,
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
        said = "not met" if self.missed else "met"
        return f"{said}: {met} of {len(self.ratios)}"


def outcomes(document: Document) -> list[Outcome]:
    """Return the outcome of each goal for which the document has results."""
    held = by_scenario(one for one in document.results if one.raw)
    found = [
        Outcome(goal, sorted(_ratios(goal, held), key=attrgetter("ratio")))
        for goal in GOALS
    ]
    return [one for one in found if one.ratios]


def _ratios(goal: Goal, held: dict[str, Arms]) -> Iterator[Ratio]:
    for scenario, arms in held.items():
        if not re.fullmatch(goal.scenario, scenario):
            continue
        for count in _counts(goal, arms):
            one = _with(goal, count)
            bases = [name for name in arms if _is_base(one, name)]
            if bases and one.ours in arms and not _reached(one, arms):
                base = min(bases, key=lambda name: arms[name].median)
                ((ratio, _),) = stats.compared(arms, [(base, one.ours)])
                yield _by_thread(ratio, count) if goal.each else ratio


def _counts(goal: Goal, arms: Arms) -> list[int]:
    """Return the numbers of threads to which a goal applies; [1] if to none."""
    way, _, count = goal.ours.rpartition("-")
    if count != ANY:
        return [1]
    found = (name.removeprefix(f"{way}-") for name in arms)
    return sorted(int(n) for n in found if n.isdecimal() and int(n) > goal.each)


def _with(goal: Goal, count: int) -> Goal:
    """Return a goal with its names for a number of threads."""

    def named(name: str) -> str:
        return re.sub(f"-{ANY}$", f"-{count}", name)

    bases = tuple(map(named, goal.bases))
    return replace(goal, ours=named(goal.ours), bases=bases, until=named(goal.until))


def _reached(goal: Goal, arms: Arms) -> bool:
    limit = arms.get(goal.until)
    return bool(limit and limit.median >= NEAR * arms[goal.ours].median)


def _by_thread(ratio: Ratio, count: int) -> Ratio:
    low, high = ratio.ci95
    return replace(ratio, ratio=ratio.ratio / count, ci95=(low / count, high / count))


def _is_base(goal: Goal, name: str) -> bool:
    backends = tuple(base for base in goal.bases if base.endswith(":"))
    return name in goal.bases or name.startswith(backends)


def sheet(document: Document) -> Sheet:
    """Return each goal, its outcome, and its worst scenario."""
    rows = [
        (one.goal.what, f"{one.goal.least:.3f}", one.verdict, _said(one.ratios[0]))
        for one in outcomes(document)
    ]
    return Sheet(("goal", "at least", "met", "the least of them"), rows)


def missed(document: Document, begin: str = "") -> list[str]:
    """Return a line for each scenario in which a goal was not reached.

    Marked if part of its spread reaches the goal.
    """
    return [
        f"not met: {one.goal.what}: {_said(ratio)}"
        + (" ~" if ratio.ci95[1] >= one.goal.least else "")
        for one in outcomes(document)
        for ratio in one.missed
        if one.goal.what.startswith(begin)
    ]


def disagreements(document: Document) -> list[str]:
    """Return a line for each selection in which processes differ by more than 3 %."""
    found = []
    held = by_scenario(one for one in document.results if one.raw)
    for scenario, picks in document.run.get("picks", {}).items():
        for variant, names in picks.items():
            arms = [held[scenario].get(f"{variant}:{n}") for n in names.split("/")]
            times = [arm.median for arm in arms if arm and arm.median]
            if times and max(times) > APART * min(times):
                found.append(
                    f"not met: processes agree: {scenario}, {variant}: {names}, "
                    f"{max(times) / min(times):.2f} times as long"
                )
    return found


def _said(one: Ratio) -> str:
    from bulkmm import table

    return f"{one.scenario}, {one.base} {table.span(one, digits=3)}"
