# SPDX-License-Identifier: GPL-2.0-only
"""The checks of a huge-page run: zeros, counters, backends, their own validity."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from bulkmm.lab.families.huge import size
from bulkmm.lab.machine.vm import Outcome
from bulkmm.results import Check

Visits = list[dict[str, Any]]

PAGE_KIB = 4
ARMS = ("absent", "off", "auto", "cached", "streaming")
SERVING = ARMS[2:]  # the modes in which the module clears
ALLOC_FROM = 512  # pages: the least that path alloc serves
ON = "0 "  # of a hook: attached
ON_OFF = (ON, "-19 ")  # attached or detached
LISTS = ("cached", "streaming")  # of backends, named as the modes that use them


def expected(visit: dict[str, Any], *, taken_away: bool) -> tuple[int, int, int]:
    """Return a visit's expected hits, small folios and folios of path alloc."""
    folios, pages = int(visit["folios"]), visit["kib"] // PAGE_KIB
    if visit["arm"] not in SERVING:
        return 0, 0, 0
    if taken_away:
        served = visit["alloc_on"] == "yes" and pages >= ALLOC_FROM
        return 0, 0, folios if served else 0
    # the original clears single pages, whatever the tunables
    least = max(int(visit["min_pages"]), 2)
    return (folios, 0, 0) if pages >= least else (0, folios, 0)


def place(event: dict[str, Any]) -> str:
    """Return the position of the first wrong word."""
    return (
        f"{event['wrong']} words wrong, first in folio {event['folio']} at byte "
        f"{event['offset']}: {event['word']}"
    )


def _groups(visits: Iterable[dict[str, Any]], key: str) -> dict[str, Visits]:
    """Return visits by folio size and a field."""
    groups: dict[str, Visits] = defaultdict(list)
    for visit in visits:
        groups[f"{size(visit['kib'])} {visit[key]}"].append(visit)
    return groups


def zero(visits: Iterable[dict[str, Any]]) -> list[Check]:
    """Check for each size and way that every byte was zero."""
    found = []
    for name, some in _groups(visits, "way").items():
        folios = sum(int(v["folios"]) for v in some)
        wrong = next((v for v in some if v["wrong"]), None)
        detail = f"{folios} folios in {len(some)} visits"
        if wrong:
            detail += f"; {wrong['arm']} {wrong['backend']}: {place(wrong)}"
        found.append(
            Check(f"every byte zero ({name})", not wrong and folios > 0, detail)
        )
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


def counters(visits: Visits, *, taken_away: bool) -> list[Check]:
    """Compare the module's counters with the expected folios."""
    return [
        _moved(name, some, taken_away=taken_away)
        for name, some in _groups(visits, "arm").items()
    ]


def _moved(name: str, visits: Visits, *, taken_away: bool) -> Check:
    """Check that the counters moved as expected in every visit."""
    moved = [(int(v["hits"]), int(v["small"]), int(v["alloc"])) for v in visits]
    wanted = [expected(v, taken_away=taken_away) for v in visits]
    fell = sum(int(v["fell"]) for v in visits)
    sums = [tuple(map(sum, zip(*pairs, strict=True))) for pairs in (moved, wanted)]
    detail = "{} hits, {} small, {} by the allocator".format(*sums[0])
    detail += "; expected {}, {}, {}".format(*sums[1])
    detail += f"; {fell} other fallbacks"
    return Check(f"counters ({name})", moved == wanted and not fell, detail)


def forced(visits: Visits, least: int) -> Check:
    """Check that backends of both lists were forced in every way."""
    names: dict[str, set[str]] = {name: set() for name in LISTS}
    count = dict.fromkeys(LISTS, 0)
    for visit in visits:
        if visit["label"] == "forced":
            names[visit["arm"]].add(visit["backend"])
            count[visit["arm"]] += 1
    ok = all(names[n] and count[n] == len(names[n]) * least for n in LISTS)
    detail = "; ".join(f"{n}: {', '.join(sorted(names[n]))}" for n in LISTS)
    return Check("backends forced", ok, detail)


def attached(
    outcome: Outcome,
    counters: str = "clear-counters",
    allowed: tuple[str, ...] = ON_OFF,
) -> Check:
    """Check that at unload the hook was attached, or detached if off, and empty."""
    seen = outcome.of(counters)
    # a path that was never on has hooked nothing
    hooks = {str(c["hook"]) for c in seen if c.get("served", "yes") == "yes"}
    ok = bool(hooks) and all(hook.startswith(allowed) for hook in hooks)
    empty = not any(int(c["inflight"]) for c in seen)
    detail = "; ".join(sorted(hooks))
    return Check("hook attached, nobody left inside", ok and empty, detail)
