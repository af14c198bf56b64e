# SPDX-License-Identifier: GPL-2.0-only
"""The memories that the server has, what each may be given to, and how much may be."""

import os
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import inf
from typing import Any

from bulkmm.control.format import format_size
from bulkmm.pool.memory import Kind, Memory, make_memory
from bulkmm.shell.errors import BulkmmError

RETRY = 5  # seconds until stock is asked for again that was not to be had
MOST = 64  # memories of a user


@dataclass(frozen=True)
class Limits:
    """The most bytes that there may be in all, for each user, on each node."""

    whole: float = inf
    user: float = inf
    node: float = inf


class Inventory:
    """Memories in the order in which they were made; of users, kept, and in stock."""

    def __init__(self, limits: Limits, stock: Mapping[Kind, int]) -> None:
        self.limits, self.stock = limits, stock
        self.memories: list[Memory] = []
        self.problems: dict[Kind, tuple[str, float]] = {}  # why, and when to retry

    def add_memory(self, kind: Kind) -> Memory:
        """Return new memory, without pages yet, if the limits allow it."""
        self._check_machine(kind)
        memory = make_memory(kind)
        self.memories.append(memory)
        return memory

    def remove_memory(self, memory: Memory) -> None:
        """Remove memory that was freed."""
        self.memories.remove(memory)
        for kind, (why, _) in self.problems.items():  # there may be room now
            self.problems[kind] = why, 0

    def find_kept(self, uid: int, kind: Kind, name: str | None) -> Memory | None:
        """Return what a user left under a name; nobody else has that name."""
        memory = self.find_name(uid, name)
        if memory is None:
            return None
        if not memory.kind.matches(kind):
            raise BulkmmError(f"{name} is {memory.kind}: take that, or drop it")
        if os.fstat(memory.fd).st_size != kind.nbytes:
            raise BulkmmError(f"{name} was made smaller by its user: drop it")
        memory.has_content = True
        return memory

    def find_name(self, uid: int, name: str | None) -> Memory | None:
        """Return a user's memory of a name; raise if a client has it."""
        memory = next(
            (m for m in self._list_memories(uid) if name and m.name == name), None
        )
        if memory and memory.pid is not None:
            raise BulkmmError(f"{name} is in use by process {memory.pid}")
        return memory

    def _list_memories(self, uid: int | None) -> Iterator[Memory]:
        return (m for m in self.memories if m.uid == uid and not m.freeing)

    def choose_stock(self, kind: Kind) -> Memory | None:
        """Return memory that nobody has had; what is ready first."""
        fit = [m for m in self._list_memories(None) if m.kind.matches(kind)]
        return max(fit, key=lambda memory: memory.ready, default=None)

    def check_user(self, uid: int, nbytes: int) -> None:
        """Raise if a user may not have so much more than it has, or had until now."""
        memories = [m for m in self.memories if m.uid == uid]
        _check_limit(f"user {uid}", memories, nbytes, self.limits.user)
        if len(memories) >= MOST:
            raise BulkmmError(f"user {uid} has {MOST} memories, the most")

    def is_freeing(self) -> bool:
        """Tell whether there may be more room soon."""
        return any(memory.freeing for memory in self.memories)

    def _check_machine(self, kind: Kind) -> None:
        on_node = [m for m in self.memories if m.kind.node == kind.node]
        _check_limit("the server", self.memories, kind.nbytes, self.limits.whole)
        _check_limit(f"node {kind.node}", on_node, kind.nbytes, self.limits.node)

    def make_stock(self) -> None:
        """Add what is missing in stock, or report why it cannot be."""
        now = time.monotonic()
        for kind, count in self.stock.items():
            if self.problems.get(kind, ("", 0))[1] > now:
                continue
            missing = count - sum(m.kind == kind for m in self._list_memories(None))
            try:
                for _ in range(missing):
                    self.add_memory(kind)
            except (BulkmmError, OSError) as error:
                self.report_problem(kind, str(error))

    def report_problem(self, kind: Kind, why: str) -> None:
        """Say, once, why there is no stock of a kind, until it is tried again."""
        if self.problems.get(kind, ("",))[0] != why:
            sys.stderr.write(f"bulkmm: stock {kind}: {why}\n")
        self.problems[kind] = why, time.monotonic() + RETRY

    def describe_stock(self) -> list[dict[str, Any]]:
        """Return what is in stock of each kind, and what should be."""
        return [
            {
                "bytes": kind.nbytes,
                "page": kind.page,
                "node": kind.node,
                "count": count,
                "ready": sum(
                    m.kind == kind and m.ready for m in self._list_memories(None)
                ),
                "problem": self.problems.get(kind, ("",))[0],
            }
            for kind, count in self.stock.items()
        ]

    def describe_limits(self) -> dict[str, float | None]:
        """Return the limits; None: there is none."""
        return {
            name: None if limit == inf else limit
            for name, limit in vars(self.limits).items()
        }


def describe_memory(memory: Memory) -> dict[str, Any]:
    """Return what is to be known of memory."""
    return {
        "user": memory.uid,
        "name": memory.name,
        "pid": memory.pid,
        "state": memory.state,
        "bytes": memory.kind.nbytes,
        "page": memory.kind.page,
        "node": memory.kind.node,
        "resident": memory.count_resident(),
    }


def _check_limit(
    owner: str, memories: Iterable[Memory], nbytes: int, limit: float
) -> None:
    size = sum(memory.kind.nbytes for memory in memories)
    if size + nbytes > limit:
        raise BulkmmError(
            f"{owner} has {format_size(size)} of {format_size(limit)}: "
            f"{format_size(nbytes)} more are refused"
        )
