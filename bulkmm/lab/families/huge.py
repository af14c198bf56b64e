# SPDX-License-Identifier: GPL-2.0-only
"""Shared by the huge-page scenarios: sizes, states, and the checks of a visit."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any, TypeVar

from bulkmm.control.kernel import ALLOCATOR_SERVES
from bulkmm.control.module import OFF
from bulkmm.control.needs import at_least
from bulkmm.lab import state
from bulkmm.lab.machine.vm import Outcome
from bulkmm.lab.state import Expect, Visit, judge
from bulkmm.lab.work import Work, grouped
from bulkmm.results import Check
from bulkmm.size import KIB, PAGE, named

Visits = list[dict[str, Any]]
Ways = TypeVar("Ways")

ARMS = ("absent", "off", "auto", "cached", "streaming")
SERVING = ARMS[2:]  # the modes in which the module clears
ALLOC_FROM = 512  # pages: the least that path alloc serves
LISTS = ("cached", "streaming")  # of backends, named as the modes that use them


@dataclass(frozen=True)
class SizedWork(Work):
    """A scenario that times folios of one or several sizes."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """Return the sizes that exist, in KiB."""
        found: tuple[int, ...] = self.scenario.shape.kib
        return found

    @property
    def kib(self) -> tuple[int, ...]:
        """Return the sizes of this run."""
        return self.options.kib or self.sizes

    @property
    def known(self) -> Mapping[str, tuple[object, ...]]:
        return {"kib": self.sizes}

    def timed(self, kinds: Mapping[str, Ways]) -> Iterator[tuple[str, int, Ways]]:
        """Yield for each size and kind of visit the result's name and the ways."""
        for kib, (what, ways) in product(self.kib, kinds.items()):
            of = "" if len(self.sizes) == 1 else f"-{size(kib)}"
            yield f"{self.scenario.name}{of}-{what}", kib, ways


def arm(name: str) -> str:
    """Return the job's line that brings path clear into a state."""
    return f"state {name}" if name == "absent" else f"clear_state {name}"


def allocator_clears(outcome: Outcome) -> bool:
    """Return whether the kernel's allocator clears every page it returns."""
    return bool(outcome.of("zeroing")[0]["allocator"] == "on")


def taken_away(outcome: Outcome) -> bool:
    """Return whether only the allocator clears transparent huge pages."""
    release = outcome.of("start")[0]["release"]
    return allocator_clears(outcome) and at_least(release, ALLOCATOR_SERVES)


def size(kib: int) -> str:
    """Return a size as in scenario names: 64k, 2m, 1g."""
    return named(kib * KIB).lower()


def expected(visit: Visit, *, taken_away: bool) -> tuple[Expect, Expect]:
    """Return what a visit is to do to paths clear and alloc."""
    event, arm = visit.event, visit.arm
    folios, pages = int(event["folios"]), event["kib"] * KIB // PAGE
    hits = small = alloc = 0
    if arm not in SERVING:
        pass
    elif taken_away:
        served = visit.path("alloc").mode != OFF and pages >= ALLOC_FROM
        alloc = folios if served else 0
    # the original clears single pages, whatever the tunables
    elif pages >= max(visit.path("clear").settings.get("min_pages", 0), 2):
        hits = folios
    else:
        small = folios
    return Expect("clear", arm, hits, small=small), allocated(alloc)


def allocated(hits: int) -> Expect:
    """Return what is expected of path alloc, which also sees other pages."""
    return Expect("alloc", least=hits, small=None, others=True)


def visits(outcome: Outcome) -> list[dict[str, Any]]:
    """Return the visits as results have them."""
    return [*map(_facts, state.visits(outcome, "visit"))]


def _facts(visit: Visit) -> dict[str, Any]:
    fell = visit.fell("clear")
    return {
        **visit.event,
        "hits": visit.moved("clear"),
        "small": fell.pop("small", 0),
        "fell": fell.total(),
        "alloc": visit.moved("alloc"),
        "alloc_on": "no" if visit.path("alloc").mode == OFF else "yes",
        "min_pages": visit.path("clear").settings.get("min_pages", 0),
    }


def place(event: dict[str, Any]) -> str:
    """Return what is wrong and, if it is known, where first."""
    said = f"{event['wrong']} words wrong"
    if "folio" in event:
        said += f", first in folio {event['folio']} at byte "
        said += f"{event['offset']}: {event['word']}"
    return said


def right(name: str, events: Visits, detail: str = "", *, ok: bool = True) -> Check:
    """Check that no word was wrong in what events report; there must be some."""
    wrong = next((one for one in events if int(one["wrong"])), None)
    said = detail or f"{len(events)} visits"
    if wrong:
        what = (str(wrong.get(key, "")) for key in ("arm", "backend"))
        said += f"; {' '.join(filter(None, what))}: {place(wrong)}"
    return Check(name, bool(events) and not wrong and ok, said)


def zero(visits: Iterable[dict[str, Any]]) -> list[Check]:
    """Check for each size and way that every byte was zero."""
    found = []
    groups = grouped(visits, lambda one: f"{size(one['kib'])} {one['way']}")
    for name, some in groups.items():
        folios = sum(int(v["folios"]) for v in some)
        detail = f"{folios} folios in {len(some)} visits"
        found.append(right(f"every byte zero ({name})", some, detail, ok=folios > 0))
    return found


def tags(visits: Visits) -> list[Check]:
    """Check that memory tags were zero, except planted ones."""
    looked = [v for v in visits if v["tags"]]
    wanted = [int(v["label"] == "planted") for v in looked]
    wrong = [int(v["tags_wrong"]) for v in looked]
    many = sum(int(v["tags"]) for v in looked)
    detail = f"{many} tags in {len(looked)} visits, {sum(wrong)} not zero"
    detail += f"; {sum(wanted)} planted"
    return [Check("every memory tag zero", wrong == wanted, detail)] if looked else []


def planted(visits: Visits, *, wanted: bool) -> list[Check]:
    """Check that exactly the byte planted was found."""
    found = []
    for visit in visits:
        if visit["label"] == "planted":
            last = (visit["kib"] << 10) - 8
            where = (visit["wrong"], visit["folio"], visit["offset"])
            ok = where == (1, visit["folios"] - 1, last)
            name = f"a planted byte is seen ({size(visit['kib'])})"
            found.append(Check(name, ok, place(visit)))
    if wanted and not found:
        found.append(Check("a planted byte is seen", ok=False, detail="none planted"))
    return found


def counters(visits: Iterable[Visit], *, taken_away: bool) -> list[Check]:
    """Compare the module's counters with the expected folios."""
    groups = grouped(visits, lambda one: f"{size(one.event['kib'])} {one.arm}")
    return [
        judge(f"counters ({name})", some, partial(expected, taken_away=taken_away))
        for name, some in groups.items()
    ]


def forced(visits: Visits, least: int) -> Check:
    """Check that backends of both lists were forced in every way."""
    seen = grouped((v for v in visits if v["label"] == "forced"), lambda v: v["arm"])
    names = {arm: sorted({v["backend"] for v in some}) for arm, some in seen.items()}
    ok = {*names} == {*LISTS}
    ok = ok and all(len(seen[n]) == len(names[n]) * least for n in LISTS)
    detail = "; ".join(f"{arm}: {', '.join(some)}" for arm, some in names.items())
    return Check("backends forced", ok, detail)
