# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm pool`` on pools made of files, and on this machine's own."""

import fcntl
import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from commandlib import Command, Result
from fakekernel import Fake, make_pool
from programs import run_program
from rootlib import alone_with_the_pool

from bulkmm.control.pools import TOTAL, Pool
from bulkmm.control.system_files import SystemFiles
from bulkmm.pool import grow, reserve, zero
from bulkmm.pool.run import NodeZeroed, _read_state
from bulkmm.shell.errors import Exit

MIB = 1 << 20


@pytest.fixture
def two(kernel: Fake) -> Fake:
    """Return a kernel of two nodes with memory."""
    make_pool(kernel, {0: (10, 6, 0), 1: (4, 4, 2)})
    return kernel


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


SMALL = "Node {0} MemTotal: {1} kB\nNode {0} MemFree: {2} kB\n"
NODE = "/sys/devices/system/node"
NORMAL, MOVABLE = f"{NODE}/has_normal_memory", "/proc/sys/vm/movable_gigantic_pages"
BLOCKS, ZONE = "/proc/buddyinfo", "Node 0, zone Normal"
GIANT = ("--page", "1G", "--size", "4G", "--dry-run", "--json")


def set_sizes(kernel: Fake, mib: dict[int, tuple[int, int]]) -> None:
    """Give nodes so much memory, in all and free."""
    for node, (total, free) in mib.items():
        text = SMALL.format(node, total << 10, free << 10)
        kernel.write(f"{NODE}/node{node}/meminfo", text)


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
    kernel: Fake, bulkmm: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whose memory is in pieces too small, which nothing tells before."""
    write = Pool.write

    def limited(self: Pool, name: str, value: int) -> None:
        least = 7 if name == TOTAL and self.node == 1 else value
        write(self, name, min(value, least))

    monkeypatch.setattr(Pool, "write", limited)
    monkeypatch.setattr(reserve.Reserved, "take", lambda *_: ())
    make_pool(kernel, {0: (10, 6, 0), 1: (4, 4, 0)})
    set_sizes(kernel, {0: (4096, 4096), 1: (4096, 4096)})
    result = bulkmm("pool", "grow", "--page", "2M", "--size", "20M")
    assert result.code == Exit.OK, result.err
    first, second = result.out.splitlines()
    assert first == "node 0: +7 pages of 2M"
    assert second.startswith("node 1: +3 pages of 2M, +5 were asked for: 4096 MiB are")


def test_what_was_lent_is_given_back_where_a_node_gave_less(
    kernel: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = Pool.write

    def limited(self: Pool, name: str, value: int) -> None:
        least = 7 if name == TOTAL and self.node == 1 else value
        write(self, name, min(value, least))

    monkeypatch.setattr(Pool, "write", limited)
    monkeypatch.setattr(reserve.Reserved, "take", lambda *_: ())
    make_pool(kernel, {0: (10, 6, 0), 1: (4, 4, 0)})
    set_sizes(kernel, {0: (4096, 4096), 1: (4096, 4096)})
    pool_2m = Pool(SystemFiles(kernel.root), 2 * MIB)
    with grow.borrow_pages(pool_2m, 10):
        assert [part.count_persistent() for part in pool_2m.list_parts()] == [15, 7]
    assert next(iter(pool_2m.list_parts())).count_persistent() == 10


def test_what_others_add_meanwhile_stays(
    kernel: Fake, bulkmm: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = Pool.write

    def added(self: Pool, name: str, value: int) -> None:
        write(self, name, value + 5 * (name == TOTAL and self.node == 0))

    monkeypatch.setattr(Pool, "write", added)
    monkeypatch.setattr(reserve.Reserved, "take", lambda *_: ())
    make_pool(kernel, {0: (10, 6, 0), 1: (4, 4, 0)})
    bulkmm("pool", "grow", "--page", "2M", "--size", "8M")
    pool_2m = Pool(SystemFiles(kernel.root), 2 * MIB)
    assert [part.count_persistent() for part in pool_2m.list_parts()] == [17, 6]


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


def test_who_may_not_change_a_pool_is_told(
    two: Fake, bulkmm: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def deny(self: Path, **_how: object) -> None:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "mkdir", deny)
    before = two.files()
    result = bulkmm("pool", "grow", "--page", "2M", "--size", "2M")
    assert result.code == Exit.ENVIRONMENT
    assert result.err.endswith("/run/bulkmm: Permission denied: run it as root")
    assert two.files() == before


@pytest.mark.parametrize(
    ("note", "pages"),
    [
        (
            '{"nr_overcommit_hugepages": [0, 0]}',
            9,
        ),  # refused as for 1 GiB
        ('{"lent": {"0": [8, 1]}}', 8),
        ('{"lent": {"0": [8, 5]}}', 7),
        ('{"lent": {"0": [11, 1]}}', 9),  # others have shrunk it since
        ("[1]", 9),
        ('{"lent": 1}', 9),
        ('{"le', 9),
    ],
)
def test_a_note_of_a_killed_run_is_heeded_once(
    two: Fake, bulkmm: Command, note: str, pages: int
) -> None:
    raised = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_overcommit_hugepages"
    two.remove(raised)
    (two.root / raised[1:]).mkdir()
    two.write("/run/bulkmm/pool.json", note)
    result = bulkmm("pool", "shrink", "--page", "2M", "--size", "2M", "--node", "0")
    assert result.code == Exit.OK, result.err
    assert Pool(SystemFiles(two.root), 2 * MIB, 0).count_persistent() == pages
    assert not list(two.root.glob("run/bulkmm/*.json"))


@pytest.mark.parametrize(
    ("most", "expected"), [(8, 5), (9, 8)]
)  # 8: set by others since
def test_a_note_is_heeded_by_a_run_for_another_page_size(
    two: Fake, bulkmm: Command, most: int, expected: int
) -> None:
    pool_1g = Pool(SystemFiles(two.root), 1 << 30)
    two.write(pool_1g.file("nr_overcommit_hugepages"), "8", 0o644)
    note = {"page": pool_1g.page, "nr_overcommit_hugepages": [5, most]}
    two.write("/run/bulkmm/pool.json", json.dumps(note))
    assert bulkmm("pool", "shrink", "--page", "2M", "--size", "2M").code == Exit.OK
    assert pool_1g.read("nr_overcommit_hugepages") == expected


@pytest.mark.parametrize("set_to", [0, 12])
@pytest.mark.parametrize("code", [Exit.OK, Exit.INTERRUPTED])
def test_what_others_set_while_pages_are_reserved_stays(
    kernel: Fake,
    bulkmm: Command,
    monkeypatch: pytest.MonkeyPatch,
    set_to: int,
    code: int,
) -> None:
    """That takes minutes for a large pool; its overcommit is theirs, too."""
    make_pool(kernel, {0: (10, 6, 0), 1: (10, 6, 0)})
    changed = Pool(SystemFiles(kernel.root), 2 * MIB)

    def take(*_: object) -> Iterator[int]:
        for part in changed.list_parts():
            part.set_persistent(set_to)
        changed.write("nr_overcommit_hugepages", 7)
        if code:
            signal.raise_signal(signal.SIGINT)
        yield 0

    monkeypatch.setattr(reserve.Reserved, "take", take)
    result = bulkmm("pool", "grow", "--page", "2M", "--size", "4M")
    assert result.code == code, result.err
    pages = set_to + (not code)
    assert [part.count_persistent() for part in changed.list_parts()] == [pages, pages]
    assert changed.read("nr_overcommit_hugepages") == 7


@pytest.mark.parametrize(
    "case", [("grow", (2, 3), 10), ("shrink", (1,), 9)], ids=lambda case: case[0]
)
def test_signals_leave_no_pool_half_changed(
    kernel: Fake,
    bulkmm: Command,
    monkeypatch: pytest.MonkeyPatch,
    case: tuple[str, tuple[int, ...], int],
) -> None:
    """An interrupt within some writes: the second comes while the first is undone."""
    word, at, pages = case
    make_pool(kernel, {0: (10, 6, 0), 1: (10, 6, 0)})
    write, writes = Pool.write, 0

    def signalled(self: Pool, name: str, value: int) -> None:
        nonlocal writes
        write(self, name, value)
        writes += name == "nr_hugepages"
        if name == "nr_hugepages" and writes in at:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Pool, "write", signalled)
    monkeypatch.setattr(reserve.Reserved, "take", lambda *_: ())
    result = bulkmm("pool", word, "--page", "2M", "--size", "4M")
    assert result.code == Exit.INTERRUPTED
    monkeypatch.undo()
    pool_2m = Pool(SystemFiles(kernel.root), 2 * MIB)
    assert [part.count_persistent() for part in pool_2m.list_parts()] == [pages, pages]
    assert pool_2m.read("nr_overcommit_hugepages") == 0
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize(("word", "pages"), [("grow", 11), ("shrink", 9)])
def test_surplus_pages_of_other_nodes_on_6_1(
    two: Fake, bulkmm: Command, monkeypatch: pytest.MonkeyPatch, word: str, pages: int
) -> None:
    """Whose kernel adds node 1's two to what is written for node 0."""
    write = Pool.write

    def added(self: Pool, name: str, value: int) -> None:
        write(self, name, value + 2 * (name == TOTAL and self.node == 0))

    monkeypatch.setattr(Pool, "write", added)
    monkeypatch.setattr(reserve.Reserved, "take", lambda *_: ())
    result = bulkmm("pool", word, "--page", "2M", "--size", "2M", "--node", "0")
    assert result.code == Exit.OK, result.err
    assert Pool(SystemFiles(two.root), 2 * MIB, 0).count_persistent() == pages


