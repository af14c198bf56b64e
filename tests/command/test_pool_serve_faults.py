# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm pool serve``: what goes wrong, on either side, at each step.

A sentence for whoever asked, and afterwards the server serves, and all memory is back.
"""

import json
import os
import resource
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from programs import run_command
from rootlib import huge_pages, make_cgroup
from servelib import (
    COMMAND,
    IMPATIENT,
    LONGEST,
    MIB,
    SLOW,
    Running,
    as_nobody,
    count_free_huge,
    run_server,
    short_directory,
    wait_until,
)

from bulkmm.pool.server import MOST
from bulkmm.populate.libbulkmm import pool
from bulkmm.shell.errors import Exit

TAKE = {"version": 1, "op": "take", "bytes": MIB, "page": "4K"}


def make_request(**members: object) -> bytes:
    """Return a request for memory, with other members."""
    return json.dumps(TAKE | members).encode()


def count_descriptors(server: Running) -> int:
    return len([*Path(f"/proc/{server.process.pid}/fd").iterdir()])


def test_a_full_pool_is_told_and_is_no_end() -> None:
    with huge_pages(8), run_server("--stock", "8M,page=2M", code=IMPATIENT) as server:
        wait_until(lambda: server.status()["stock"][0]["ready"])
        error = server.run(
            "take", "--size", "12M", "--page", "2M", "--", "true", code=3
        )
        assert "its pool has 4 pages of 2 MiB to spare; more by bulkmm pool grow" in (
            error.stderr
        )
        with server.take(8 * MIB, page="2M"), server.take(8 * MIB, page="2M"):
            assert count_free_huge() == 0
            why = wait_until(lambda: server.status()["stock"][0]["problem"])
            assert "its pool has 0 pages" in why
        wait_until(lambda: server.status()["stock"][0]["ready"])
        assert not server.status()["stock"][0]["problem"]


def test_a_limit_of_memory_is_told() -> None:
    limit = {"limit_in_bytes": str(96 * MIB)}
    with make_cgroup("memory", **limit) as inside, run_server(inside=inside) as server:
        with pytest.raises(pool.PoolError, match=r"MiB more needed, .*limit_in_bytes"):
            server.take(128 * MIB)
        with server.take(16 * MIB):
            pass
        wait_until(server.is_clean)


def test_little_memory_is_taken_beside_the_data() -> None:
    """By the server and its processes: small pages count, those of a pool do not."""
    with (
        huge_pages(48),
        make_cgroup("memory") as inside,
        run_server("--stock", "32M,page=2M", inside=inside) as server,
    ):
        group = Path("/sys/fs/cgroup/memory") / f"bulkmm-test-{os.getpid()}"
        with server.take(96 * MIB), server.take(64 * MIB, page="2M"):
            wait_until(lambda: "filling" not in server.states())
        wait_until(lambda: server.states() == ["stock"])
        most = int((group / "memory.max_usage_in_bytes").read_text())
        assert 96 * MIB < most < (96 + 64) * MIB


def test_it_needs_no_capability() -> None:
    """As the unit starts it: root, who may do nothing that a user may not."""
    bounded = ["setpriv", "--bounding-set", "-all", "--no-new-privs"]
    with huge_pages(8), run_server("--stock", "8M,page=2M", inside=bounded) as server:
        wait_until(lambda: server.states() == ["stock"])
        with server.take(8 * MIB, page="2M"), server.take(4 * MIB, node=0):
            pass
        wait_until(lambda: server.states() == ["stock"])


def test_what_the_kernel_kills_for_memory_is_not_the_server(server: Running) -> None:
    """The process that fills is the first that the OOM killer takes."""
    with waiting_client(server) as client:
        (worker,) = server.list_workers()
        score = Path(f"/proc/{worker}/oom_score_adj")
        wait_until(lambda: score.read_text() == "1000\n")
        os.kill(worker, signal.SIGKILL)
        assert (
            "the kernel killed the process that filled it" in client.recv(4096).decode()
        )
        wait_until(server.is_clean)


class waiting_client(ExitStack):  # noqa: N801 - a context
    """A client whose memory is being filled."""

    def __init__(self, server: Running, **more: Any) -> None:
        super().__init__()
        self.client = server.connect(make_request(**{"bytes": SLOW, **more}))
        wait_until(server.list_workers)

    def __enter__(self) -> Any:
        return self.enter_context(self.client)


def test_without_a_process_freeing_waits() -> None:
    """Nothing is lost, and a client is told."""
    with make_cgroup("pids", max="2") as inside, run_server(inside=inside) as server:
        most = Path("/sys/fs/cgroup/pids") / f"bulkmm-test-{os.getpid()}" / "pids.max"
        with server.take(MIB):
            wait_until(lambda: not server.list_workers())
            count = count_descriptors(server)
            most.write_text("1")
            for _ in range(3):
                with pytest.raises(pool.PoolError, match="no process can be started"):
                    server.take(MIB)
        assert server.states() == ["freeing"] * 4
        # a connection fewer, and the memory of three; a pipe is open only for a moment
        wait_until(lambda: count_descriptors(server) <= count + 2)
        most.write_text("2")
        wait_until(server.is_clean)


def test_without_a_descriptor_clients_wait(server: Running) -> None:
    """It sleeps meanwhile: each time, it gives up its CPU of its own accord."""
    pid = server.process.pid
    limits = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, limits[1]))
    sleeps = count_sleeps(pid)
    with server.connect(make_request()) as client:
        try:
            wait_until(lambda: count_sleeps(pid) >= sleeps + 2)
        finally:
            resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)
        assert b'"content": false' in client.recv(4096)


def count_sleeps(pid: int) -> int:
    text = Path(f"/proc/{pid}/status").read_text()
    return int(text.partition("\nvoluntary_ctxt_switches:")[2].split()[0])


STOPPED_FREEING = """
import os, signal, sys
from bulkmm import cli
from bulkmm.pool import memory, server
server.PATIENCE = %s
free = memory.Memory.free_pages
def free_stopped(self):
    if self.uid != 65534:
        os.kill(os.getpid(), signal.SIGSTOP)
    free(self)
