# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Memory of a server (bulkmm pool serve): resident, zero, and there at once.

The lease lasts as long as the connection: when the last copy of its descriptor is
closed, the server cuts the memory off, and who still has it mapped gets SIGBUS.
Memory with a name is kept, with its content, for the next program of the same user.
"""

import json
import mmap
import os
import socket
import struct
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from ._answers import VERSION, parse_answer

SOCKET = "/run/bulkmm/pool.sock"
LONGEST = 1 << 20  # bytes of a reply
_leases: "set[Lease]" = set()  # open: a collected connection would end its lease


class PoolError(OSError):
    """A refusal of the server, or that there is none: a sentence."""


@dataclass(frozen=True, eq=False)
class Lease:
    """Memory, which is this program's until close(), also if nothing refers to this.

    has_content: it was kept under its name, and has what was stored there. resident:
    the bytes that have pages; fewer, if a program gave some of them back.
    """

    fd: int
    connection: socket.socket
    nbytes: int
    page: str
    node: int
    name: str | None
    has_content: bool
    resident: int

    def __post_init__(self) -> None:
        """Keep it until close()."""
        _leases.add(self)

    def map(self) -> mmap.mmap:
        """Map all of it, shared."""
        return mmap.mmap(self.fd, self.nbytes)

    def close(self) -> None:
        """Give the memory back; under a name it is kept. Mappings must not be used."""
        with suppress(KeyError):  # it is closed already
            _leases.remove(self)
            os.close(self.fd)
            self.connection.close()

    def __enter__(self) -> Self:
        """Return the lease."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Give the memory back."""
        self.close()


def _connect(path: str) -> socket.socket:
    """Connect to a server of root or of this user: another would keep a copy."""
    server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        server.connect(path)
        peer = server.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        _, uid, _ = struct.unpack("iII", peer)
        if uid not in (0, os.geteuid()):
            message = f"{path}: it is user {uid}'s, who could read what is stored there"
            raise PoolError(message)
    except OSError as error:
        server.close()
        if isinstance(error, PoolError):
            raise
        message = f"{path}: no server (bulkmm pool serve) answers: {error.strerror}"
        raise PoolError(message) from error
    return server


def _receive(server: socket.socket) -> tuple[bytes, list[int]]:
    """Return a message; one that the server did not read is told of first."""
    try:
        data, fds, _, _ = socket.recv_fds(server, LONGEST, 1, socket.MSG_CMSG_CLOEXEC)
    except ConnectionResetError:
        data, fds, _, _ = socket.recv_fds(server, LONGEST, 1, socket.MSG_CMSG_CLOEXEC)
    return data, fds


def _exchange(
    server: socket.socket, path: str, request: dict[str, Any]
) -> tuple[dict[str, Any], list[int]]:
    """Send a request; return the answer and descriptors, or raise the refusal."""
    text = json.dumps({"version": VERSION, **request})
    with suppress(OSError):  # it may have refused already, and says why
        server.send(text.encode(), socket.MSG_NOSIGNAL)
    try:
        data, fds = _receive(server)
    except OSError as error:
        raise PoolError(f"{path}: the server has gone: {error.strerror}") from error
    try:
        return parse_answer(data, request["op"]), fds
    except ValueError as error:
        for fd in fds:
            os.close(fd)
        raise PoolError(f"{path}: {error}") from error


def _check_memory(path: str, nbytes: int, reply: dict[str, Any], fds: list[int]) -> int:
    """Return the descriptor of memory that is as large as was asked for."""
    if not fds:
        message = f"{path}: the server sent no memory: has this process a descriptor?"
        raise PoolError(message)
    if nbytes == reply["bytes"] == os.fstat(fds[0]).st_size:
        return fds[0]
    os.close(fds[0])
    raise PoolError(f"{path}: the server sent memory that is not of {nbytes} bytes")


def take(
    nbytes: int,
    *,
    page: str = "4K",
    node: int | None = None,
    name: str | None = None,
    path: str = SOCKET,
) -> Lease:
    """Take memory from a server: 4K, thp, 2M or 1G pages, of any node or of this one.

    With a name: that which a program of this user left under it, with its content, or
    else new memory, to be kept under it.

    PoolError: the server's sentence, or that there is none.
    """
    request = {"op": "take", "bytes": nbytes, "page": page, "node": node, "name": name}
    server = _connect(path)
    try:
        reply, fds = _exchange(server, path, request)
        fd = _check_memory(path, nbytes, reply, fds)
    except BaseException:
        server.close()
        raise
    return Lease(
        fd,
        server,
        reply["bytes"],
        reply["page"],
        reply["node"],
        reply["name"],
        reply["content"],
        reply["resident"],
    )


def drop(name: str, *, path: str = SOCKET) -> None:
    """Have what is kept under a name freed; PoolError as for take()."""
    with _connect(path) as server:
        _exchange(server, path, {"op": "drop", "name": name})


def status(*, path: str = SOCKET) -> dict[str, Any]:
    """Return what the server has, and what of it is this user's (of all, for root)."""
    with _connect(path) as server:
        return _exchange(server, path, {"op": "status"})[0]
