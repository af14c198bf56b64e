# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm pool serve``: whose memory it is, from when on, and until when."""

import fcntl
import gc
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from rootlib import huge_pages, needs_root
from servelib import (
    COMMAND,
    LONGEST,
    MIB,
    NOBODY,
    SLOW,
    Running,
    as_nobody,
    check_status,
    count_free_huge,
    run_server,
    shared_huge_pages,
    short_directory,
    wait_until,
)

from bulkmm.populate.libbulkmm import pool
from bulkmm.shell.errors import Exit

PATTERN = b"\xa5" * MIB
# maps what it gets, says so, and ends by SIGBUS if it is cut off
HOLDER = """
import mmap, os, sys
memory = mmap.mmap(int(sys.argv[1]), 0)
print(memory[0], flush=True)
sys.stdin.read(1)
os.close(1)
memory[0]
"""

# starts a program as systemd does: with these descriptors, from 3 on
STARTER = """
import fcntl, os, sys
fds = [fcntl.fcntl(int(fd), fcntl.F_DUPFD, 100) for fd in sys.argv[1].split(",")]
for at, fd in enumerate(fds):
    os.dup2(fd, 3 + at)
os.closerange(3 + len(fds), 200)
os.environ["LISTEN_PID"] = str(os.getpid())
os.execv(sys.argv[2], sys.argv[2:])
"""


def fill(lease: pool.Lease) -> None:
    with lease.map() as memory:
        for at in range(0, lease.nbytes, MIB):
            memory[at : at + MIB] = PATTERN


def is_zero(lease: pool.Lease) -> bool:
    with lease.map() as memory:
        return not any(
            memory[at : at + MIB].strip(b"\0") for at in range(0, lease.nbytes, MIB)
        )


def wait_for_stock(server: Running) -> None:
    wait_until(lambda: all(s["ready"] == s["count"] for s in server.status()["stock"]))


def test_stock_is_resident_zero_and_handed_out_once() -> None:
    with run_server("--stock", "8M,count=2") as server:
        for _ in range(4):
            wait_for_stock(server)
            with server.take(8 * MIB) as lease:
                assert lease.resident >= lease.nbytes == 8 * MIB
                assert not lease.has_content
                assert is_zero(lease)
                fill(lease)
        counts = server.status()["counts"]
        assert counts == {"new": 4, "kept": 0, "at_once": 4, "refused": 0}


def test_transparent_huge_pages(server: Running) -> None:
    needs_root()
    with shared_huge_pages("advise"), server.take(8 * MIB, page="thp") as lease:
        with lease.map() as memory:
            memory[0]
            smaps = Path("/proc/self/smaps").read_text()
        assert re.search(r"memfd:bulkmm.*?ShmemPmdMapped: +[1-9]", smaps, re.DOTALL)
        with pytest.raises(pool.PoolError, match="give a multiple of the page"):
            server.take(MIB, page="thp")
    with shared_huge_pages("deny"), pytest.raises(pool.PoolError, match="write advise"):
        server.take(8 * MIB, page="thp")


def test_the_same_pages_are_zero_for_the_next_client(server: Running) -> None:
    """A pool of no other pages: each client has those of the one before it."""
    with huge_pages(8):
        for _ in range(3):
            with server.take(16 * MIB, page="2M") as lease:
                assert count_free_huge() == 0
                assert is_zero(lease)
                fill(lease)
            wait_until(lambda: not server.states())
            assert count_free_huge() >= 8