memory.Memory.free_pages = free_stopped
sys.exit(cli.main(sys.argv[1:]))
"""


def test_clients_that_stop_freeing_stop_nobody_else() -> None:
    """As by a write() from a mapping whose page does not come: each process hangs."""
    users = range(1001, 1006)
    words = [word for user in users for word in ("--user", str(user))]
    words += ["--user", "nobody", "--limit-user", "6M", "--stock", "4M"]
    with run_server(*words, code=STOPPED_FREEING % LONGEST) as server:
        Path(server.path).chmod(0o666)
        for user in users:
            with as_nobody(user):
                server.take(4 * MIB).close()
        with as_nobody():
            server.take(4 * MIB).close()
        wait_until(lambda: server.states() == ["freeing"] * len(users) + ["stock"])
        wait_until(lambda: len(server.list_workers()) == len(users))
        for worker in server.list_workers():
            os.kill(worker, signal.SIGCONT)
        wait_until(lambda: server.states() == ["stock"])


def test_what_is_being_freed_counts_and_is_waited_for() -> None:
    words = "--limit-user", "6M"
    with run_server(*words, code=STOPPED_FREEING % 0.2) as server:
        server.take(4 * MIB).close()
        with pytest.raises(
            pool.PoolError,
            match=r"has 4 MiB of 6 MiB: 4 MiB more .*; it waited 0.2 s for what is",
        ):
            server.take(4 * MIB)
    with run_server(*words, code=STOPPED_FREEING % LONGEST) as server:
        server.take(4 * MIB).close()
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
            client.connect(server.path)
            client.send(json.dumps({**TAKE, "bytes": 4 * MIB}).encode())
            wait_until(server.list_workers)
            assert server.states() == ["freeing"]
            os.kill(server.list_workers()[0], signal.SIGCONT)
            assert b'"resident": 4194304' in client.recv(4096)


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
STEPS = """
import json, os, signal, socket, sys
step, path, name = sys.argv[1:4]
server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
server.connect(path)
request = {"version": 1, "op": "take", "bytes": 16 << 20, "page": "2M"}
if step != "connected":
    server.send(json.dumps(request | ({"name": name} if name else {})).encode())
if step in ("received", "mapped"):
    _, (fd,), _, _ = socket.recv_fds(server, 4096, 1)
if step == "mapped":
    import mmap
    memory = mmap.mmap(fd, 0)
    memory[:] = b"x" * len(memory)
