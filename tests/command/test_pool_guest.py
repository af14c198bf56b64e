# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm pool`` on stock kernels with three nodes, the last without a CPU."""

from typing import Any

import guest
import pytest
from guest import Results, Step
from lablib import series

from bulkmm.shell.errors import Exit
from lab.machine import vm

pytestmark = pytest.mark.vm

MIB = 1 << 20
MACHINE = {"memory": 6144, "cpus": 4, "hot": vm.Hot(bare=True)}
BIG = ("--page", "1G", "--size", "1G")
FREE_BIG = "echo 0 >/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages"
POOL = "python3.13 -m bulkmm.cli pool"
SIZE = "/sys/kernel/mm/hugepages/hugepages-2048kB"
WHOLE_NODE = f"""
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
    "big gone": ("sh", FREE_BIG),
    "all": ("pool", "grow", "--page", "2M", "--size", "194M", "--json"),
    "one": ("pool", "grow", "--page", "2M", "--size", "32M", "--node", "1", "--json"),
    "too much": ("sh", WHOLE_NODE),
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
def results(request: pytest.FixtureRequest) -> Results:
    """Do all steps on a kernel that has path prezero."""
    return guest.run_steps(request.param, STEPS, "init_on_alloc=0", **MACHINE)


def pages_by_node(document: dict[str, Any]) -> list[tuple[int, int]]:
    """Return the pages of each node, and how many of them are surplus."""
    return [(one["pages"], one["surplus"]) for one in document["pool"]["nodes"]]


def test_a_node_gets_its_part(results: Results) -> None:
    assert pages_by_node(results.json("all")) == [(33, 0), (32, 0), (32, 0)]
    assert pages_by_node(results.json("one")) == [(33, 0), (48, 0), (32, 0)]
    assert pages_by_node(results.json("six")) == [(2, 0), (2, 0), (2, 0)]


def test_a_page_of_a_gibibyte(results: Results) -> None:
    """A guest that has just booted may have none in one piece."""
    (node,) = results.json("big", results["big"].code)["nodes"]
    assert node["done"] == 1 or "free there, but in smaller pieces" in node["why"]
    assert results["big"].code == (Exit.OK if node["done"] else Exit.VERDICT)


def test_the_pool_keeps_what_was_had_and_a_line_says_why(results: Results) -> None:
    change = results.json("too much", Exit.VERDICT)
    (node,) = change["nodes"]
    assert 0 < node["done"] < node["wanted"]
    assert "MiB are free there" in node["why"]
    (pool,) = (
        each for each in results.json("full")["pools"] if each["page_bytes"] == 2 * MIB
    )
    assert pool["overcommit"] == pool["surplus"] == pool["reserved"] == 0
    assert pool["pages"] == pool["free"] == 113 + node["done"]


def test_zeroing_is_of_no_use_without_the_path(results: Results) -> None:
    result = results["nothing to gain"]
    assert result.code == Exit.ENVIRONMENT
    assert "without path prezero the kernel clears each page again" in result.err
    assert results["load"].code == 0


def test_free_pages_are_zeroed_but_for_a_margin(results: Results) -> None:
    document = results.json("margin", Exit.VERDICT)
    assert [one["zeroed"] for one in document["nodes"]] == [0, 0, 0]
    document = results.json("zero")
    assert document["zeroed_pages"] == 6
    assert [(one["free"], one["zeroed"]) for one in document["nodes"]] == [(2, 2)] * 3
    pools = results.json("zeroed")["pools"]
    counts = {one["page_bytes"]: [n["zeroed"] for n in one["nodes"]] for one in pools}
    assert counts[2 * MIB] == [2, 2, 2]


@pytest.mark.parametrize(
    ("step", "code"), [("watched", Exit.INTERRUPTED), ("stopped", 128 + 9)]
)
def test_a_watch_that_ends_leaves_the_pool_as_it_is(
    results: Results, step: str, code: int
) -> None:
    assert (results[step].code, results[step].out.split()[-1]) == (code, "6")