@pytest.mark.parametrize("page", ["4K", "2M"])
def test_what_a_client_passed_on_is_cut_off(server: Running, page: str) -> None:
    """A mapping and a descriptor, which have nothing left."""
    with huge_pages(8):
        lease = server.take(16 * MIB, page=page)
        fill(lease)
        fd = os.dup(lease.fd)
        with subprocess.Popen(
            [sys.executable, "-c", HOLDER, str(fd)],
            pass_fds=[fd],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as holder:
            assert holder.stdout
            assert holder.stdin
            assert holder.stdout.readline() == b"165\n"
            lease.close()
            wait_until(lambda: not server.states())
            assert count_free_huge() >= 8
            with server.take(16 * MIB, page=page) as following:
                assert is_zero(following)
                holder.stdin.write(b"x")
                holder.stdin.close()
                assert holder.wait(LONGEST) == -signal.SIGBUS
                assert is_zero(following)
        assert os.fstat(fd).st_size == 0
        for grow in (
            lambda: os.ftruncate(fd, 16 * MIB),
            lambda: os.posix_fallocate(fd, 0, 16 * MIB),
            lambda: fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE),
        ):
            with pytest.raises(PermissionError):
                grow()
        os.close(fd)


def test_pages_that_the_kernel_holds_are_nobodys(server: Running) -> None:
    """Those in a pipe stay as they were, while others take memory and write."""
    reader, writer = os.pipe()
    with server.take(MIB) as lease:
        fill(lease)
        assert os.splice(lease.fd, writer, 1 << 16, offset_src=0) == 1 << 16
    wait_until(lambda: not server.states())
    with server.take(MIB) as following, following.map() as memory:
        memory[:] = b"\x5a" * MIB
        assert os.read(reader, 1 << 16) == PATTERN[: 1 << 16]
    os.close(reader)
    os.close(writer)


def test_a_client_cannot_keep_the_server_from_cutting_it_off(server: Running) -> None:
    lease = server.take(4 * MIB)
    for seal in (fcntl.F_SEAL_SHRINK, fcntl.F_SEAL_WRITE, fcntl.F_SEAL_SEAL):
        with pytest.raises(PermissionError):
            fcntl.fcntl(lease.fd, fcntl.F_ADD_SEALS, seal)
    lease.close()
    wait_until(lambda: not server.states())


def test_a_name_keeps_content_until_it_is_dropped(server: Running) -> None:
    with server.take(4 * MIB, name="cache") as lease:
        assert not lease.has_content
        fill(lease)
        with pytest.raises(pool.PoolError, match=f"in use by process {os.getpid()}"):
            server.take(4 * MIB, name="cache")
        with pytest.raises(pool.PoolError, match="in use"):
            pool.drop("cache", path=server.path)
    wait_until(lambda: server.states() == ["kept"])
    with server.take(4 * MIB, name="cache") as lease:
        assert lease.has_content
        assert lease.map()[:MIB] == PATTERN
    with pytest.raises(pool.PoolError, match=r"cache is 4M,page=4K.*drop it"):
        server.take(8 * MIB, name="cache")
    with server.take(4 * MIB, name="cache") as lease:
        os.ftruncate(lease.fd, MIB)
    with pytest.raises(pool.PoolError, match="cache was made smaller by its user"):
        server.take(4 * MIB, name="cache")
    server.run("drop", "cache")
    wait_until(lambda: not server.states())
    error = server.run("drop", "cache", code=Exit.ENVIRONMENT).stderr
    assert "has nothing under the name cache" in error
    with server.take(4 * MIB, name="cache") as lease:
        assert not lease.has_content
        assert is_zero(lease)
    server.run("drop", "cache")


def test_a_lease_lasts_until_it_is_closed_once(server: Running) -> None:
    leases = {*pool._leases}
    memory = server.take(MIB).map()
    gc.collect()
    memory[:] = PATTERN
    assert server.states() == ["leased"]
    (lease,) = pool._leases - leases
    lease.close()
    stranger = os.dup2(0, lease.fd)
    lease.close()
    os.close(stranger)


def test_a_name_is_of_one_user() -> None:
    with run_server("--user", "nobody") as server:
        Path(server.path).chmod(0o666)
        with server.take(4 * MIB, name="cache") as lease:
            fill(lease)
            with as_nobody(), server.take(4 * MIB, name="cache") as foreign:
                assert not foreign.has_content
                assert is_zero(foreign)
                (memory,) = server.status()["memories"]
                assert memory["user"] == NOBODY
        assert {m["user"] for m in server.status()["memories"]} == {0, NOBODY}


