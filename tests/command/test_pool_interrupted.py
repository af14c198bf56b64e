# SPDX-License-Identifier: GPL-2.0-only
"""Pools that others change meanwhile, and runs that are killed."""

import fcntl
import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from commandlib import Command
from fakekernel import Change, Fake, make_pool, set_sizes

from bulkmm.control.pools import Pool
from bulkmm.control.system_files import SystemFiles
from bulkmm.pool import grow, reserve
from bulkmm.shell.errors import Exit

MIB = 1 << 20


def test_what_was_lent_is_given_back_where_a_node_gave_less(
    kernel: Fake, change_totals: Change
) -> None:
    change_totals(1, lambda value: min(value, 7))
    make_pool(kernel, {0: (10, 6, 0), 1: (4, 4, 0)})
    set_sizes(kernel, {0: (4096, 4096), 1: (4096, 4096)})
    pool_2m = Pool(SystemFiles(kernel.root), 2 * MIB)
    with grow.borrow_pages(pool_2m, 10):
        assert [part.count_persistent() for part in pool_2m.list_parts()] == [15, 7]
    assert next(iter(pool_2m.list_parts())).count_persistent() == 10


def test_what_others_add_meanwhile_stays(
    kernel: Fake, bulkmm: Command, change_totals: Change
) -> None:
    change_totals(0, lambda value: value + 5)
    make_pool(kernel, {0: (10, 6, 0), 1: (4, 4, 0)})
    bulkmm("pool", "grow", "--page", "2M", "--size", "8M")
    pool_2m = Pool(SystemFiles(kernel.root), 2 * MIB)
    assert [part.count_persistent() for part in pool_2m.list_parts()] == [17, 6]


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


def test_two_at_once(two: Fake, bulkmm: Command) -> None:
    home = two.root / "run" / "bulkmm"
    home.mkdir(parents=True)
    with (home / "pool.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        result = bulkmm("pool", "grow", "--page", "2M", "--size", "2M")
    assert result.code == Exit.ENVIRONMENT
    assert result.err == "bulkmm: another bulkmm pool is changing a pool"
