# SPDX-License-Identifier: GPL-2.0-only
"""The checks of a vmap run: entries, counters, the original's return values."""

import re
import sys
from collections.abc import Iterable
from typing import Any

from bulkmm.lab import state
from bulkmm.lab.machine import klog
from bulkmm.lab.machine.vm import Outcome
from bulkmm.lab.work import alike, grouped
from bulkmm.results import Check

SERVING = ("pte", "block")  # the modes in which the module maps
ENTRIES = (
    "vmap",
    "vm_map_ram",
    "vmalloc",
    "vmalloc_huge",
    "vm_area_map_pages",
    "ioremap",
    "percpu",
)
# a wrong page: found by its entry and by vmalloc_to_page()
PLANTED = 2
# requests that the kernel refuses silently; the warnings of its own are rate-limited
SILENT = ("zero-count", "too-many", "test_vmalloc")
LINE = re.compile(r"(not ok|ok) \d+ (?P<name>[^#]+?)(?: # (?P<detail>.*))?$")
SUMMARY = re.compile(
    r"Summary: (\w+) passed: (\d+) failed: (\d+)(?: xfailed: (\d+))? repeat:"
)
# requests impossible alignments; older kernels count that as failed
MAY_FAIL = "align_shift_alloc_test"


def _merged(outcome: Outcome) -> list[dict[str, Any]]:
    """Return the reports, those of each process of a soak as one."""
    found = outcome.of("checked")
    pieces = grouped(outcome.of("soaked"), lambda e: f"soak-{e['process']}")
    for label, some in pieces.items():
        keys = ("arrays", "pages", "small", "large", "wrong")
        sums = {key: sum(int(e[key]) for e in some) for key in keys}
        first = next((e["first"] for e in some if int(e["wrong"])), "none")
        found.append({"label": label, "arm": "toggled", **sums, "first": first})
    return found


def random_arrays(outcome: Outcome, *, planted: bool) -> list[Check]:
    """Check that every random array was mapped as in the model."""
    found = []
    labels = set()
    for event in _merged(outcome):
        label, arm, wrong = event["label"], event["arm"], int(event["wrong"])
        labels.add(label)
        detail = (
            f"{event['arrays']} arrays, {event['pages']} pages, "
            f"{event['small']} small and {event['large']} large entries, "
            f"{wrong} wrong; first: {event['first']}"
        )
        if label == "planted":
            name, ok = f"a wrong page is seen ({arm})", wrong == PLANTED
        else:
            name = f"arrays mapped as the model says ({label} {arm})"
            ok = wrong == 0 and int(event["arrays"]) > 0
            if label == "random" and arm != "block":
                ok = ok and int(event["large"]) == 0
        found.append(Check(name, ok, detail))
    if planted and "random" in labels and "planted" not in labels:
        found.append(Check("a wrong page is seen", ok=False, detail="none planted"))
    return found


def hits(outcome: Outcome, calls: dict[str, tuple[int, bool]]) -> list[Check]:
    """Compare the path's counter with the calls of each visit, and who serves them.

    Calls that return from the trampoline are not counted, but mappings made by
    others meanwhile are.
    """

    def expected(visit: state.Visit) -> state.Expect:
        many, served = calls.get(visit.event["result"], (0, True))
        least, most = (many, sys.maxsize) if served else (0, many - 1)
        on = visit.arm in SERVING
        return _vmap(visit.arm, least * on, most * on)

    visits = grouped(state.visits(outcome, "visit"), lambda one: one.arm)
    return [state.judge(f"hits ({arm})", v, expected) for arm, v in visits.items()]


def _vmap(arm: str, least: int, most: int) -> state.Expect:
    return state.Expect("vmap", arm, least, most, small=None, others=True)


def entries(outcome: Outcome) -> list[Check]:
    """Check that every public entry point reached the path, only when on."""

    def expected(visit: state.Visit) -> state.Expect:
        on = visit.arm in SERVING
        return _vmap(visit.arm, int(on), sys.maxsize if on else 0)

    return [
        state.judge(f"{one.event['name']}() is seen ({one.arm})", [one], expected)
        for one in state.visits(outcome, "entry")
    ]


def _ktap(outcome: Outcome) -> Iterable[tuple[dict[str, Any], bool, str, str]]:
    """Yield event, verdict, name and detail of each KTAP line."""
    for event in outcome.of("ktap"):
        if said := LINE.fullmatch(event["line"].strip()):
            yield event, said[1] == "ok", said["name"], said["detail"] or ""


def verdicts(outcome: Outcome) -> list[Check]:
    """Return the test module's own verdicts; all announced ones must be there."""
    found = [
        Check(f"{name} ({event['arm']})", ok, detail)
        for event, ok, name, detail in _ktap(outcome)
    ]
    for plan in outcome.of("ktap-plan"):
        key = (plan["of"], plan["arm"])
        lines = [e for e, *_ in _ktap(outcome) if (e["of"], e["arm"]) == key]
        if len(lines) != int(plan["plan"]):
            detail = f"{len(lines)} of {plan['plan']}"
            found.append(
                Check("{} in {}: all lines".format(*key), ok=False, detail=detail)
            )
    return found


def as_original(outcome: Outcome, base: str) -> list[Check]:
    """Check that failures in every mode are those without the module.

    PMD mappings need fewer page tables, so an allocation failure hits elsewhere:
    the guest alone judges block mode.
    """
    said: dict[tuple[str, str], dict[str, str]] = {}
    for event, _, name, detail in _ktap(outcome):
        if event["of"] == "bad" or (
            event["of"] == "starve" and event["arm"] != "block"
        ):
            said.setdefault((event["of"], name), {})[event["arm"]] = detail
    return [
        alike(f"as the original: {name}", arms, base)
        for (_, name), arms in said.items()
    ]


def warnings(outcome: Outcome, base: str) -> list[Check]:
    """Check that the kernel's warnings in every mode are those without the module."""
    seen: dict[str, dict[str, list[str]]] = {}
    for what, arm, places in klog.warnings(outcome.log):
        seen.setdefault(what, {})[arm] = places
    return [
        alike(
            f"warnings ({what})",
            arms,
            base,
            ok=bool(arms.get(base)) is (what not in SILENT),
        )
        for what, arms in seen.items()
    ]


def upstream(outcome: Outcome, base: str) -> list[Check]:
    """Check that the kernel's own tests end in every mode as without the module."""
    said: dict[str, dict[str, list[tuple[str, ...]]]] = {}
    checks = []
    every = {event["arm"] for event in outcome.of("upstream")}
    for event in outcome.of("upstream"):
        if not (found := SUMMARY.search(event["line"])):
            name = f"a result that is understood ({event['arm']})"
            checks.append(Check(name, ok=False, detail=event["line"]))
            continue
        verdict = tuple(found.groups("0")[1:])
        said.setdefault(found[1], {}).setdefault(event["arm"], []).append(verdict)
    for name, arms in said.items():
        failed = any(int(v[1]) for some in arms.values() for v in some)
        detail = "; ".join(
            f"{arm}: {' '.join('/'.join(v[:3]) for v in some)}"
            for arm, some in arms.items()
        )
        ok = (not failed or name == MAY_FAIL) and arms.keys() == every
        checks.append(alike(f"{name} (upstream)", arms, base, detail, ok=ok))
    return checks
