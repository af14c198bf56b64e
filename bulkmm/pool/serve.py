# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm pool serve``: the socket, what the command line says, the end."""

import argparse
import fcntl
import os
import pwd
import resource
import socket
import stat
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from io import FileIO
from math import inf
from pathlib import Path

from bulkmm.pool.inventory import Inventory, Limits
from bulkmm.pool.memory import SMALL, Kind
from bulkmm.pool.server import Server
from bulkmm.pool.store import Store, take_descriptors
from bulkmm.populate import library
from bulkmm.shell import size
from bulkmm.shell.errors import BulkmmError, Exit, UsageError, unknown_word

LARGEST = "1024T"
WAITING = 64  # connections that are not accepted yet
KEYS = ("page", "node", "count")
MOST_STOCK = 1024  # memories of a kind


def serve_memory(args: argparse.Namespace) -> int:
    """Serve until a signal."""
    limits = Limits(
        _parse_limit(args.limit),
        _parse_limit(args.limit_user),
        _parse_limit(args.limit_node),
    )
    users = {0, os.geteuid(), *map(_find_user, args.user or ())}
    stock = _parse_stock(args.stock or (), limits)
    library.find_library()
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with suppress(KeyboardInterrupt), _open_listener(args.socket) as (listener, store):
        server = Server(listener, Inventory(limits, stock), users, store)
        print(f"serving on {listener.getsockname()}", flush=True)
        store.notify_manager("READY=1")
        server.run()
    return Exit.OK


def _parse_limit(text: str | None) -> float:
    return inf if text is None else size.parse_bytes(text, LARGEST)


def _find_user(name: str) -> int:
    """Return the number of a user, who may be given by it."""
    if name.isdecimal():
        return int(name)
    try:
        return pwd.getpwnam(name).pw_uid
    except KeyError as error:
        raise UsageError(f"--user {name}: there is no such user") from error


def _parse_stock(words: Sequence[str], limits: Limits) -> Counter[Kind]:
    """Return how much of what is to be ready: SIZE[,page=PAGE][,node=N][,count=N]."""
    stock: Counter[Kind] = Counter()
    for word in words:
        text, *settings = word.split(",")
        values = {"page": SMALL, "node": "", "count": "1"}
        for setting in settings:
            key, _, value = setting.partition("=")
            if key not in KEYS:
                raise unknown_word(f"setting of --stock {word},", key, KEYS)
            values[key] = value
        node, count = values["node"], values["count"]
        if not (count.isdecimal() and 1 <= int(count) <= MOST_STOCK):
            raise UsageError(f"--stock {word}: count is 1 to {MOST_STOCK}")
        if node and not node.isdecimal():
            raise UsageError(f"--stock {word}: node is a number")
        try:
            nbytes = size.parse_bytes(text, LARGEST)
            kind = Kind(nbytes, values["page"], int(node) if node else None)
        except UsageError as error:
            raise UsageError(f"--stock {word}: {error}") from error
        stock[kind.choose_node()] += int(count)
    whole = sum(kind.nbytes * count for kind, count in stock.items())
    if whole > limits.whole:
        raise UsageError("--limit is less than --stock, which counts")
    return stock


@contextmanager
def _open_listener(path: str | None) -> Iterator[tuple[socket.socket, Store]]:
    """Yield the socket that systemd gives, or a new one; and what systemd holds."""
    descriptors = take_descriptors()
    store = Store(descriptors)
    stored = ("mem.", "use.")
    listeners = [fd for n, fd in descriptors if not n.startswith(stored)]
    if len(listeners) > 1:
        raise BulkmmError("systemd gave several sockets: one is served")
    if not listeners:
        with _bind_socket(path) as listener:
            yield listener, store
        return
    if path:
        raise UsageError("--socket: systemd has given one already")
    with socket.socket(fileno=listeners[0]) as listener:
        if (listener.family, listener.type) != (socket.AF_UNIX, socket.SOCK_SEQPACKET):
            raise BulkmmError("the socket of systemd is no ListenSequentialPacket=")
        yield listener, store


@contextmanager
def _bind_socket(name: str | None) -> Iterator[socket.socket]:
    """Yield a socket that only this user can reach; its file is removed at the end."""
    if name is None:
        raise UsageError("--socket says where to serve, if systemd gives no socket")
    path = Path(name)
    try:
        listener, lock = _claim_path(path)
    except BlockingIOError as error:
        raise BulkmmError(f"{path}: another server has it") from error
    except OSError as error:
        raise BulkmmError(f"{path}: {error.strerror or error}") from error
    with listener, lock:
        try:
            yield listener
        finally:
            path.unlink(missing_ok=True)


def _claim_path(path: Path) -> tuple[socket.socket, FileIO]:
    """Return a socket that listens, and the lock of its path.

    A lock, as the file of a server that was killed is to be replaced, that of one that
    lives is not.
    """
    path.parent.mkdir(mode=0o755, exist_ok=True)  # /run/bulkmm, after a boot
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
    lock = FileIO(os.open(f"{path}.lock", flags, 0o600))
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    with suppress(FileNotFoundError):
        if not stat.S_ISSOCK(path.lstat().st_mode):
            raise BulkmmError(f"{path} is there, and is no socket")
        path.unlink()
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    usual = os.umask(0o177)  # not after bind(): others could connect
    try:
        listener.bind(str(path))
    finally:
        os.umask(usual)
    listener.listen(WAITING)
    return listener, lock
