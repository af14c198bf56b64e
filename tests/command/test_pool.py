# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm pool`` on pools made of files, and on this machine's own."""

import pytest
from commandlib import Command, Result
from fakekernel import NODE, Change, Fake, load_module, make_pool, set_sizes

from bulkmm.control.pools import Pool
from bulkmm.control.system_files import SystemFiles
from bulkmm.pool.run import NodeZeroed, _read_state
from bulkmm.shell.errors import Exit

MIB = 1 << 20


def test_the_table(two: Fake, bulkmm: Command) -> None:
    (entry,) = bulkmm("pool", "--json").json["pools"]
    assert (entry["page_bytes"], entry["pages"], entry["free"]) == (2 * MIB, 14, 10)
    assert (entry["reserved"], entry["surplus"], entry["overcommit"]) == (3, 2, 0)
    assert [one["free"] for one in entry["nodes"]] == [6, 4]
    cells = bulkmm("pool").out.split()
    assert cells[cells.index("2M") :][:7] == ["2M", "all", "14", "10", "3", "2", "0"]
    assert two


@pytest.mark.parametrize(
    ("words", "per_node"),
    [
        (("grow", "--size", "10M"), {0: 3, 1: 2}),
        (("grow", "--size", "2M"), {0: 1}),
        (("grow", "--size", "8M", "--node", "1"), {1: 4}),
        (("shrink", "--size", "4M"), {0: -1, 1: -1}),
    ],
)
def test_a_dry_run_changes_nothing(
    two: Fake, bulkmm: Command, words: tuple[str, ...], per_node: dict[int, int]
) -> None:
    before = two.files()
    change = bulkmm("pool", *words, "--page", "2M", "--dry-run", "--json").json
    assert {one["node"]: one["wanted"] for one in change["nodes"]} == per_node
    assert change["dry_run"]
    assert two.files() == before


NORMAL, MOVABLE = f"{NODE}/has_normal_memory", "/proc/sys/vm/movable_gigantic_pages"
BLOCKS, ZONE = "/proc/buddyinfo", "Node 0, zone Normal"
GIANT = ("--page", "1G", "--size", "4G", "--dry-run", "--json")


@pytest.mark.parametrize(
    ("size", "memory", "per_node"),
    [
        ("64G", {0: (65536, 60000), 1: (16384, 8192)}, {0: 28672, 1: 4096}),
        ("64G", {0: (65536, 1024), 1: (16384, 1024)}, {0: 24576, 1: 8192}),
        ("10M", {0: (65536, 4), 1: (16384, 1024)}, {0: 2, 1: 3}),
        ("10M", {0: (65536, 0), 1: (16384, 1024)}, {1: 5}),
    ],
)
def test_what_a_node_lacks_others_give(
    two: Fake,
    bulkmm: Command,
    size: str,
    memory: dict[int, tuple[int, int]],
    per_node: dict[int, int],
) -> None:
    set_sizes(two, memory)
    change = bulkmm(
        "pool", "grow", "--page", "2M", "--size", size, "--dry-run", "--json"
    )
    assert {one["node"]: one["wanted"] for one in change.json["nodes"]} == per_node


def test_a_shrink_takes_what_a_node_lacks_from_others(
    kernel: Fake, bulkmm: Command
) -> None:
    make_pool(kernel, {0: (10, 9, 0), 1: (4, 1, 0)})
    result = bulkmm("pool", "shrink", "--page", "2M", "--size", "10M")
    assert result.code == Exit.OK, result.err
    pool_2m = Pool(SystemFiles(kernel.root), 2 * MIB)
    assert [part.count_persistent() for part in pool_2m.list_parts()] == [6, 3]


def test_others_make_up_for_a_node_that_gives_less(
    kernel: Fake, bulkmm: Command, change_totals: Change
) -> None:
    """Whose memory is in pieces too small, which nothing tells before."""
    change_totals(1, lambda value: min(value, 7))
    make_pool(kernel, {0: (10, 6, 0), 1: (4, 4, 0)})
    set_sizes(kernel, {0: (4096, 4096), 1: (4096, 4096)})
    result = bulkmm("pool", "grow", "--page", "2M", "--size", "20M")
    assert result.code == Exit.OK, result.err
    first, second = result.out.splitlines()
    assert first == "node 0: +7 pages of 2M"
    assert second.startswith("node 1: +3 pages of 2M, +5 were asked for: 4096 MiB are")


