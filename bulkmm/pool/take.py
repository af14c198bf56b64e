# SPDX-License-Identifier: GPL-2.0-only
"""The clients of ``bulkmm pool serve``: take, drop and leases."""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from bulkmm.control.json_output import Record
from bulkmm.populate.libbulkmm import pool
from bulkmm.shell import size
from bulkmm.shell.errors import Exit, UsageError
from bulkmm.shell.files import need_command, need_place, write_file
from bulkmm.shell.replace import replace_process

LARGEST = "64T"
METRICS = {
    "pool_stock_wanted_bytes": ("gauge", "Memory that is to be ready."),
    "pool_stock_ready_bytes": ("gauge", "Memory that is ready to be handed out."),
    "pool_bytes": ("gauge", "Memory of the server, by state and user."),
    "pool_limit_bytes": ("gauge", "The most memory: whole, of a user, of a node."),
    "pool_requests_total": ("counter", "Requests; at_once: of those served, ready."),
}


@dataclass(frozen=True)
class StockRecord:
    """What is to be ready, how many of it are; problem: why no more."""

    bytes: int
    page: str
    node: int
    count: int
    ready: int
    problem: str


@dataclass(frozen=True)
class MemoryRecord:
    """Memory; user: null in stock; pid: of the client that has it.

    resident: the bytes that have pages.
    """

    user: int | None
    name: str | None
    pid: int | None
    state: Literal["stock", "filling", "leased", "kept", "freeing"]
    bytes: int
    page: str
    node: int
    resident: int


@dataclass(frozen=True, kw_only=True)
class PoolLeases(Record):
    """Printed by pool leases; limits in bytes, null: none."""

    kind: Literal["pool-leases"] = "pool-leases"
    stock: list[StockRecord]
    memories: list[MemoryRecord]
    limits: dict[str, int | None]
    counts: dict[str, int]


def take_memory(args: argparse.Namespace) -> int:
    """Take memory, and become the command, which has the lease by its descriptors."""
    if not args.words:
        raise UsageError("take needs a command after --: the lease ends with it")
    if "{}" not in args.words[0]:
        need_command(args.words[0])
    nbytes = size.parse_bytes(args.size, LARGEST)
    lease = pool.take(
        nbytes, page=args.page, node=args.node, name=args.name, path=args.socket
    )
    lease.connection.set_inheritable(True)
    replace_process(args.words, lease.fd)
    return Exit.OK


def drop_memory(args: argparse.Namespace) -> int:
    """Have what is kept under a name freed."""
    pool.drop(args.name, path=args.socket)
    return Exit.OK


def show_leases(args: argparse.Namespace) -> int:
    """Print what a server has."""
    need_place(args.output, "output")
    reply = pool.status(path=args.socket)
    leases = PoolLeases(
        stock=[StockRecord(**each) for each in reply["stock"]],
        memories=[MemoryRecord(**each) for each in reply["memories"]],
        limits=reply["limits"],
        counts=reply["counts"],
    )
    text = _format_leases(leases, "json" if args.json else args.format)
    if args.output:
        write_file(args.output, text, "output")
    else:
        print(text, end="")
    return Exit.OK


def _format_leases(leases: PoolLeases, form: str) -> str:
    if form == "json":
        return f"{leases.to_json()}\n"
    if form == "prometheus":
        from bulkmm.control.prometheus import format_samples

        return format_samples(_list_samples(leases), METRICS)
    return "".join(f"{line}\n" for line in _list_lines(leases))


def _list_lines(leases: PoolLeases) -> Iterator[str]:
    from bulkmm.control.format import align_columns, format_size

    for stock in leases.stock:
        why = f": {stock.problem}" if stock.problem else ""
        yield (
            f"stock of {format_size(stock.bytes)}, pages {stock.page}, node "
            f"{stock.node}: {stock.ready} of {stock.count} ready{why}"
        )
    rows = [("state", "user", "process", "size", "pages", "node", "name")]
    for memory in leases.memories:
        user, pid = ("-" if n is None else str(n) for n in (memory.user, memory.pid))
        kind = (format_size(memory.bytes), memory.page, str(memory.node))
        rows.append((memory.state, user, pid, *kind, memory.name or "-"))
    yield from align_columns(rows)


def _list_samples(leases: PoolLeases) -> Iterator[tuple[str, float, dict[str, str]]]:
    for stock in leases.stock:
        labels = {"size": size.name_size(stock.bytes), "page": stock.page}
        labels["node"] = str(stock.node)
        yield "pool_stock_wanted_bytes", stock.bytes * stock.count, labels
        yield "pool_stock_ready_bytes", stock.bytes * stock.ready, labels
    sizes: dict[tuple[Any, ...], int] = {}
    for memory in leases.memories:
        key = (memory.state, "" if memory.user is None else str(memory.user))
        sizes[key] = sizes.get(key, 0) + memory.bytes
    for (state, user), nbytes in sizes.items():
        yield "pool_bytes", nbytes, {"state": state, "user": user}
    for name, limit in leases.limits.items():
        if limit is not None:
            yield "pool_limit_bytes", limit, {"of": name}
    for name, count in leases.counts.items():
        yield "pool_requests_total", count, {"kind": name}
