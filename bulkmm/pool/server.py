# SPDX-License-Identifier: GPL-2.0-only
"""The server of memory: its clients, and the processes that fill and free for them.

One thread waits for all of them; what takes long is done by the processes of memory.py.
A client says one thing. Once that is to take memory, the kernel refuses all else that
it sends, and the end of its connection is the end of its lease.
"""

import errno
import json
import os
import select
import socket
import struct
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import Any

from bulkmm.pool.inventory import MOST, Inventory, describe_memory
from bulkmm.pool.memory import Kind, Memory, Worker
from bulkmm.pool.protocol import LONGEST, parse_request
from bulkmm.pool.store import Store
from bulkmm.populate.libbulkmm._answers import VERSION
from bulkmm.shell.ending import hold_signals
from bulkmm.shell.errors import BulkmmError

PATIENCE = 10  # seconds until a client has said what it wants, or there is room for it
SPARE = 64  # descriptors for all else
NO_ROOM = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


@dataclass(eq=False)
class Client:
    """A connection, and what it has or waits for."""

    connection: socket.socket
    pid: int
    uid: int
    deadline: float = inf
    memory: Memory | None = None
    request: Mapping[str, Any] | None = None  # to take memory, once there is room
    why: str = ""  # there is none yet


def read_peer(connection: socket.socket, deadline: float = inf) -> Client:
    """Return the client at the other end of a connection, as the kernel knows it."""
    peer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    pid, uid, _ = struct.unpack("iII", peer)
    return Client(connection, pid, uid, deadline)


