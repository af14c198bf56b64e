# SPDX-License-Identifier: GPL-2.0-only
"""The library on big machines, which are modelled: its own code, in virtual time.

Nothing here is a time of this machine: two runs print the same.
"""

import json
from typing import Any

from corelib import NATIVE, build_target
from programs import run_program

CLOSE = 1.15  # times as long as with all threads started before the work
REGISTER_MS = 10  # a driver's registration of a GiB, in main.c


def read_runs() -> list[dict[str, Any]]:
    build_target(NATIVE, target="bmm-model")
    lines = run_program(
        [NATIVE / "bmm-model", "--json"], check=True
    ).stdout.splitlines()
    return [json.loads(line) for line in lines]


def test_as_quick_as_with_all_threads_first() -> None:
    for run in read_runs():
        assert run["registers"] or run["ratio"] <= CLOSE, run


def test_registration_overlaps_with_the_work() -> None:
    """As long as the longer of both, and until the first piece is ready.

    All threads share the bandwidth: the first pages of all of them are ready at once.
    """
    for run in (run for run in read_runs() if run["registers"]):
        registration = REGISTER_MS * run["gib"]
        first_piece = run["first_ms"] * run["threads"] / run["gib"]
        most = registration / run["gib"] + max(registration, run["first_ms"])
        assert run["ms"] <= most + 1.01 * first_piece, run


def test_the_model_is_deterministic() -> None:
    assert read_runs() == read_runs()
