# SPDX-License-Identifier: GPL-2.0-only
"""Programs of the bench with a mistake, and events of one that never ran."""

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from corelib import NATIVE, ROOT

from bench import measure, subjects

Event = dict[str, Any]
Times = Mapping[str, Sequence[Sequence[int]]]  # of a variant: by process, by round


def broken(to: Path, name: str, right: str, wrong: str) -> Path:
    """Return the program whose source has something else in one place."""
    source = to / "bench"
    shutil.copytree(ROOT / "bench" / "library", source)
    text = (source / name).read_text()
    assert text.count(right) == 1
    (source / name).write_text(text.replace(right, wrong))
    parts = {source / "populate.c", source / "limit.c"}
    if name != "populate.c":  # which has a main() of its own
        parts = {*source.glob("*.c")} - {source / "populate.c"}
    libraries = (NATIVE / f"libbmm{part}.a" for part in ("populate", "core", "host"))
    command = ["cc", "-O2", "-D_GNU_SOURCE", "-pthread", "-mgeneral-regs-only"]
    command += [f"-I{ROOT / folder}" for folder in ("core", "lib")]
    command += [*map(str, (*parts, *libraries)), "-o", str(to / "broken")]
    subprocess.run(command, check=True, capture_output=True)
    return to / "broken"


def events(
    scenarios: Mapping[str, Times], picks: Sequence[tuple[str, str, str]] = ()
) -> list[list[Event]]:
    """Return what each process says; ``picks``: scenario, variant, backend."""
    count = len(next(iter(next(iter(scenarios.values())).values())))
    return [process(scenarios, picks, number) for number in range(count)]


def process(
    scenarios: Mapping[str, Times],
    picks: Sequence[tuple[str, str, str]] = (),
    number: int = 0,
    *,
    ok: bool = True,
) -> list[Event]:
    """Return what one process says."""
    start = {"event": "start", "bytes": 1 << 30, "huge_bytes": 1 << 30, "llc": 1 << 25}
    lines: list[Event] = [start]
    for scenario, variants in scenarios.items():
        for variant, times in variants.items():
            arm = {"scenario": scenario, "variant": variant}
            lines += [
                {"event": "sample", **arm, "round": i, "bytes": 1000, "ns": ns}
                for i, ns in enumerate(times[number])
            ]
            lines.append({"event": "verified", **arm, "ok": ok})
    for scenario, variant, backend in picks:
        arm = {"scenario": scenario, "variant": variant, "backend": backend}
        lines.append({"event": "served", **arm})
    return lines


def document(
    *parts: tuple[subjects.Subject, Mapping[str, Times]],
    picks: Sequence[tuple[str, str, str]] = (),
) -> Any:
    """Return the document of these times of subjects."""
    measurements = [(subject, events(scenarios, picks)) for subject, scenarios in parts]
    return measure.make_document(
        (logs, subjects.Request(subject, subject.full, processes=len(logs)))
        for subject, logs in measurements
    )


def steady(ns: int, processes: int = 5, rounds: int = 3) -> list[list[int]]:
    """Return times that vary by less than half a percent, never alike."""
    return [
        [ns + (7 * i + 3 * k) % 41 * ns // 10000 for k in range(rounds)]
        for i in range(processes)
    ]
