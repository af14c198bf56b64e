# SPDX-License-Identifier: GPL-2.0-only
"""Scenarios of kernels with the patches in upstream/: their tests, and the module."""

from collections.abc import Iterable
from typing import Any

from bulkmm.control.requirements import is_at_least
from bulkmm.results.model import Check
from lab.machine import kernel_kinds, ktap
from lab.machine.kernel_kinds import Kind
from lab.machine.ktap import Case
from lab.machine.suites import FORK
from lab.machine.vm import Outcome
from lab.scenario import base
from lab.scenario.base import Event, Scenario
from lab.scenario.clear import allocator_clears

# by path: what its first hook may say where the kernel has the series that replaces it,
# and where not; functions are inlined (-2, -61) as the compiler likes. prezero has work
# left, and is refused for a caller of its hook that the series clear adds
REFUSALS = {
    "memmap": ("-114",),
    "clear": ("-114",),
    "alloc": ("-114",),
    "prezero": ("-78",),
    "vmap": ("-91", "-2"),
}
OTHERWISE = {
    "memmap": ("0",),
    "clear": ("0",),
    "alloc": ("0", "-2", "-61"),
    "prezero": ("0",),
    "vmap": ("0", "-2"),
}
SERIES = {"prezero": "clear"}  # where it has another name
CLEARING = ("clear", "alloc")
LARGEST = f"{1 << 20} kB"  # hugetlb pages
FOLIOS, HUGE_PAGES = 4, 512  # of 2 MiB
BRK_LOCKED = "brk-locked"  # a heap has no advice
# ways of bmmfault (thp, hugetlb) and of bmmpin, which has as many folios; then the same
# process touches as many
WAYS = {
    "thp": ("write-first", "read", "madv-populate", "map-populate"),
    "pinned": (
        "touch",
        "read-call",
        "mlock",
        "mprotect-locked",
        BRK_LOCKED,
        "io-uring",
    ),
    "tmpfs": ("shared-touch", "shared-populate", "udmabuf"),
    "refused": ("fallocate-refused",),
    "hugetlb": ("write-first", "memfd", "madv-populate", "map-populate", "fallocate"),
}
BY_BMMFAULT = ("thp", "hugetlb")
# these populate nothing
TOUCHING = (
    *("write-first", "read", "memfd", "touch", "read-call", "shared-touch"),
    "fallocate-refused",
)
# huge pages that come in, by counter, with those that are touched after; bmmfault
# itself says of which size hugetlb pages are
TWICE = {"anonymous": 2 * FOLIOS, "shared": 0}
EXPECTED_HUGE = {
    "thp": TWICE,
    "pinned": TWICE,
    "tmpfs": {"anonymous": FOLIOS, "shared": FOLIOS},
    "refused": {"anonymous": FOLIOS, "shared": 0},
}


class Kunit(Scenario):
    """Every case of every suite that the kernel's patches add."""

    def judge(self, outcome: Outcome) -> Iterable[Check]:
        """Check each case, and that each suite has some that passed."""
        kind = _find_kind(outcome)
        suites = kind.suites if kind else []
        yield Check("the patches have tests", bool(suites), ", ".join(suites))
        for suite in suites:
            cases = _read_suite(outcome, suite)
            for case in cases:
                ok = case.verdict != ktap.FAILED
                yield Check(case.name, ok, case.detail or case.verdict)
            passed = sum(case.verdict == ktap.PASSED for case in cases)
            detail = f"{passed} of {len(cases)} passed"
            yield Check(f"{suite}: cases passed", passed > 0, detail)

    def facts(self, outcome: Outcome) -> dict[str, Any]:
        suites = {event["suite"]: None for event in outcome.of("kunit")}
        return {
            **super().facts(outcome),
            "tests": {
                case.name: case.verdict
                for suite in suites
                for case in _read_suite(outcome, suite)
            },
        }


class Fork(Scenario):
    """The test of the series hugetlb-fork, which must fail without the series."""

    def judge(self, outcome: Outcome) -> Iterable[Check]:
        kind = _find_kind(outcome)
        has_series = kind is not None and kind.patched
        lines = [str(event["line"]) for event in outcome.of("selftest")]
        cases = {case.name: case for case in ktap.read_cases(lines)}
        for case in cases.values():
            wanted = ktap.PASSED
            if case.name == LARGEST and not has_series:
                wanted = ktap.FAILED
            detail = case.detail or case.verdict
            yield Check(f"{case.name}: {wanted}", case.verdict == wanted, detail)
        yield Check(
            "pages of 1 GiB were tried", LARGEST in cases, f"{len(cases)} sizes"
        )


class Populated(Scenario):
    """Folios brought in by calls that populate, and touched: what bypasses caches."""

    def lines(self) -> list[str]:
        lines = [
            "zeroing",
            "modules bulkmm_lab",
            "folios thp 2048",
            "must_write $HUGE/shmem_enabled always",
        ]
        for kind, ways in WAYS.items():
            if kind == "hugetlb":
                lines.append(f"folios hugetlb 2048 {FOLIOS}")
            lines += [_format_call(kind, way) for way in ways]
        return [*lines, "must rmmod bulkmm_lab"]

    def judge(self, outcome: Outcome) -> Iterable[Check]:
        events = outcome.of("nt-clears")
        ways = [f"{event['kind']} {event['way']}" for event in events]
        wanted = [f"{kind} {way}" for kind, ways in WAYS.items() for way in ways]
        yield Check(base.WHOLE, ways == wanted, f"ways: {len(ways)}")
        for event, way in zip(events, ways, strict=True):
            if event["kind"] in EXPECTED_HUGE:
                yield _check_huge(event, way)
            yield _check_caches(outcome, event, way)