def test_two_at_once(two: Fake, bulkmm: Command) -> None:
    home = two.root / "run" / "bulkmm"
    home.mkdir(parents=True)
    with (home / "pool.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        result = bulkmm("pool", "grow", "--page", "2M", "--size", "2M")
    assert result.code == Exit.ENVIRONMENT
    assert result.err == "bulkmm: another bulkmm pool is changing a pool"


NEEDS_POOL = pytest.mark.skipif(
    bool(os.geteuid()) or not Pool(SystemFiles(Path("/")), 2 * MIB).list_parts(),
    reason="this machine has no pool that we may change",
)
# as on a kernel without NUMA: for one command, no node has a directory
MASKED = """
mount -t tmpfs none /sys/devices/system/node
exec "$@"
"""


@NEEDS_POOL
def test_without_directories_of_nodes_there_is_one() -> None:
    """On the machine's own pool, shown and changed alike."""

    def masked(*words: str) -> dict[str, Any]:
        argv = [sys.executable, "-m", "bulkmm.cli", "pool", *words, "--json"]
        alone = ["unshare", "--mount", "sh", "-ec", MASKED, "sh", *argv]
        result = run_program(alone, timeout=60)
        assert result.returncode == Exit.OK, result.stderr
        document: dict[str, Any] = json.loads(result.stdout)
        return document

    with alone_with_the_pool():
        (entry,) = (one for one in masked()["pools"] if one["page_bytes"] == 2 * MIB)
        (node,) = entry["nodes"]
        assert (node["node"], node["pages"]) == (0, entry["pages"])
        for words in ((), ("--node", "0"), ("--compact",)):
            how = ("--page", "2M", "--size", "16M", *words)
            (change,) = masked("grow", *how)["nodes"]
            assert (change["node"], change["done"]) == (0, 8)
            shrink_result = masked("shrink", *how[:4])
            assert shrink_result["nodes"] == [
                {"node": 0, "wanted": -8, "done": -8, "why": ""}
            ]
        assert shrink_result["pool"]["pages"] == entry["pages"]


@NEEDS_POOL
@pytest.mark.parametrize("jobs", ["auto", "3"])
def test_a_real_pool_grows_by_exactly_that_and_shrinks(jobs: str) -> None:
    real = Pool(SystemFiles(Path("/")), 2 * MIB)

    def counts() -> dict[int, int]:
        return {part.node: part.count_persistent() for part in real.list_parts()}

    def changed(how: str, *words: str) -> int:
        argv = [sys.executable, "-m", "bulkmm.cli", "pool", how, "--page", "2M"]
        return run_program([*argv, "--size", "198M", *words], timeout=60).returncode

    with alone_with_the_pool():
        before = counts()
        assert changed("grow", "--jobs", jobs) == Exit.OK
        assert sum(counts().values()) == sum(before.values()) + 99
        assert real.read("surplus_hugepages") == 0
        assert changed("shrink") == Exit.OK
        assert counts() == before


@pytest.mark.parametrize(("mib", "writes"), [(2, 1), (1024, 6)])
def test_a_watch_leaves_a_busy_node_for_the_next(
    two: Fake, monkeypatch: pytest.MonkeyPatch, mib: int, writes: int
) -> None:
    """Whose pages come back dirty as fast as they are zeroed."""
    nodes: list[int | None] = []
    for node, free in {0: "6", 1: "4"}.items():
        home = f"{NODE}/node{node}/hugepages/hugepages-{mib << 10}kB"
        for name in ("nr_hugepages", "free_hugepages"):
            two.write(f"{home}/{name}", free, 0o644)

    def returned_dirty(self: zero.Zeroer, part: Pool) -> int:
        nodes.append(part.node)
        if part.node or len(nodes) > 99:
            self.stop.set()
        return 0

    monkeypatch.setattr(zero.Zeroer, "_write", returned_dirty)
    parts = Pool(SystemFiles(two.root), mib * MIB).list_parts()
    zero.Zeroer(parts, margin=0, watch=True).run(1, lambda *_: None)
    assert nodes == [0] * writes + [1]
