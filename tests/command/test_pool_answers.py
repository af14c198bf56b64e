# SPDX-License-Identifier: GPL-2.0-only
"""Clients of a server that answers what is no answer: a sentence names the socket."""

import json
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from programs import run_command
from servelib import COMMAND, MIB, short_directory

from bulkmm.populate.libbulkmm import pool
from bulkmm.shell.errors import Exit

LEASE = {"bytes": MIB, "page": "4K", "node": 0, "name": None, "content": False}
LEASE |= {"resident": MIB}
STOCK = {"bytes": MIB, "page": "4K", "node": 0, "count": 1, "ready": 1, "problem": ""}
MEMORY: dict[str, Any] = {"user": None, "name": None, "pid": None, "state": "stock"}
MEMORY |= {"bytes": MIB, "page": "4K", "node": 0, "resident": MIB}
LIMITS = {"whole": None, "user": 5, "node": None}
STATUS: dict[str, Any] = {"stock": [STOCK], "memories": [MEMORY]}
STATUS |= {"limits": LIMITS, "counts": {"new": 1}}
CALLS: dict[str, Callable[[str], object]] = {
    "take": lambda path: pool.take(MIB, path=path),
    "drop": lambda path: pool.drop("cache", path=path),
    "status": lambda path: pool.status(path=path),
}
NO_ANSWERS = {
    b"": "the server closed the connection without an answer",
    b"\xff": "the server's answer is no JSON",
    b"{": "the server's answer is no JSON",
    b"[" * 100000: "the server's answer is no JSON",
    b"[]": "the server's answer is no object",
    b"{}": "the server's answer is not of version 1",
    b'{"version": 2}': "the server's answer is not of version 1",
    b'{"version": 1, "error": "no\\n room"}': "the server refuses: no room",
    b'{"version": 1, "error": 5}': "the server refuses: 5",
}


@contextmanager
def answering(data: bytes, fd: int = -1) -> Iterator[str]:
    """Have a server that answers each request so; yield its socket."""
    with (
        short_directory() as place,
        socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server,
    ):
        server.bind(str(place / "pool"))
        server.listen()

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(4096)
                if data:
                    socket.send_fds(connection, [data], [fd] if fd >= 0 else [])

        thread = threading.Thread(target=answer)
        thread.start()
        yield str(place / "pool")
        thread.join()


def say(members: dict[str, Any]) -> bytes:
    return json.dumps({"version": 1, **members}).encode()


def count_open() -> int:
    return len([*Path("/proc/self/fd").iterdir()])


@pytest.mark.parametrize("op", CALLS)
@pytest.mark.parametrize("data", NO_ANSWERS)
def test_what_is_no_answer(op: str, data: bytes) -> None:
    before = count_open()
    with answering(data) as path, pytest.raises(pool.PoolError) as raised:
        CALLS[op](path)
    assert str(raised.value).startswith(f"{path}: {NO_ANSWERS[data]}")
    assert "\n" not in str(raised.value)
    assert count_open() == before


@contextmanager
def answering_memory(data: bytes, size: int) -> Iterator[str]:
    """Have a server that sends memory; whoever takes it is to leave none open."""
    fd = os.memfd_create("answer")
    os.ftruncate(fd, size)
    before = count_open()
    with answering(data, fd) as path:
        yield path
    assert count_open() == before
    os.close(fd)


@pytest.mark.parametrize("name", LEASE)
def test_a_member_of_a_lease_that_is_missing_or_wrong(name: str) -> None:
    """The descriptor that came with it is closed."""
    wrong = {**LEASE, name: []}
    missing = {key: value for key, value in LEASE.items() if key != name}
    for members in (wrong, missing):
        with (
            answering_memory(say(members), MIB) as path,
            pytest.raises(pool.PoolError, match=f'^{path}: "{name}" of the server'),
        ):
            pool.take(MIB, path=path)


@pytest.mark.parametrize("size", [0, MIB - 1, 2 * MIB])
def test_memory_of_another_size(size: int) -> None:
    with (
        answering_memory(say(LEASE), size) as path,
        pytest.raises(pool.PoolError, match=f"^{path}: .* not of {MIB} bytes"),
    ):
        pool.take(MIB, path=path)


def test_an_answer_that_is_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its end is cut off."""
    monkeypatch.setattr(pool, "LONGEST", len(say(STATUS)) - 1)
    with (
        answering(say(STATUS)) as path,
        pytest.raises(pool.PoolError, match=f"^{path}: .* is no JSON"),
    ):
        pool.status(path=path)


def test_no_memory_came() -> None:
    with (
        answering(say(LEASE)) as path,
        pytest.raises(pool.PoolError, match=f"^{path}: the server sent no memory"),
    ):
        pool.take(MIB, path=path)


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        ({"stock": {}}, "stock"),
        ({"stock": [5]}, "bytes"),
        ({"stock": [{**STOCK, "ready": "1"}]}, "ready"),
        ({"memories": [MEMORY, {**MEMORY, "state": None}]}, "state"),
        ({"limits": {"user": "all"}}, "user"),
        ({"counts": {"new": None}}, "new"),
    ],
)
def test_a_status_that_is_wrong(wrong: dict[str, Any], name: str) -> None:
    with (
        answering(say({**STATUS, **wrong})) as path,
        pytest.raises(pool.PoolError, match=f'^{path}: "{name}" of the server'),
    ):
        pool.status(path=path)


def test_what_a_newer_server_adds_is_left_out() -> None:
    stock = [{**STOCK, "more": 1}]
    memories = [{**MEMORY, "more": 1}]
    newer = {**STATUS, "stock": stock, "memories": memories, "more": 1}
    with answering(say(newer)) as path:
        assert pool.status(path=path) == STATUS
    with answering(say(newer)) as path:
        words = ["pool", "leases", "--socket", path]
        assert "1 of 1 ready" in run_command([*COMMAND, *words]).stdout


@pytest.mark.parametrize(
    "words", [["leases"], ["drop", "cache"], ["take", "--size", "1M", "--", "true"]]
)
def test_the_command_ends_by_the_sentence(words: list[str]) -> None:
    with answering(b"garbage") as path:
        argv = [*COMMAND, "pool", words[0], "--socket", path, *words[1:]]
        result = run_command(argv, code=Exit.ENVIRONMENT)
    assert result.stderr == f"bulkmm: {path}: the server's answer is no JSON\n"
