# SPDX-License-Identifier: GPL-2.0-only
"""The checks of a vmap run: entries, counters, the original's return values."""

import math
import re
from collections.abc import Iterable
from typing import Any

from bulkmm.control.module import NOT_TRIED, hooks
from bulkmm.lab.choices import ARMS
from bulkmm.lab.machine import klog
from bulkmm.lab.machine.vm import Outcome
from bulkmm.results import Check

ABSENT = ARMS[0]
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
# requests that the kernel refuses silently
SILENT = ("zero-count", "too-many")
LINE = re.compile(r"(not ok|ok) \d+ (?P<name>[^#]+?)(?: # (?P<detail>.*))?$")
SUMMARY = re.compile(
    r"Summary: (\w+) passed: (\d+) failed: (\d+)(?: xfailed: (\d+))? repeat:"
)
# requests impossible alignments; older kernels count that as failed
MUST_FAIL = "align_shift_alloc_test"


def _merged(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Merge the reports of each process that maps for a period."""
    found = [event for event in events if event["arm"] != "toggled"]
    pieces: dict[str, list[dict[str, Any]]] = {}
    for event in events:
        if event["arm"] == "toggled":
            pieces.setdefault(event["label"], []).append(event)
    for some in pieces.values():
        keys = ("arrays", "pages", "small", "large", "wrong")
        sums = {key: sum(int(e[key]) for e in some) for key in keys}
        first = next((e["first"] for e in some if int(e["wrong"])), "none")
        found.append({**some[0], **sums, "first": first})
    return found


def random_arrays(outcome: Outcome, *, planted: bool) -> list[Check]:
    """Check that every random array was mapped as in the model."""
    found = []
    labels = set()
    for event in _merged(outcome.of("checked")):
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


def hits(
    outcome: Outcome, served: dict[str, int], passed: dict[str, int]
) -> list[Check]:
    """Compare the path's counter with the calls of each visit.

    Calls that return from the trampoline are not counted, but mappings made by
    others meanwhile are.
    """
    seen: dict[str, list[tuple[int, int, float]]] = {}
    for visit in outcome.of("visit"):
        name, serving = visit["result"], visit["arm"] in SERVING
        least = served.get(name, 0) if serving else 0
        below = passed.get(name, math.inf) if serving else 1
        seen.setdefault(visit["arm"], []).append((int(visit["hits"]), least, below))
    return [
        Check(
            f"hits ({arm})",
            all(least <= count < below for count, least, below in counts),
            f"{sum(count for count, _, _ in counts)} of at least "
            f"{sum(least for _, least, _ in counts)}",
        )
        for arm, counts in seen.items()
    ]


def entries(outcome: Outcome) -> list[Check]:
    """Check that every public entry point reached the path, only when on."""
    return [
        Check(
            f"{event['name']}() is seen ({event['arm']})",
            (int(event["hits"]) > 0) is (event["arm"] in SERVING),
            f"{event['hits']} hits, {event['seen']} requests",
        )
        for event in outcome.of("entry")
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
        Check(
            f"as the original: {name}",
            len(set(arms.values())) == 1 and base in arms,
            "; ".join(f"{arm}: {detail}" for arm, detail in arms.items()),
        )
        for (_, name), arms in said.items()
    ]


def warnings(outcome: Outcome, base: str) -> list[Check]:
    """Check that the kernel's warnings in every mode are those without the module."""
    seen: dict[str, dict[str, list[str]]] = {}
    for what, arm, places in klog.warnings(outcome.log):
        seen.setdefault(what, {})[arm] = places
    found = []
    for what, arms in seen.items():
        same = all(places == arms.get(base) for places in arms.values())
        warned = bool(arms.get(base)) is (what not in SILENT)
        detail = "; ".join(f"{arm}: {', '.join(p) or '-'}" for arm, p in arms.items())
        if what == "test_vmalloc":  # its warnings are rate-limited
            same, warned = all(p == [] for p in arms.values()), True
        found.append(Check(f"warnings ({what})", same and warned, detail))
    return found


def upstream(outcome: Outcome, base: str) -> list[Check]:
    """Check that the kernel's own tests end in every mode as without the module."""
    said: dict[str, dict[str, list[tuple[str, ...]]]] = {}
    for event in outcome.of("upstream"):
        if found := SUMMARY.search(event["line"]):
            verdict = tuple(found.groups("0")[1:])
            arms = said.setdefault(found[1], {})
            arms.setdefault(event["arm"], []).append(verdict)
    checks = []
    for name, arms in said.items():
        same = all(some == arms.get(base) for some in arms.values())
        failed = any(int(v[1]) for some in arms.values() for v in some)
        detail = "; ".join(
            f"{arm}: {' '.join('/'.join(v[:3]) for v in some)}"
            for arm, some in arms.items()
        )
        checks.append(
            Check(
                f"{name} (upstream)", same and (not failed or name == MUST_FAIL), detail
            )
        )
    return checks


def soak(outcome: Outcome) -> list[Check]:
    """Check that the path served requests while it was toggled and unloaded."""
    return [
        Check(
            "served meanwhile",
            event["loads"] == 0 or event["hits"] > 0,
            f"{event['hits']} requests served, {event['turns']} turns of modes, "
            f"module loaded {event['loads']} times",
        )
        for event in outcome.of("soak")
    ]


def attached(outcome: Outcome) -> Check:
    """Check that all hooks were in place in every mode, and empty at the end.

    While others map, calls may be in progress: there the proof is the unload
    itself, which waits for them.
    """
    seen = outcome.of("vmap-counters")
    busy = bool(outcome.of("soak"))
    switched = outcome.of("vmap-hooks")
    states = {e["arm"]: {h.errno for h in hooks(e["hook"])} for e in switched}
    on = [state for arm, state in states.items() if arm != "off"]
    whole = bool(on) and all(state == {0} for state in on)
    gone = states.get("off", {NOT_TRIED}) == {NOT_TRIED}
    empty = busy or all(int(str(c["inflight"]).strip()) == 0 for c in seen)
    detail = "; ".join(sorted({str(e["hook"]).strip() for e in switched}))
    return Check("hooks attached, nobody left inside", whole and gone and empty, detail)
