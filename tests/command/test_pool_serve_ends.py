# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm pool serve``: either side ends, or is killed, at each step.

Afterwards all memory is back, and whoever follows finds it zero.
"""

import os
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from rootlib import huge_pages
from servelib import (
    LONGEST,
    MIB,
    SLOW,
    Running,
    count_free_huge,
    run_server,
    wait_until,
    waiting_client,
)

from bulkmm.pool import server as pool_server
from bulkmm.pool.memory import Kind, Worker, make_memory
from bulkmm.populate.libbulkmm import pool
from bulkmm.shell.errors import Exit

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


def test_a_signal_before_a_filler_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server's last act is to stop the filler, which it would not know."""

    def start_late(*args: Any, **options: Any) -> Worker:
        worker = Worker(*args, **options)
        os.kill(os.getpid(), signal.SIGINT)
        return worker

    monkeypatch.setattr(pool_server, "Worker", start_late)
    running = object.__new__(pool_server.Server)
    memory = make_memory(Kind(4 * MIB, "thp", None))
    with pytest.raises(KeyboardInterrupt):
        running._start_filling(memory, idle=True)
    running.filler.stop()
    running.filler.collect_error()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it(number: signal.Signals) -> None:
    with run_server("--stock", "4M") as server:
        server.process.send_signal(number)
        assert server.process.wait(LONGEST) == Exit.OK
        assert not Path(server.path).exists()
