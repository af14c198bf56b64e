# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm pool`` on stock kernels with three nodes, the last without a CPU."""

from typing import Any

import guest
import pytest
from guest import Seen, Step
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
WATCHED = f"""
cd /command && {POOL} zero --watch --threads 2 &
until [ "$(cat /sys/kernel/bulkmm/prezero/known | wc -l)" = 3 ]; do sleep 0.1; done
kill -{{0}} $!
wait $!
code=$?
cat {SIZE}/free_hugepages
exit $code
"""
STEPS: dict[str, Step] = {
    "nothing to gain": ("pool", "zero"),
    "load": ("sh", "insmod /lib/modules/bulkmm.ko hotplug=off prezero=on"),
    "big": ("pool", "grow", *BIG, "--node", "2", "--json"),
    "big gone": ("sh", GONE),
    "all": ("pool", "grow", "--page", "2M", "--size", "194M", "--json"),
    "one": ("pool", "grow", "--page", "2M", "--size", "32M", "--node", "1", "--json"),
    "too much": ("sh", ALL),
    "full": ("pool", "--json"),
    "none": ("sh", f"echo 0 >{SIZE}/nr_hugepages"),
    "six": ("pool", "grow", "--page", "2M", "--size", "12M", "--json"),
    "margin": ("pool", "zero", "--page", "2M", "--margin", "100%", "--json"),
    "zero": ("pool", "zero", "--page", "2M", "--json"),
    "zeroed": ("pool", "--json"),
    "off": ("sh", "cd /sys/kernel/bulkmm && echo 1 >off && echo on >prezero/mode"),
    "watched": ("sh", WATCHED.format("TERM")),
    "stopped": ("sh", WATCHED.format("9")),
}


@pytest.fixture(scope="module", params=series("7.3", "6.1"))
def seen(request: pytest.FixtureRequest) -> Seen:
    """Do all steps on a kernel that has path prezero."""
    return guest.seen(request.param, STEPS, "init_on_alloc=0", **MACHINE)


def nodes(held: dict[str, Any]) -> list[tuple[int, int]]:
    """Return the pages of each node, and how many of them are surplus."""
    return [(one["pages"], one["surplus"]) for one in held["pool"]["nodes"]]


def test_a_node_gets_its_part(seen: Seen) -> None:
    assert nodes(seen.json("all")) == [(33, 0), (32, 0), (32, 0)]
    assert nodes(seen.json("one")) == [(33, 0), (48, 0), (32, 0)]
    assert nodes(seen.json("six")) == [(2, 0), (2, 0), (2, 0)]


def test_a_page_of_a_gibibyte(seen: Seen) -> None:
    """A guest that has just booted may have none in one piece."""
    (one,) = seen.json("big", seen["big"].code)["nodes"]
    assert one["done"] == 1 or "free there, but in smaller pieces" in one["why"]
    assert seen["big"].code == (Exit.OK if one["done"] else Exit.VERDICT)


def test_the_pool_keeps_what_was_had_and_a_line_says_why(seen: Seen) -> None:
    change = seen.json("too much", Exit.VERDICT)
    (one,) = change["nodes"]
    assert 0 < one["done"] < one["wanted"]
    assert "MiB are free there" in one["why"]
    (pool,) = (
        each for each in seen.json("full")["pools"] if each["page_bytes"] == 2 * MIB
    )
    assert pool["overcommit"] == pool["surplus"] == pool["reserved"] == 0
    assert pool["pages"] == pool["free"] == 113 + one["done"]


def test_zeroing_is_of_no_use_without_the_path(seen: Seen) -> None:
    said = seen["nothing to gain"]
    assert said.code == Exit.ENVIRONMENT
    assert "without path prezero the kernel clears each page again" in said.err
    assert seen["load"].code == 0


def test_free_pages_are_zeroed_but_for_a_margin(seen: Seen) -> None:
    held = seen.json("margin", Exit.VERDICT)
    assert [one["zeroed"] for one in held["nodes"]] == [0, 0, 0]
    held = seen.json("zero")
    assert held["zeroed_pages"] == 6
    assert [(one["free"], one["zeroed"]) for one in held["nodes"]] == [(2, 2)] * 3
    pools = seen.json("zeroed")["pools"]
    shown = {one["page_bytes"]: [n["zeroed"] for n in one["nodes"]] for one in pools}
    assert shown[2 * MIB] == [2, 2, 2]


@pytest.mark.parametrize(
    ("step", "code"), [("watched", Exit.INTERRUPTED), ("stopped", 128 + 9)]
)
def test_a_watch_that_ends_leaves_the_pool_as_it_is(
    seen: Seen, step: str, code: int
) -> None:
    assert (seen[step].code, seen[step].out.split()[-1]) == (code, "6")
