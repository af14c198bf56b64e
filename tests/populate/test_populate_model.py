# SPDX-License-Identifier: GPL-2.0-only
"""The library on big machines, which are modelled: its own code, in virtual time.

Nothing here is a time of this machine: two runs print the same.
"""

import json
from typing import Any

import pytest
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


RUNS = read_runs()


def name_run(run: dict[str, Any]) -> str:
    kind = "-registers" if run["registers"] else ""
    return (
        f"{run['gib']}g-{run['page_mib']}m-{run['cpus']}-of-{run['nodes']}"
        f"-for-{run['saturate']}{kind}"
    )


@pytest.mark.parametrize(
    "run", [run for run in RUNS if not run["registers"]], ids=name_run
)
def test_as_quick_as_with_all_threads_first(run: dict[str, Any]) -> None:
    assert run["ratio"] <= CLOSE


@pytest.mark.parametrize("run", [run for run in RUNS if run["registers"]], ids=name_run)
def test_registration_overlaps_with_the_work(run: dict[str, Any]) -> None:
    """As long as the longer of both, and until the first piece is ready.

    All threads share the bandwidth: the first pages of all of them are ready at once.
    """
    registration = REGISTER_MS * run["gib"]
    first_piece = run["first_ms"] * run["threads"] / run["gib"]
    piece = registration / run["gib"]
    assert run["ms"] <= max(registration, run["first_ms"]) + 1.01 * first_piece + piece


def test_the_model_is_deterministic() -> None:
    assert read_runs() == RUNS
