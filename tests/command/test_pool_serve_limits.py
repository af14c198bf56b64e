# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm pool serve``: what runs out, or is not given back.

Pages, memory, processes, descriptors. A sentence for whoever asked, and afterwards the
server serves, and all memory is back.
"""

import json
import os
import resource
import signal
import socket
from pathlib import Path

import pytest
from rootlib import huge_pages, make_cgroup
from servelib import (
    IMPATIENT,
    LONGEST,
    MIB,
    TAKE,
    Running,
    as_nobody,
    count_descriptors,
    count_free_huge,
    make_request,
    run_server,
    wait_until,
    waiting_client,
)

from bulkmm.populate.libbulkmm import pool


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
        server.resume_workers()
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
            server.resume_workers()
            assert b'"resident": 4194304' in client.recv(4096)
