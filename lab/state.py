# SPDX-License-Identifier: GPL-2.0-only
"""The module's state in a guest: what it showed around each visit, judged here alone.

A visit is what a guest does between two records of all that the module shows in
sysfs (lab/guest/state.sh). They are read as on a real machine.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bulkmm.control import module
from bulkmm.control.module import HOME, NOT_TRIED, OFF, KernelPath
from bulkmm.control.system_files import SystemFiles
from bulkmm.results.model import Check
from lab.machine.vm import Outcome

HITS = "hits"  # a counter
UNLOAD = "unload"


class RecordRoot(SystemFiles):
    """The module's files, as one record has them."""

    def __init__(self, files: dict[str, str]) -> None:
        self.files = {f"{HOME}/{name}": text.strip() for name, text in files.items()}

    def read(self, name: str) -> str | None:
        """Return a file's text."""
        return self.files.get(name)

    def names(self, name: str) -> list[str]:
        """Return the names in a directory."""
        below = [one for one in self.files if one.startswith(f"{name}/")]
        return sorted({one[len(name) + 1 :].partition("/")[0] for one in below})

    def is_writable(self, name: str) -> bool:
        """Return whether it may be a setting: its form tells."""
        return name in self.files


@dataclass(frozen=True)
class Record:
    """What the module showed once, in a state of the scenario's."""

    arm: str
    files: dict[str, str]
    paths: dict[str, KernelPath]


def _record(event: dict[str, Any]) -> Record:
    status = module.read_module(RecordRoot(event["files"]))
    paths = {path.name: path for path in status.paths} if status else {}
    return Record(event["arm"], event["files"], paths)


def list_records(outcome: Outcome, **when: str) -> list[Record]:
    """Return all records, or those of one kind: before, after, unload."""
    return [*map(_record, outcome.of("state", **when))]


@dataclass(frozen=True)
class Visit:
    """What a guest reported after two records; there are none without the module."""

    event: dict[str, Any]
    before: Record | None = None
    after: Record | None = None

    @property
    def arm(self) -> str:
        """Return the state of the module, as the scenario calls it."""
        return str(self.event["arm"])

    def path(self, name: str) -> KernelPath:
        """Return a path's state afterwards; it is off without the module."""
        off = KernelPath(name, OFF, [OFF], [])
        return self.after.paths.get(name, off) if self.after else off

    def moved(self, path: str, counter: str = HITS) -> int:
        """Return by how much a counter moved."""
        was = self.before.paths[path].counters.get(counter, 0) if self.before else 0
        return self.path(path).counters.get(counter, 0) - was

    def fell(self, path: str) -> Counter[str]:
        """Return how often the original served, by reason other than off."""
        was = self.before.paths[path].fallbacks if self.before else {}
        now = Counter(self.path(path).fallbacks)
        now.subtract(was)
        return Counter({why: n for why, n in now.items() if n and why != OFF})

    def facts(self, path: str) -> dict[str, Any]:
        """Return the event and how the path's counters moved."""
        return {
            **self.event,
            HITS: self.moved(path),
            **{f"fallback_{why}": n for why, n in self.fell(path).items()},
        }


def list_visits(outcome: Outcome, *kinds: str) -> list[Visit]:
    """Return the visits that ended in events of these kinds."""
    ended_visits: list[Visit] = []
    around: dict[str, Record] = {}
    for event in outcome.events:
        if event["event"] == "state":
            if event["when"] == "before":
                around = {}
            around[event["when"]] = _record(event)
        elif event["event"] in kinds:
            ended_visits.append(Visit(event, around.get("before"), around.get("after")))
            around = {}
        elif "after" in around:  # of a visit of another kind
            around = {}
    return ended_visits