class Server:
    """Serves clients until it is interrupted."""

    def __init__(
        self,
        listener: socket.socket,
        inventory: Inventory,
        users: Iterable[int],
        store: Store,
    ) -> None:
        self.listener, self.users = listener, {*users}
        self.inventory, self.store = inventory, store
        self.clients: dict[int, Client] = {}  # by descriptor
        self.filler: Worker | None = None
        self.freers: dict[Memory, Worker] = {}
        self.retry = False  # soon: there was no descriptor, or no process, left
        self.counts: Counter[str] = Counter()
        self.handlers: dict[int, Callable[[], None]] = {}
        self.epoll = select.epoll()
        listener.setblocking(False)  # noqa: FBT003 - its only argument
        self._watch(listener.fileno(), self._accept_client)
        for memory, connection in store.read_leases():
            self.inventory.memories.append(memory)
            if connection:
                client = read_peer(connection)
                self._add_client(client)
                self._assign_memory(client, memory)
            elif memory.name is None:  # its client has gone meanwhile
                memory.freeing = True

    def run(self) -> None:
        """Serve until an exception ends it; leases and what is stored outlive it."""
        try:
            self._serve_clients()
        finally:  # whoever follows may need the pages of what was being filled
            if self.filler:
                self.filler.stop()
                self.filler.collect_error()

    def _serve_clients(self) -> None:
        while True:
            self._schedule_work()
            pending = any(each.deadline < inf for each in self.clients.values())
            timeout = 1 if pending or self.inventory.problems or self.retry else None
            last, events = self.listener.fileno(), self.epoll.poll(timeout)
            if self.retry:
                self.retry = False
                self.epoll.modify(last, select.EPOLLIN)
            for fd, _ in sorted(events, key=lambda event: event[0] == last):
                if handler := self.handlers.get(fd):
                    handler()
            now = time.monotonic()
            for client in [*self.clients.values()]:
                if client.deadline < now:
                    self._refuse_client(
                        client, client.why or f"no request in {PATIENCE} s"
                    )

    def _watch(self, fd: int, handler: Callable[[], None]) -> None:
        self.epoll.register(fd, select.EPOLLIN)
        self.handlers[fd] = handler

    def _forget_descriptor(self, fd: int) -> None:
        self.epoll.unregister(fd)
        del self.handlers[fd]

    # Clients

    def _accept_client(self) -> None:
        """Accept one client: those that have ended since make room for the next."""
        try:
            connection, _ = self.listener.accept()
        except OSError as error:  # else it has gone again
            if error.errno in NO_ROOM:
                self.epoll.modify(self.listener.fileno(), 0)
                self.retry = True
            return
        client = read_peer(connection, time.monotonic() + PATIENCE)
        uid = client.uid
        same_user = [each for each in self.clients.values() if each.uid == uid]
        self._add_client(client)
        if uid not in self.users:
            self._refuse_client(client, f"it does not serve user {uid}")
        elif len(same_user) >= MOST:
            self._refuse_client(client, f"user {uid} has {MOST} connections, the most")
        elif (
            len(self.clients) + len(self.inventory.memories) > self._count_descriptors()
        ):
            self._refuse_client(client, "it has no descriptors left")

    @staticmethod
    def _count_descriptors() -> int:
        return os.sysconf("SC_OPEN_MAX") - SPARE

    def _add_client(self, client: Client) -> None:
        client.connection.setblocking(False)  # noqa: FBT003 - its only argument
        fd = client.connection.fileno()
        self.clients[fd] = client
        self._watch(fd, lambda: self._hear_client(client))

    def _hear_client(self, client: Client) -> None:
        """Read the request; after it there is nothing to be read but the end."""
        silent = client.memory or client.request
        try:
            data = b"" if silent else client.connection.recv(LONGEST + 1)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._end_client(client)
            return
        try:
            self._serve_request(client, parse_request(data))
        except BulkmmError as error:
            self._refuse_client(client, str(error))

    def _serve_request(self, client: Client, request: Mapping[str, Any]) -> None:
        try:
            if request["op"] == "take":
                self._take_memory(client, request)
            elif request["op"] == "drop":
                self._drop_memory(client, request["name"])
                self._answer_client(client, {})
            else:
                self._answer_client(client, self._make_status(client))
        except (BulkmmError, OSError) as error:
            self._refuse_client(client, str(error))

    def _answer_client(self, client: Client, reply: dict[str, Any]) -> None:
        """Send the last message to a client."""
        data = json.dumps({"version": VERSION, **reply}).encode()
        with suppress(OSError):  # it has gone, or does not read
            client.connection.send(data, socket.MSG_NOSIGNAL)
        self._end_client(client)

    def _refuse_client(self, client: Client, why: str) -> None:
        self.counts["refused"] += 1
        self._answer_client(client, {"error": why})

    def _end_client(self, client: Client) -> None:
        """Free what a client had, unless it has a name."""
        if self.clients.pop(client.connection.fileno(), None) is None:
            return
        self._forget_descriptor(client.connection.fileno())
        client.connection.close()
        if memory := client.memory:
            memory.pid = None
            self.store.forget_connection(memory)
            if memory.name is None or not memory.ready:
                self._free_memory(memory)

    # Requests

    def _take_memory(self, client: Client, request: Mapping[str, Any]) -> None:
        kind = Kind(request["bytes"], request["page"], request["node"])
        memory = self.inventory.find_kept(client.uid, kind, request["name"])
        if memory is None:
            try:
                memory = self._find_room(client.uid, kind)
            except BulkmmError as error:
                if not self.inventory.is_freeing():
                    raise
                self._wait_for_room(client, request, str(error))
                return
            memory.uid, memory.name = client.uid, request["name"]
        self.counts["kept" if memory.has_content else "new"] += 1
        self.counts["at_once"] += memory.ready
        self._assign_memory(client, memory)
        if memory.ready:
            self._hand_out(client, memory)

    def _find_room(self, uid: int, kind: Kind) -> Memory:
        """Return memory of stock, or new; raise if a user may have none, or none is."""
        self.inventory.check_user(uid, kind.nbytes)
        memory = self.inventory.choose_stock(kind)
        return memory or self.inventory.add_memory(kind.choose_node())

    def _wait_for_room(
        self, client: Client, request: Mapping[str, Any], why: str
    ) -> None:
        """Try a request again whenever memory has been freed, for a while."""
        if not client.request:
            client.request, client.deadline = request, time.monotonic() + PATIENCE
            self._stop_listening(client)
        client.why = f"{why}; it waited {PATIENCE} s for what is being freed"

    def _assign_memory(self, client: Client, memory: Memory) -> None:
        """Make memory a client's."""
        memory.pid, client.memory, client.deadline = client.pid, memory, inf
        self._stop_listening(client)

    def _stop_listening(self, client: Client) -> None:
        """From now on only its end is to be heard."""
        with suppress(OSError):  # it has gone
            client.connection.shutdown(socket.SHUT_RD)
        self.epoll.modify(client.connection.fileno(), 0)

    def _hand_out(self, client: Client, memory: Memory) -> None:
        self.store.add_lease(memory, client.connection)  # first: it may be killed
        reply = {
            "version": VERSION,
            "bytes": memory.kind.nbytes,
            "page": memory.kind.page,
            "node": memory.kind.node,
            "name": memory.name,
            "content": memory.has_content,
            "resident": memory.count_resident(),
        }
        data = [json.dumps(reply).encode()]
        try:
            socket.send_fds(client.connection, data, [memory.fd], socket.MSG_NOSIGNAL)
        except OSError:  # it has gone
            self._end_client(client)
            if not (memory.has_content or memory.freeing):
                self._free_memory(memory)

    def _drop_memory(self, client: Client, name: str) -> None:
        if not (memory := self.inventory.find_name(client.uid, name)):
            raise BulkmmError(f"user {client.uid} has nothing under the name {name}")
        self._free_memory(memory)

    def _make_status(self, client: Client) -> dict[str, Any]:
        """Return what there is; of memories, those of the client's user, or all."""
        sees_all = client.uid in (0, os.geteuid())
        return {
            "stock": self.inventory.describe_stock(),
            "memories": [
                describe_memory(memory)
                for memory in self.inventory.memories
                if sees_all or memory.uid == client.uid
            ],
            "limits": self.inventory.describe_limits(),
            "counts": {
                k: self.counts[k] for k in ("new", "kept", "at_once", "refused")
            },
        }

    # Work

    def _free_memory(self, memory: Memory) -> None:
        memory.freeing = True
        if memory.name is not None:
            self.store.forget_name(memory)
        if self.filler and self.filler.memory is memory:
            self.filler.stop()

    def _schedule_work(self) -> None:
        """Free, and fill what a client waits for, or else stock."""
        self._start_freeing()
        self.inventory.make_stock()
        empty = [m for m in self.inventory.memories if not m.ready and not m.freeing]
        urgent = [m for m in empty if m.uid is not None]
        wanted = (urgent or empty)[:1]
        if wanted and self.filler:
            if self.filler.idle and urgent:
                self.filler.stop()
        elif wanted:
            self._start_filling(wanted[0], idle=not urgent)

    def _start_freeing(self) -> None:
        filled = self.filler.memory if self.filler else None
        for memory in self.inventory.memories:
            if not memory.freeing or memory is filled:
                continue
            if memory.uid in {each.uid for each in self.freers}:
                continue  # its user may have stopped that: others need not wait
            try:
                worker = Worker(memory, memory.free_pages, idle=False)
            except OSError:  # no process more; not here, as it may take forever
                self.retry = True
                return
            self.freers[memory] = worker
            self._watch(worker.report_fd, partial(self._finish_freeing, worker))

    def _start_filling(self, memory: Memory, *, idle: bool) -> None:
        work = partial(memory.fill_pages, idle=idle)
        try:
            with hold_signals():  # or run() would not know what to stop
                self.filler = Worker(memory, work, idle=idle)
        except OSError as error:
            why = f"no process can be started: {error.strerror}"
            self._fail_memory(memory, why)
            self.retry = True
            return
        self._watch(self.filler.report_fd, self._finish_filling)

    def _finish_filling(self) -> None:
        worker, self.filler = self.filler, None
        if worker is None:
            raise AssertionError("no process")
        self._forget_descriptor(worker.report_fd)
        memory, error = worker.memory, worker.collect_error()
        if worker.stopped:
            return
        if error:
            self._fail_memory(memory, error)
            return
        memory.ready = True
        self.inventory.problems.pop(memory.kind, None)
        if client := self._find_client(memory):
            self._hand_out(client, memory)

    def _finish_freeing(self, worker: Worker) -> None:
        del self.freers[worker.memory]
        self._forget_descriptor(worker.report_fd)
        if worker.collect_error():
            return  # it is tried again
        self._remove_memory(worker.memory)
        for client in [*self.clients.values()]:
            if client.request and not client.memory:
                self._serve_request(client, client.request)

    def _fail_memory(self, memory: Memory, why: str) -> None:
        """Refuse the client that waits for memory, or note why there is no stock."""
        if client := self._find_client(memory):
            self._refuse_client(client, why)
            return
        memory.freeing = True
        self.inventory.report_problem(memory.kind, why)

    def _find_client(self, memory: Memory) -> Client | None:
        return next((c for c in self.clients.values() if c.memory is memory), None)

    def _remove_memory(self, memory: Memory) -> None:
        self.inventory.remove_memory(memory)
        self.store.forget_memory(memory)
        os.close(memory.fd)