def test_another_user_is_refused() -> None:
    with run_server() as server:
        mode = Path(server.path).stat().st_mode & 0o777
        assert mode == 0o600
        with as_nobody(), pytest.raises(pool.PoolError, match="Permission denied"):
            server.take(MIB)
        Path(server.path).chmod(0o666)  # by mistake
        with as_nobody(), pytest.raises(pool.PoolError, match="not serve user 65534"):
            server.take(MIB)


def test_a_server_of_another_user_is_not_trusted() -> None:
    with short_directory() as place:
        path = place / "pool"
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
            server.bind(str(path))
            with as_nobody():
                server.listen()
            with pytest.raises(pool.PoolError, match="it is user 65534's"):
                pool.take(MIB, path=str(path))


def test_limits() -> None:
    words = ("--limit", "24M", "--limit-user", "12M", "--limit-node", "16M")
    with run_server(*words, "--user", "nobody") as server:
        Path(server.path).chmod(0o666)
        with server.take(8 * MIB, name="kept"):
            pass
        wait_until(lambda: server.states() == ["kept"])
        with pytest.raises(
            pool.PoolError, match="user 0 has 8 MiB of 12 MiB: 8 MiB more"
        ):
            server.take(8 * MIB)
        with as_nobody():
            with pytest.raises(pool.PoolError, match="node 0 has 8 MiB of 16 MiB"):
                server.take(12 * MIB)
            with server.take(8 * MIB):
                pass
    with run_server("--limit", "8M", "--stock", "4M") as server:
        wait_for_stock(server)
        with pytest.raises(pool.PoolError, match="the server has 4 MiB of 8 MiB"):
            server.take(5 * MIB)
        with server.take(4 * MIB), server.take(4 * MIB):
            (stock,) = server.status()["stock"]
            assert stock["ready"] == 0
    result = subprocess.run(
        [*COMMAND, "pool", "serve", "--socket", "x", "--limit", "1M", "--stock", "4M"],
        check=False,
        capture_output=True,
        text=True,
    )
    assert (result.returncode, result.stderr) == (
        Exit.USAGE,
        "bulkmm: --limit is less than --stock, which counts\n",
    )


def test_status_is_json_and_metrics() -> None:
    with run_server("--stock", "4M,count=2", "--limit", "1G") as server:
        wait_for_stock(server)
        with server.take(4 * MIB, name="cache"):
            document = check_status(server)
            (lease,) = (m for m in document["memories"] if m["state"] == "leased")
            assert (lease["user"], lease["pid"]) == (os.geteuid(), os.getpid())
            assert document["limits"] == {"whole": 1 << 30, "user": None, "node": None}
            assert "cache" in server.run("leases").stdout
            with short_directory() as place:
                file = place / "bulkmm.prom"
                server.run("leases", "--format", "prometheus", "-o", file)
                metrics = read_metrics(file.read_text())
        assert metrics["bulkmm_pool_stock_wanted_bytes", "4M"] == 8 * MIB
        assert metrics["bulkmm_pool_bytes", "leased"] == 4 * MIB
        assert metrics["bulkmm_pool_requests_total", "at_once"] == 1