@dataclass(frozen=True)
class Expect:
    """What a visit is to do to a path's state."""

    path: str
    mode: str | None = None  # None: any
    least: int = 0
    most: int | None = None  # None: as many as least
    # how often the original serves, by reason; None: whatever happens
    fell: Mapping[str, int] | None = field(default_factory=dict)
    counter: str = HITS

    def wrong(self, visit: Visit) -> str:
        """Return what is not as expected; "" if all is."""
        many = visit.moved(self.path, self.counter)
        most = self.least if self.most is None else self.most
        problems = []
        if not self.least <= many <= most:
            problems.append(f"{many} {self.counter}, not {self.least}")
        fell = visit.fell(self.path)
        if self.fell is not None and fell != Counter(self.fell):
            problems.append(f"fell back: {dict(fell)}, not {dict(self.fell)}")
        mode = visit.path(self.path).mode
        if visit.after and self.mode not in (None, mode):
            problems.append(f"mode {mode}, not {self.mode}")
        return "; ".join(problems)


def judge_visits(
    name: str,
    judged_visits: Sequence[Visit],
    expected: Callable[[Visit], Expect | tuple[Expect, ...]],
) -> Check:
    """Check that each visit moved the counters as expected; there must be one."""
    moved: Counter[tuple[str, str]] = Counter()
    wrong = []
    for visit in judged_visits:
        expectations = expected(visit)
        for expect in (
            (expectations,) if isinstance(expectations, Expect) else expectations
        ):
            moved[expect.path, expect.counter] += visit.moved(
                expect.path, expect.counter
            )
            if problem := expect.wrong(visit):
                wrong.append(f"{visit.arm}, {expect.path}: {problem}")
    detail = ", ".join(f"{path} {n} {counter}" for (path, counter), n in moved.items())
    detail += f" in {len(judged_visits)} visits"
    if wrong:
        detail += f"; {len(wrong)} wrong: {wrong[0]}"
    return Check(name, bool(judged_visits) and not wrong, detail)


def check_attached(outcome: Outcome, path: str, *, busy: bool = False) -> Check:
    """Check that hooks were in place whenever the path was on, and only then.

    At unload nobody may be inside, unless others are busy calling: there the unload
    is the proof, which waits for them.
    """
    states = [one.paths[path] for one in list_records(outcome) if path in one.paths]
    on = [one for one in states if one.mode != OFF]
    odd = [
        hook
        for one in states
        for hook in one.hooks
        if hook.errno != (NOT_TRIED if one.mode == OFF else 0)
    ]
    unloads = list_records(outcome, when=UNLOAD)
    inflight = [one.paths[path].counters["inflight"] for one in unloads]
    detail = (
        f"on in {len(on)} of {len(states)} records, {max(inflight, default=0)} inside"
    )
    if odd:
        detail += f"; {odd[0]}"
    ok = bool(on) and all(one.hooks for one in on) and not odd
    ok = ok and bool(inflight) and (busy or not any(inflight))
    return Check("hooks attached, no calls in flight", ok, detail)


def list_unloaded(outcome: Outcome) -> list[dict[str, Any]]:
    """Return each path's counters at every unload."""
    return [
        {"arm": one.arm, "path": name, **path.counters}
        | {f"fallback_{why}": n for why, n in path.fallbacks.items()}
        for one in list_records(outcome, when=UNLOAD)
        for name, path in one.paths.items()
    ]


def count_served(outcome: Outcome) -> Counter[str]:
    """Return each path's hits in all, from load to unload."""
    hits: Counter[str] = Counter()
    for counters in list_unloaded(outcome):
        hits[counters["path"]] += counters[HITS]
    return hits


def check_meanwhile(outcome: Outcome, **least: int) -> Check:
    """Check that paths served so many requests while they came and went."""
    hits = count_served(outcome)
    detail = ", ".join(f"{path} {many} hits" for path, many in hits.items())
    ok = all(hits[path] >= many for path, many in least.items())
    return Check("served meanwhile", ok, detail)


def hooks_seen(outcome: Outcome, path: str) -> list[str]:
    """Return the distinct states of the hooks of a path, or of all, once tried."""
    candidates = (p for one in list_records(outcome) for p in one.paths.values())
    paths = [p for p in candidates if path in (p.name, "suites")]
    hooks = {str(h) for p in paths for h in p.hooks if h.errno != NOT_TRIED}
    return sorted(hooks)
