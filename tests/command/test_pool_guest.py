# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm pool`` on stock kernels with three nodes, the last without a CPU."""

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

MIB = 1 << 20
MACHINE = {"memory": 6144, "cpus": 4, "hot": vm.Hot(bare=True)}
BIG = ("--page", "1G", "--size", "1G")
GONE = "echo 0 >/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages"
POOL = "python3.13 -m bulkmm.cli pool"
SIZE = "/sys/kernel/mm/hugepages/hugepages-2048kB"
ALL = f"""
set -- $(grep MemTotal /sys/devices/system/node/node1/meminfo)
size=$(($4 / 2048 * 2))M
cd /command && {POOL} grow --node 1 --page 2M --size $size --compact --json
"""
KILLED = f"""
cd /command && {POOL} grow --page 2M --size 3G --jobs 1 &
while kill -0 $! && [ $(cat {SIZE}/surplus_hugepages) -lt 32 ]; do :; done
kill -9 $!
until [ $(cat {SIZE}/surplus_hugepages) = 0 ]; do sleep 0.1; done
cat {SIZE}/nr_overcommit_hugepages
"""
STEPS: dict[str, Step] = {
    "big": ("pool", "grow", *BIG, "--node", "2", "--json"),
    "big gone": ("sh", GONE),
    "all": ("pool", "grow", "--page", "2M", "--size", "194M", "--json"),
    "one": ("pool", "grow", "--page", "2M", "--size", "32M", "--node", "1", "--json"),
    "too much": ("sh", ALL),
    "full": ("pool", "--json"),
    "none": ("sh", f"echo 0 >{SIZE}/nr_hugepages"),
    "killed": ("sh", KILLED),
    "next": ("pool", "grow", "--page", "2M", "--size", "12M", "--json"),
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
    assert nodes(document(seen["all"])) == [(33, 0), (32, 0), (32, 0)]
    assert nodes(document(seen["one"])) == [(33, 0), (48, 0), (32, 0)]


def test_a_page_of_a_gibibyte(seen: dict[str, dict[str, Any]]) -> None:
    """A guest that has just booted may have none in one piece."""
    big = json.loads(seen["big"]["out"])
    valid(big)
    (one,) = big["nodes"]
    assert one["done"] == 1 or "free there, but in smaller pieces" in one["why"]
    assert seen["big"]["code"] == (Exit.OK if one["done"] else Exit.VERDICT)


def test_the_pool_keeps_what_was_had_and_a_line_says_why(
    seen: dict[str, dict[str, Any]],
) -> None:
    change = document(seen["too much"], Exit.VERDICT)
    (one,) = change["nodes"]
    assert 0 < one["done"] < one["wanted"]
    assert "MiB are free there" in one["why"]
    (pool,) = (
        each
        for each in document(seen["full"])["pools"]
        if each["page_bytes"] == 2 * MIB
    )
    assert pool["overcommit"] == pool["surplus"] == pool["reserved"] == 0
    assert pool["pages"] == pool["free"] == 113 + one["done"]


def test_a_killed_run_is_cleaned_up_by_the_next(
    seen: dict[str, dict[str, Any]],
) -> None:
    assert seen["killed"]["code"] == 0
    assert int(seen["killed"]["out"]) > 0  # still raised
    held = document(seen["next"])
    assert nodes(held) == [(2, 0), (2, 0), (2, 0)]
    assert held["pool"]["overcommit"] == 0