@pytest.mark.parametrize(
    ("files", "outcome"),
    [
        ({NORMAL: "0"}, {0: 4}),
        ({NORMAL: "0", MOVABLE: "0"}, {0: 4}),
        ({NORMAL: "0", MOVABLE: "1"}, {0: 2, 1: 2}),
        ({NORMAL: "0-1"}, {0: 2, 1: 2}),
        ({}, {0: 2, 1: 2}),
        ({NORMAL: "0", BLOCKS: ZONE + " 1" * 19}, {0: 2, 1: 2}),  # up to 1 GiB
        ({NORMAL: ""}, "all memory was brought online as movable, "),
        ({NORMAL: "", MOVABLE: "0"}, "from that: sysctl vm.movable_gigantic_pages=1"),
    ],
)
def test_pages_of_a_gibibyte_are_not_of_movable_memory(
    two: Fake, bulkmm: Command, files: dict[str, str], outcome: dict[int, int] | str
) -> None:
    set_sizes(two, {0: (65536, 65536), 1: (65536, 65536)})
    for node in (0, 1):
        home = f"{NODE}/node{node}/hugepages/hugepages-1048576kB"
        two.write(f"{home}/nr_hugepages", "0", 0o644)
    two.write("/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages", "0", 0o644)
    for name, text in {BLOCKS: ZONE + " 1" * 11, **files}.items():
        two.write(name, text)
    result = bulkmm("pool", "grow", *GIANT)
    if isinstance(outcome, str):
        assert result.code == Exit.ENVIRONMENT
        assert outcome in result.err
    else:
        assert {one["node"]: one["wanted"] for one in result.json["nodes"]} == outcome


def test_a_node_of_movable_memory_is_told_as_such(two: Fake, bulkmm: Command) -> None:
    two.write("/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages", "0", 0o644)
    home = f"{NODE}/node1/hugepages/hugepages-1048576kB"
    two.write(f"{home}/nr_hugepages", "0", 0o644)
    two.write(NORMAL, "0")
    result = bulkmm("pool", "grow", "--node", "1", *GIANT)
    assert result.code == Exit.ENVIRONMENT
    assert "node 1: all its memory was brought online as movable" in result.err
    assert "compact" not in result.err


def test_nodes_outside_of_the_cpuset_are_not_asked(two: Fake, bulkmm: Command) -> None:
    def planned(*words: str) -> Result:
        how = ("--page", "2M", "--size", "10M", "--dry-run", "--json", *words)
        return bulkmm("pool", "grow", *how)

    set_sizes(two, {0: (65536, 65536), 1: (65536, 65536)})
    two.write("/proc/self/status", "Name:\tbulkmm\nMems_allowed_list:\t0,2-3")
    assert [(one["node"], one["wanted"]) for one in planned().json["nodes"]] == [(0, 5)]
    result = planned("--node", "1")
    assert result.code == Exit.ENVIRONMENT
    assert "node 1 is outside of this command's cpuset" in result.err
    # what is larger than the allocator's blocks, it does not allocate
    two.write("/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages", "0", 0o644)
    home = f"{NODE}/node1/hugepages/hugepages-1048576kB"
    two.write(f"{home}/nr_hugepages", "0", 0o644)
    (node,) = bulkmm("pool", "grow", "--node", "1", *GIANT).json["nodes"]
    assert (node["node"], node["wanted"]) == (1, 4)


def test_what_keeps_pages_from_being_zeroed_is_told(two: Fake) -> None:
    def get_reason(node: int, free: int, margin: float) -> str:
        result = NodeZeroed(2 * MIB, node, free, 0, tried_all=False)
        return _read_state(SystemFiles(two.root), result, margin).partition(
            " because "
        )[2]

    # 3 pages are reserved, of 10 on node 0
    assert get_reason(0, free=6, margin=0.2).startswith("others need them, or they are")
    assert get_reason(0, free=3, margin=1).startswith("others need them, or they are")
    assert get_reason(0, free=6, margin=0.3) == "the margin keeps them free"
    assert get_reason(1, free=4, margin=0.1).startswith("the node has surplus pages")
    two.write("/proc/self/status", "Mems_allowed_list:\t0")
    assert get_reason(1, free=4, margin=0.1) == "this command's cpuset lacks the node"


def test_what_to_do_before_pages_are_zeroed(kernel: Fake, bulkmm: Command) -> None:
    """Without the module what "on" says, which may be that it cannot be loaded."""

    def get_end(*words: str) -> str:
        result = bulkmm(*words)
        assert result.code == Exit.ENVIRONMENT
        return result.err.rstrip().partition(": ")[2]

    for disabled in "01":
        kernel.write("/proc/sys/kernel/modules_disabled", disabled)
        refusal = get_end("on", "prezero")
        assert ("loads none" in refusal) is (disabled == "1")
        assert get_end("pool", "zero").endswith(f" again; {refusal}")
    load_module(kernel)
    assert get_end("pool", "zero").endswith("; switch it on first: bulkmm on prezero")


@pytest.mark.parametrize(("word", "pages"), [("grow", 11), ("shrink", 9)])
def test_surplus_pages_of_other_nodes_on_6_1(
    two: Fake, bulkmm: Command, change_totals: Change, word: str, pages: int
) -> None:
    """Whose kernel adds node 1's two to what is written for node 0."""
    change_totals(0, lambda value: value + 2)
    result = bulkmm("pool", word, "--page", "2M", "--size", "2M", "--node", "0")
    assert result.code == Exit.OK, result.err
    assert Pool(SystemFiles(two.root), 2 * MIB, 0).count_persistent() == pages
