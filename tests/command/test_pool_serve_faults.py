# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm pool serve``: what either side may do wrong.

A sentence for whoever asked, and afterwards the server serves, and all memory is back.
"""

import json
import signal
import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest
from programs import run_command
from servelib import (
    COMMAND,
    IMPATIENT,
    MIB,
    Running,
    count_descriptors,
    make_request,
    run_server,
    short_directory,
    wait_until,
)

from bulkmm.pool.server import MOST
from bulkmm.populate.libbulkmm import pool
from bulkmm.shell.errors import Exit


def test_what_was_never_sent_is_no_content() -> None:
    with run_server("--stock", "4M") as server:
        wait_until(lambda: server.states() == ["stock"])
        server.process.send_signal(signal.SIGSTOP)
        server.connect(make_request(bytes=4 * MIB, name="cache")).close()
        server.process.send_signal(signal.SIGCONT)
        with server.take(4 * MIB, name="cache") as lease:
            assert not lease.has_content
        pool.drop("cache", path=server.path)


def test_two_servers() -> None:
    with run_server() as server:
        words = ["pool", "serve", "--socket", server.path]
        second = run_command([*COMMAND, *words], code=Exit.ENVIRONMENT)
        assert second.stderr == f"bulkmm: {server.path}: another server has it\n"
        with server.take(MIB):
            server.kill()
        assert Path(server.path).exists()
        with run_server(path=Path(server.path)) as following, following.take(MIB):
            pass
        assert not Path(server.path).exists()


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("{}/file", "is there, and is no socket"),
        ("{}/no/such/pool", "No such file or directory"),
        ("{}/" + "x" * 120, "AF_UNIX path too long"),
    ],
)
def test_a_socket_that_cannot_be_made(path: str, why: str) -> None:
    with short_directory() as place:
        (place / "file").touch()
        words = ["pool", "serve", "--socket", path.format(place)]
        result = run_command([*COMMAND, *words], code=Exit.ENVIRONMENT)
        assert why in result.stderr
        assert (place / "file").exists()


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (
            ["--stock", "3M,page=2M"],
            "--stock 3M,page=2M: 3145728 bytes: give a multiple",
        ),
        (["--stock", "4M,pages=2M"], "did you mean page?"),
        (["--stock", "4M,page=5M"], "page 5M: there are 4K, thp"),
        (["--stock", "4M,node=77"], "node 77: there are nodes 0"),
        (["--stock", "4M,count=0"], "count is 1 to 1024"),
        (["--user", "nobody-of-this-name"], "there is no such user"),
    ],
)
def test_a_command_line_that_cannot_be(words: list[str], why: str) -> None:
    argv = [*COMMAND, "pool", "serve", "--socket", "/nowhere/pool", *words]
    assert why in run_command(argv, code=Exit.USAGE).stderr


GARBAGE = [
    (b"\x00\xff", "no JSON"),
    (b"[" * 4000, "no JSON"),
    (b"[]", "no object"),
    (b" " * 5000, "4096 bytes at most"),
    ({"version": 2}, "not of version 1"),
    ({"op": "give"}, '"op" is one of take, drop, status'),
    ({"op": None}, '"op" is one of'),
    ({"size": 1}, '"size" is no member'),
    ({"bytes": "1"}, '"bytes" is missing, or of another type'),
    ({"bytes": True}, '"bytes" is missing'),
    ({"bytes": 1.5}, '"bytes" is missing'),
    ({"bytes": 0}, "give a multiple of the page"),
    ({"bytes": -4096}, "give a multiple of the page"),
    ({"bytes": 5000}, "give a multiple of the page"),
    ({"bytes": 1 << 62}, "64T at most"),
    ({"bytes": 10**300}, "64T at most"),
    ({"bytes": 1 << 45}, "MiB more needed"),
    ({"page": None}, '"page" is missing'),
    ({"page": "3M"}, "page 3M: there are 4K"),
    ({"node": 77}, "node 77: there are nodes 0"),
    ({"node": -1}, "node -1: there are nodes 0"),
    ({"name": ""}, '"name" is not 1 to 64 letters'),
    ({"name": "a:b\n"}, '"name" is not 1 to 64 letters'),
    ({"name": "x" * 65}, '"name" is not 1 to 64 letters'),
    ({"name": ["x"]}, '"name" is missing, or of another type'),
]


def test_garbage_and_impossible_requests(server: Running) -> None:
    """One sentence each; descriptors that come with them are nobody's."""
    count = count_descriptors(server)
    for garbage, why in GARBAGE:
        message = make_request(**garbage) if isinstance(garbage, dict) else garbage
        with server.connect(message, [0] * 64) as client:
            reply = json.loads(client.recv(1 << 16))
        assert why in reply["error"], garbage
        assert reply["error"].count("\n") == 0
    with server.connect() as client:
        client.send(b"")
        assert client.recv(1) == b""
    with server.take(MIB):
        pass
    wait_until(server.is_clean)
    wait_until(lambda: count_descriptors(server) == count)


def test_a_second_request_cannot_be_sent(server: Running) -> None:
    with server.take(MIB) as lease:
        with pytest.raises(BrokenPipeError):
            lease.connection.send(b"{}")
        assert server.states() == ["leased"]


def test_a_client_that_says_nothing_is_left() -> None:
    with run_server(code=IMPATIENT) as server:
        with server.connect() as client:
            assert "no request in 0.2 s" in client.recv(4096).decode()
        with server.take(MIB):
            pass


def test_a_client_that_does_not_read(server: Running) -> None:
    """It has what it asked for; the server does not wait."""
    with ExitStack() as stack:
        for _ in range(8):
            stack.enter_context(server.connect(make_request()))
        wait_until(lambda: server.states() == ["leased"] * 8)
        stack.close()
        wait_until(server.is_clean)


def test_many_connections(server: Running) -> None:
    with ExitStack() as stack:
        for _ in range(MOST):
            stack.enter_context(server.connect())
        with pytest.raises(pool.PoolError, match=f"has {MOST} connections, the most"):
            server.take(MIB)
        stack.close()
        wait_until(server.is_clean)


def test_a_client_that_never_closes_is_seen_and_limited() -> None:
    """It has what it may have; others are server; its end gives all back."""
    words = ["take", "--size", "4M", "--socket"]
    with run_server("--limit-user", "6M") as server:
        argv = [*COMMAND, "pool", *words, server.path, "--", "sleep", "1000"]
        with subprocess.Popen(argv) as sleeper:
            wait_until(lambda: server.states() == ["leased"])
            (memory,) = server.status()["memories"]
            assert memory["pid"] == sleeper.pid
            with pytest.raises(pool.PoolError, match="user 0 has 4 MiB of 6 MiB"):
                server.take(4 * MIB)
            with server.take(2 * MIB):
                pass
            sleeper.kill()
        wait_until(server.is_clean)


# A client stops itself at a step; then it is killed.


def test_without_a_server_a_client_says_so() -> None:
    words = ["pool", "take", "--size", "1M", "--socket", "/nowhere/pool", "--", "true"]
    result = run_command([*COMMAND, *words], code=Exit.ENVIRONMENT)
    assert result.stderr == (
        "bulkmm: /nowhere/pool: no server (bulkmm pool serve) answers: "
        "No such file or directory\n"
    )