def _format_call(kind: str, way: str) -> str:
    """Return the line of a way, after which the same process touches other memory."""
    program = f"bmmpin -t {way}"
    if kind in BY_BMMFAULT:
        folios = f"-n {2 * FOLIOS} -b {FOLIOS}"
        program = f"bmmfault {folios} {kind} 2048 {way} write-first"
    call = "count_nt_clears_by_all" if way == BRK_LOCKED else "count_nt_clears"
    return f"{call} {kind} {way} {program}"


def _check_huge(event: Event, way: str) -> Check:
    """Check that as many huge pages came in as were asked for: no small ones."""
    counts = EXPECTED_HUGE[event["kind"]]
    ok = all(int(event[name]) == many for name, many in counts.items())
    texts = (f"{name} {event[name]} of {many}" for name, many in counts.items())
    return Check(f"{way}: huge pages", ok, ", ".join(texts))


def _check_caches(outcome: Outcome, event: Event, way: str) -> Check:
    """Check that what is populated is cleared past the caches, and nothing else."""
    touched, pages = event["way"] in TOUCHING, int(event["pages"])
    turns = 0 if touched else _count_turns(outcome, event["kind"])
    expected = turns * FOLIOS * HUGE_PAGES
    name = "in the caches" if touched else "past the caches, a touch after it in them"
    detail = f"{pages} pages past them, {expected} expected"
    return Check(f"{way}: {name}", pages == expected, detail)


def _count_turns(outcome: Outcome, kind: str) -> int:
    """Return how often huge pages of a kind are cleared.

    Those of tmpfs are cleared again after the allocator has done so, and before 7.0
    anonymous ones are.
    """
    release = str(outcome.of("start")[0]["release"])
    anonymous_once = kind != "tmpfs" and is_at_least(release, "7.0")
    if kind == "hugetlb" or anonymous_once:
        return 1
    return 1 + allocator_clears(outcome)


class Hooks(Scenario):
    """Which paths attach where the kernel does their work itself."""

    def judge(self, outcome: Outcome) -> Iterable[Check]:
        kind = _find_kind(outcome)
        for path, refusals in REFUSALS.items():
            wanted = refusals if kind and is_refused(path, kind) else OTHERWISE[path]
            events = outcome.of("patched-hook", path=path)
            errors = [str(event["errno"]) for event in events]
            detail = "; ".join(str(event["says"]) for event in events)
            ok = len(errors) == 1 and errors[0] in wanted
            yield Check(f"{path}: {' or '.join(wanted)}", ok, detail)


def is_refused(path: str, kind: Kind) -> bool:
    """Return whether the patches of a kernel keep a path off."""
    if path in CLEARING:
        return kind.replaces_clear
    return SERIES.get(path, path) in kind.subjects


def _find_kind(outcome: Outcome) -> Kind | None:
    return kernel_kinds.of_release(outcome.of("start")[0]["release"])


def _read_suite(outcome: Outcome, suite: str) -> list[Case]:
    lines = [str(event["line"]) for event in outcome.of("kunit", suite=suite)]
    return ktap.read_cases(lines)


SCENARIOS = (
    Kunit(
        "kunit",
        "the unit tests of the patches in upstream/, which run at boot",
        "each case passes or is skipped, none is missing, and some of each suite pass",
        family="suites",
        path="suites",
        does=("kunit",),
        runs=base.Runs(
            full=(),
            debug=dict.fromkeys(kernel_kinds.PATCHED, ("",)),
        ),
        needs=base.Needs(
            kinds=kernel_kinds.PATCHED,
        ),
        seconds=30,
        machine=base.Machine(
            memory=1024,
            # on 6.12 the first does both; the console, too, tells which suite warns
            cmdline="kunit.enable=1 kunit.autorun=1 loglevel=7",
        ),
    ),
    Fork(
        "hugetlb-fork",
        "the test of the patches for private hugetlb pages across fork(), which add it "
        "to the kernel's own",
        "no child lacks its page on a kernel with the patches; some do without",
        family="suites",
        path="suites",
        does=(f"selftest {FORK}",),
        runs=base.Runs(
            full=(),
            debug=dict.fromkeys((*kernel_kinds.PATCHED, *kernel_kinds.BASES), ("",)),
        ),
        needs=base.Needs(
            kinds=(*kernel_kinds.PATCHED, *kernel_kinds.BASES),
        ),
        seconds=120,
        machine=base.Machine(
            cmdline=base.GIB_PAGE,
            suite=FORK,
        ),
    ),
    Populated(
        "clear-patched",
        "which calls clear past the caches on a kernel with the patches in upstream/",
        "all pages that a call populates or pins, with init_on_alloc too; none that "
        "is touched, nor by the same process later; all of them in huge pages",
        family="clear",
        path="clear",
        takes=("init_on_alloc",),
        runs=base.Runs(
            full=(),
            debug=dict.fromkeys(
                kernel_kinds.PATCHED, ("--init-on-alloc 0", "--init-on-alloc 1")
            ),
        ),
        needs=base.Needs(
            kinds=kernel_kinds.PATCHED,
            x86_only="stores past the caches are",
        ),
        seconds=30,
        machine=base.Machine(
            memory=1024,
        ),
    ),
    Hooks(
        "hook-patched",
        "which paths attach on a kernel with the patches in upstream/",
        "paths stay off where the kernel does their work itself, and say why",
        family="suites",
        path="suites",
        does=("hook_patched",),
        runs=base.Runs(
            full=(),
            debug=dict.fromkeys(kernel_kinds.PATCHED_HOOKED, ("",)),
        ),
        needs=base.Needs(
            kinds=kernel_kinds.PATCHED_HOOKED,
        ),
        seconds=20,
        machine=base.Machine(
            memory=1024,
        ),
    ),
)
