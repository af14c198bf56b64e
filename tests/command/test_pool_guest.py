# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm pool`` on stock kernels with two nodes."""

import json
from typing import Any

import guest
import pytest
from commandlib import valid
from guest import Step
from lablib import series

from bulkmm.errors import Exit
from bulkmm.lab.machine import vm

pytestmark = pytest.mark.vm

MIB, GIB = 1 << 20, 1 << 30
MACHINE = {"memory": 4096, "cpus": 4, "hot": vm.Hot(nodes=2, shared_out=True)}
BIG, ALL = ("--page", "1G", "--size", "1G"), ("--page", "2M", "--size", "3600M")
SIZE = "/sys/kernel/mm/hugepages/hugepages-2048kB"
KILLED = f"""
cd /command && python3.13 -m bulkmm.cli pool grow --page 2M --size 1G --jobs 1 &
until [ $(cat {SIZE}/surplus_hugepages) -gt 32 ]; do :; done
kill -9 $!
until [ $(cat {SIZE}/surplus_hugepages) = 0 ]; do sleep 0.1; done
cat {SIZE}/nr_overcommit_hugepages
"""
STEPS: dict[str, Step] = {
    "big": ("pool", "grow", *BIG, "--node", "1", "--json"),
    "big gone": ("pool", "shrink", *BIG, "--node", "1", "--json"),
    "both": ("pool", "grow", "--page", "2M", "--size", "130M", "--json"),
    "one": ("pool", "grow", "--page", "2M", "--size", "32M", "--node", "1", "--json"),
    "too much": ("pool", "grow", *ALL, "--compact", "--json"),
    "full": ("pool", "--json"),
    "none": ("sh", f"echo 0 >{SIZE}/nr_hugepages"),
    "killed": ("sh", KILLED),
    "next": ("pool", "grow", "--page", "2M", "--size", "8M", "--json"),
}


@pytest.fixture(scope="module", params=series("7.3"))
def seen(request: pytest.FixtureRequest) -> dict[str, dict[str, Any]]:
    """Do all steps on a kernel."""
    done = guest.run(request.param, list(STEPS.values()), "init_on_alloc=0", **MACHINE)
    return dict(zip(STEPS, done, strict=True))


def document(step: dict[str, Any], code: Exit = Exit.OK) -> dict[str, Any]:
    assert (step["code"], step["err"]) == (code, ""), step
    held: dict[str, Any] = json.loads(step["out"])
    valid(held)
    return held


def nodes(held: dict[str, Any]) -> list[tuple[int, int]]:
    """Return the pages of each node, and how many of them are surplus."""
    return [(one["pages"], one["surplus"]) for one in held["pool"]["nodes"]]


def test_a_node_gets_its_part(seen: dict[str, dict[str, Any]]) -> None:
    """Of 1 GiB, too: 6.12 has no surplus pages of that size."""
    assert nodes(document(seen["big"])) == [(0, 0), (1, 0)]
    assert nodes(document(seen["big gone"])) == [(0, 0), (0, 0)]
    assert nodes(document(seen["both"])) == [(33, 0), (32, 0)]
    assert nodes(document(seen["one"])) == [(33, 0), (48, 0)]


def test_the_pool_keeps_what_was_had_and_a_line_says_why(
    seen: dict[str, dict[str, Any]],
) -> None:
    change = document(seen["too much"], Exit.VERDICT)
    short = [one for one in change["nodes"] if one["done"] < one["wanted"]]
    assert short
    for one in short:
        assert 0 < one["done"] < one["wanted"] == 900
        assert "MiB are free there" in one["why"]
    (pool,) = (
        one for one in document(seen["full"])["pools"] if one["page_bytes"] == 2 * MIB
    )
    assert pool["overcommit"] == pool["surplus"] == pool["reserved"] == 0
    assert (
        pool["pages"]
        == pool["free"]
        == 81 + sum(one["done"] for one in change["nodes"])
    )


def test_a_killed_run_is_cleaned_up_by_the_next(
    seen: dict[str, dict[str, Any]],
) -> None:
    assert seen["killed"]["code"] == 0
    assert int(seen["killed"]["out"]) > 0  # still raised
    held = document(seen["next"])
    assert nodes(held) == [(2, 0), (2, 0)]
    assert held["pool"]["overcommit"] == 0
