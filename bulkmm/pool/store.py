# SPDX-License-Identifier: GPL-2.0-only
"""What outlives the server: descriptors that systemd holds for it (FDSTORE=1).

Memory that was handed out, and its client's connection: so leases and names go on
where the next server begins. A name tells what a descriptor is, as systemd gives it
back: of memory its token, user, bytes, page, node and name; of a connection the token.
See systemd.service(5), FileDescriptorStoreMax=; sd_notify(3); sd_listen_fds(3).
"""

import os
import socket
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from bulkmm.pool.memory import Kind, Memory, adopt_memory
from bulkmm.shell.errors import BulkmmError

FIRST = 3  # of the descriptors that systemd gives


def take_descriptors() -> list[tuple[str, int]]:
    """Return the descriptors that systemd gives this process, each with its name.

    All sockets of a unit have the same.
    """
    number = int(os.environ.pop("LISTEN_FDS", 0))
    names = os.environ.pop("LISTEN_FDNAMES", "").split(":")
    if os.environ.pop("LISTEN_PID", "") != str(os.getpid()):
        return []
    fds = range(FIRST, FIRST + number)
    for fd in fds:
        os.set_inheritable(fd, False)  # noqa: FBT003 - its only argument
    names += [str(fd) for fd in fds[len(names) :]]
    return [*zip(names, fds, strict=False)]


class Store:
    """The descriptors that systemd holds, if it does."""

    def __init__(self, descriptors: Iterable[tuple[str, int]]) -> None:
        self.descriptors = dict(descriptors)
        self.socket: socket.socket | None = None
        if address := os.environ.pop("NOTIFY_SOCKET", ""):
            self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            self.socket.connect(address.replace("@", "\0", 1))

    def notify_manager(self, text: str, fds: Sequence[int] = ()) -> None:
        """Tell systemd something; what it does not hear ends with the server."""
        with suppress(OSError):
            if self.socket:
                socket.send_fds(self.socket, [text.encode()], [*fds])

    def read_leases(self) -> Iterator[tuple[Memory, socket.socket | None]]:
        """Yield memory that an earlier server had handed out, and its client."""
        for label, fd in self.descriptors.items():
            if not label.startswith("mem."):
                continue
            try:
                memory = _read_label(label, fd)
            except (ValueError, BulkmmError) as error:
                sys.stderr.write(f"bulkmm: systemd holds {label}: {error}\n")
                continue
            use_fd = self.descriptors.get(f"use.{memory.token}")
            yield memory, None if use_fd is None else socket.socket(fileno=use_fd)

    def add_lease(self, memory: Memory, connection: socket.socket) -> None:
        """Have memory and the connection of its client held."""
        if not memory.has_content:
            self._add_memory(memory)
        self.notify_manager(
            f"FDSTORE=1\nFDNAME=use.{memory.token}", [connection.fileno()]
        )

    def _add_memory(self, memory: Memory) -> None:
        label = _make_label(memory)
        self.notify_manager(f"FDSTORE=1\nFDNAME={label}", [memory.fd])

    def forget_name(self, memory: Memory) -> None:
        """Have memory held without its name: the next server frees it."""
        self.forget_memory(memory)  # first: systemd holds a descriptor once
        memory.name = None
        self._add_memory(memory)

    def forget_connection(self, memory: Memory) -> None:
        """Have a connection no longer held; systemd has seen its end, too."""
        self.notify_manager(f"FDSTOREREMOVE=1\nFDNAME=use.{memory.token}")

    def forget_memory(self, memory: Memory) -> None:
        """Have memory no longer held."""
        self.notify_manager(f"FDSTOREREMOVE=1\nFDNAME={_make_label(memory)}")


def _make_label(memory: Memory) -> str:
    kind = memory.kind
    words = (memory.token, memory.uid, kind.nbytes, kind.page, kind.node)
    return ".".join(map(str, ("mem", *words, memory.name or "")))


def _read_label(label: str, fd: int) -> Memory:
    _, token, uid, nbytes, page, node, name = label.split(".", 6)
    return adopt_memory(fd, Kind(int(nbytes), page, int(node)), int(uid), name, token)
