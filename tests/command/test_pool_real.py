# SPDX-License-Identifier: GPL-2.0-only
"""Pools of this machine."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from fakekernel import NODE, Fake
from programs import run_program
from rootlib import alone_with_the_pool

from bulkmm.control.pools import Pool
from bulkmm.control.system_files import SystemFiles
from bulkmm.pool import zero
from bulkmm.shell.errors import Exit

MIB = 1 << 20


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