os.kill(os.getpid(), signal.SIGSTOP)
"""


@pytest.mark.parametrize("step", ["connected", "sent", "received", "mapped"])
def test_a_client_is_killed(server: Running, step: str) -> None:
    with huge_pages(8):
        for name in ("", "cache"):
            argv = [sys.executable, "-c", STEPS, step, server.path, name]
            with subprocess.Popen(argv) as client:
                os.waitid(os.P_PID, client.pid, os.WSTOPPED | os.WNOWAIT)
                client.kill()
            if name and step in ("received", "mapped"):
                wait_until(lambda: server.states() == ["kept"])
                with server.take(16 * MIB, page="2M", name=name) as lease:
                    assert lease.map()[:1] == (b"x" if step == "mapped" else b"\0")
                pool.drop(name, path=server.path)
            elif name and step == "sent":
                wait_until(lambda: set(server.states()) <= {"kept"})
                if server.states():
                    pool.drop(name, path=server.path)
            wait_until(server.is_clean)
            assert count_free_huge() >= 8
            with server.take(16 * MIB, page="2M") as lease:  # all there are
                assert not any(lease.map()[:])
            wait_until(server.is_clean)


def test_a_client_is_killed_while_it_waits(server: Running) -> None:
    for name in (None, "cache"):
        with waiting_client(server, name=name):
            assert server.states() == ["filling"]
        wait_until(server.is_clean)


@pytest.mark.parametrize("step", ["stock", "filling", "leased", "freeing"])
def test_the_server_is_killed(step: str) -> None:
    """Its processes end with it; a client keeps what it has until it ends, too."""
    with huge_pages(8), ExitStack() as stack:
        server = stack.enter_context(run_server("--stock", "8M,page=2M"))
        wait_until(lambda: server.status()["stock"][0]["ready"])
        lease = stack.enter_context(server.take(8 * MIB, page="2M"))
        if step == "filling":
            stack.enter_context(waiting_client(server))
        elif step == "freeing":
            server.take(SLOW).close()
            wait_until(lambda: "freeing" in server.states())
        elif step == "leased":
            lease.map()[:1] = b"x"
        workers = server.list_workers()
        server.kill()
        wait_until(lambda: not any(map(is_running, workers)))
        if step == "leased":
            assert lease.map()[:1] == b"x"
        wait_until(lambda: count_free_huge() >= 4)
        stack.close()
        assert count_free_huge() >= 8
        with run_server() as server, server.take(16 * MIB, page="2M") as lease:
            assert not any(lease.map()[:])


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def test_a_filler_ends_with_the_server_though_cpus_are_busy() -> None:
    """It is idle to the scheduler, and whoever follows needs its pages."""
    on_cpu = ["taskset", "-c", str(min(os.sched_getaffinity(0)))]
    busy = [*on_cpu, sys.executable, "-c", "while True: pass"]
    with subprocess.Popen(busy) as program:
        try:
            with run_server("--stock", "1G", inside=on_cpu) as server:
                (filler,) = wait_until(server.list_workers)
                wait_until(lambda: os.sched_getscheduler(filler) == os.SCHED_IDLE)
                server.process.terminate()
                server.process.wait(LONGEST)
                assert not is_running(filler)
        finally:
            program.kill()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it(number: signal.Signals) -> None:
    with run_server("--stock", "4M") as server:
        server.process.send_signal(number)
        assert server.process.wait(LONGEST) == Exit.OK
        assert not Path(server.path).exists()


def test_without_a_server_a_client_says_so() -> None:
    words = ["pool", "take", "--size", "1M", "--socket", "/nowhere/pool", "--", "true"]
    result = run_command([*COMMAND, *words], code=Exit.ENVIRONMENT)
    assert result.stderr == (
        "bulkmm: /nowhere/pool: no server (bulkmm pool serve) answers: "
        "No such file or directory\n"
    )


def test_a_server_that_sends_garbage() -> None:
    """A client of it fails by a sentence, too."""
    with short_directory() as place:
        server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        server.bind(str(place / "pool"))
        server.listen()
        for garbage in (b"\xff", b"", b"[]", b"{}"):
            words = ["--size", "1M", "--socket", str(place / "pool"), "--", "true"]
            with subprocess.Popen(
                [*COMMAND, "pool", "take", *words], stderr=subprocess.PIPE, text=True
            ) as client:
                connection, _ = server.accept()
                connection.recv(4096)
                if garbage:
                    connection.send(garbage)
                connection.close()
                _, error = client.communicate()
                assert client.returncode == Exit.ENVIRONMENT, error
                assert error.count("\n") == 1
        server.close()