def read_metrics(text: str) -> dict[tuple[str, str], float]:
    from prometheus_client.parser import text_string_to_metric_families

    return {
        (sample.name, next(iter(sample.labels.values()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


class Manager:
    """Systemd as a server sees it: a socket, and what it holds meanwhile."""

    def __init__(self, place: Path) -> None:
        self.notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notify.bind(str(place / "notify"))
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.path = str(place / "pool")
        self.listener.bind(self.path)
        self.listener.listen()
        self.held: dict[str, int] = {}

    def heed(self) -> None:
        """Do what the server message."""
        self.notify.settimeout(0)
        while True:
            try:
                data, fds, _, _ = socket.recv_fds(self.notify, 4096, 1)
            except BlockingIOError:
                return
            message = dict(line.split("=", 1) for line in data.decode().splitlines())
            if "FDSTORE" in message:
                self.held[message["FDNAME"]] = fds[0]
            elif "FDSTOREREMOVE" in message and message["FDNAME"] in self.held:
                os.close(self.held.pop(message["FDNAME"]))

    def start(self, sockets: int = 1) -> Running:
        """Start a server with what is held."""
        self.heed()
        fds = [("bulkmm-serve.socket", self.listener.fileno())] * sockets
        fds += self.held.items()
        numbers = ",".join(str(fd) for _, fd in fds)
        environment = {
            **os.environ,
            "LISTEN_FDS": str(len(fds)),
            "LISTEN_FDNAMES": ":".join(name for name, _ in fds),
            "NOTIFY_SOCKET": self.notify.getsockname(),
        }
        argv = [sys.executable, "-c", STARTER, numbers, *COMMAND, "pool", "serve"]
        process = subprocess.Popen(
            argv,
            env=environment,
            pass_fds=[fd for _, fd in fds],
            stderr=subprocess.PIPE,
            text=True,
        )
        return Running(process, self.path)


def test_leases_and_names_outlive_the_server_where_systemd_holds_them() -> None:
    with short_directory() as place:
        manager = Manager(place)
        server = manager.start()
        try:
            with server.take(4 * MIB, name="cache") as lease:
                fill(lease)
            wait_until(lambda: server.states() == ["kept"])
            lease = server.take(8 * MIB)
            closing = server.take(2 * MIB)
            fill(lease)
            server.kill()
            closing.close()  # while there is no server
            server = manager.start()
            wait_until(lambda: server.states() == ["kept", "leased"])
            assert lease.map()[:MIB] == PATTERN
            with server.take(4 * MIB, name="cache") as cache:
                assert cache.has_content
                assert cache.map()[:MIB] == PATTERN
                server.kill()
                server = manager.start()
                with pytest.raises(pool.PoolError, match="in use by process"):
                    server.take(4 * MIB, name="cache")
            lease.close()
            wait_until(lambda: server.states() == ["kept"])
            manager.heed()
            assert [name.split(".")[0] for name in manager.held] == ["mem"]
        finally:
            server.kill()


def test_a_name_that_was_dropped_does_not_come_back() -> None:
    """Not even where the server is killed before the memory is freed."""
    with short_directory() as place:
        manager = Manager(place)
        server = manager.start()
        try:
            with server.take(MIB, name="cache"), server.take(SLOW):
                pass
            wait_until(server.list_workers)
            (worker,) = server.list_workers()
            os.kill(worker, signal.SIGSTOP)  # what is of the same user waits
            wait_until(lambda: "kept" in server.states())
            pool.drop("cache", path=server.path)
            assert server.states() == ["freeing"] * 2
            server.kill()
            server = manager.start()
            with server.take(MIB, name="cache") as lease:
                assert not lease.has_content
                wait_until(lambda: server.states() == ["leased"])
        finally:
            server.kill()


def test_systemd_gives_one_socket() -> None:
    with short_directory() as place:
        manager = Manager(place)
        server = manager.start(sockets=2)
        _, error = server.process.communicate(timeout=LONGEST)
        assert server.process.returncode == Exit.ENVIRONMENT
        assert error == "bulkmm: systemd gave several sockets: one is served\n"


def test_systemd_can_start_it() -> None:
    """By the program that systemd has for trying socket activation."""
    activate = "/usr/bin/systemd-socket-activate"
    if not Path(activate).exists():
        pytest.skip("no systemd-socket-activate")
    with short_directory() as place:
        path = str(place / "pool")
        argv = [activate, "--seqpacket", "-l", path, *COMMAND, "pool", "serve"]
        with subprocess.Popen(
            argv, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
        ) as process:
            wait_until(Path(path).exists)
            try:
                with pool.take(MIB, path=path) as lease:
                    assert is_zero(lease)
            finally:
                process.terminate()
