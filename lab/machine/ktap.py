# SPDX-License-Identifier: GPL-2.0-only
"""Reading KTAP, in which the kernel's unit tests report: groups of groups of cases.

So do its selftests, as TAP, without groups.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

INDENT = 4  # spaces, for each group that a line is in
PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"
VERSION = re.compile(r"K?TAP version \d+")
PLAN = re.compile(r"1\.\.(\d+)")
RESULT = re.compile(
    r"(?P<ok>ok|not ok) (?P<number>\d+)(?: -)?(?: (?P<name>.*?))??(?: # (?P<why>.*))?"
)
SKIP = re.compile(r"SKIP\b\s*", re.IGNORECASE)


@dataclass(frozen=True)
class Case:
    """One case, and the groups that it is in."""

    name: str
    verdict: str
    detail: str = ""


@dataclass
class _Group:
    """The results at one depth, until that of the whole group comes."""

    plan: int | None = None
    count: int = 0
    cases: list[Case] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)  # since the last result

    def end(self) -> None:
        """Note what is missing now that no more results come."""
        if self.plan not in (None, self.count):
            self.problems.append(f"{self.count} of {self.plan} reported")


def read_cases(lines: Iterable[str]) -> list[Case]:
    """Return the cases of a report.

    A group that lacks some, or that failed though none of them did, is a failed case,
    too. So is all that comes before the end of a truncated report.
    """
    groups: list[_Group] = []
    for line in lines:
        text = line.strip()
        depth = (len(line) - len(line.lstrip(" "))) // INDENT
        if VERSION.fullmatch(text):
            _enter(groups, depth)
        elif not groups:
            continue  # before the report
        elif plan := PLAN.fullmatch(text):
            _enter(groups, depth).plan = int(plan[1])
        elif result := RESULT.fullmatch(text):
            _add_result(groups, depth, result)
        elif text and not text.startswith("# Subtest: "):
            groups[-1].messages.append(text.removeprefix("# "))
    return _end_report(groups)


def _enter(groups: list[_Group], depth: int) -> _Group:
    """Return the group at a depth, which may be the first line's there."""
    while len(groups) <= depth:
        groups.append(_Group())
    return groups[depth]


def _add_result(groups: list[_Group], depth: int, result: re.Match[str]) -> None:
    """Add a case or, if there are deeper ones, the end of their group."""
    group = _enter(groups, depth)
    below, messages = _leave(groups, depth)
    group.count += 1
    if int(result["number"]) != group.count:
        group.problems.append(f"{result['number']} follows {group.count - 1}")
        group.count = int(result["number"])
    why = result["why"] or ""
    name = result["name"] or result["number"]
    verdict = PASSED if result["ok"] == "ok" else FAILED
    if verdict == PASSED and (skip := SKIP.match(why)):
        verdict, why = SKIPPED, why[skip.end() :]
    detail = why or ("; ".join(messages[:3]) if verdict == FAILED else "")
    group.cases += [
        Case(f"{name}: {case.name}", case.verdict, case.detail) for case in below
    ]
    explained = any(case.verdict == FAILED for case in below)
    if not below or (verdict == FAILED and not explained):
        group.cases.append(Case(name, verdict, detail))


def _leave(groups: list[_Group], depth: int) -> tuple[list[Case], list[str]]:
    """Return cases and messages of what is deeper, which ends, and of this depth."""
    cases: list[Case] = []
    messages = list(groups[depth].messages)
    groups[depth].messages.clear()
    while len(groups) > depth + 1:
        group = groups.pop()
        group.end()
        cases = [*group.cases, *cases]
        cases += [Case("all cases", FAILED, problem) for problem in group.problems]
        messages = [*messages, *group.messages]
    return cases, messages


def _end_report(groups: list[_Group]) -> list[Case]:
    """Return all cases; what was not ended is truncated."""
    if not groups:
        return []
    below, _ = _leave(groups, 0)
    if below:
        below.append(Case("the whole report", FAILED, "ends within a group"))
    groups[0].end()
    problems = [Case("all cases", FAILED, what) for what in groups[0].problems]
    return [*groups[0].cases, *below, *problems]
