# SPDX-License-Identifier: GPL-2.0-only
"""A server of memory for a test, and clients of it."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from commandlib import ROOT, check_schema
from programs import run_command
from rootlib import alone_with_the_pool

from bulkmm.populate.libbulkmm import pool

MIB = 1 << 20
LONGEST = 60  # s; nothing here takes that long
COMMAND = [sys.executable, "-m", "bulkmm.cli"]
# code of a server, as the command but for what it changes
IMPATIENT = """
import sys
from bulkmm import cli
from bulkmm.pool import inventory, server
server.PATIENCE = inventory.RETRY = 0.2
sys.exit(cli.main(sys.argv[1:]))
"""
NOBODY = 65534
# as long as it takes to see it being filled
SLOW = 1 << 30
TAKE = {"version": 1, "op": "take", "bytes": MIB, "page": "4K"}


def wait_until(condition: Callable[[], Any]) -> Any:
    """Return the first result of a condition that is true."""
    end = time.monotonic() + LONGEST
    while not (value := condition()):
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.01)
    return value


class Running:
    """A server, and its socket."""

    def __init__(self, process: subprocess.Popen[str], path: str) -> None:
        self.process, self.path = process, path

    def take(self, nbytes: int, **more: Any) -> pool.Lease:
        """Take memory."""
        return pool.take(nbytes, path=self.path, **more)

    def status(self) -> dict[str, Any]:
        """Return the server's status."""
        return pool.status(path=self.path)

    def states(self) -> list[str]:
        """Return the states of all memories."""
        return sorted(memory["state"] for memory in self.status()["memories"])

    def is_clean(self) -> bool:
        """Tell whether there is no memory, and no process that works on it."""
        return not self.states() and not self.list_workers()

    def run(self, *words: object, code: int = 0) -> subprocess.CompletedProcess[str]:
        """Run a client of the command."""
        at = words.index("--") if "--" in words else len(words)
        argv = ["pool", *words[:at], "--socket", self.path, *words[at:]]
        return run_command([*COMMAND, *argv], code=code)

    def connect(self, message: bytes = b"", fds: Sequence[int] = ()) -> socket.socket:
        """Return a connection, on which a message was sent as it is."""
        client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        client.connect(self.path)
        if message:
            socket.send_fds(client, [message], [*fds])
        return client

    def list_workers(self) -> list[int]:
        """Return the processes that fill or free memory now."""
        pid = self.process.pid
        return list_children(pid)

    def resume_workers(self) -> None:
        """Have the processes go on that stop themselves; they may not have yet."""
        for worker in self.list_workers():
            status = Path(f"/proc/{worker}/status")
            wait_until(lambda file=status: "\nState:\tT" in file.read_text())
            os.kill(worker, signal.SIGCONT)

    def kill(self) -> None:
        """Kill the server."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


def make_request(**members: object) -> bytes:
    """Return a request for memory, with other members."""
    return json.dumps(TAKE | members).encode()


def count_descriptors(server: Running) -> int:
    return len([*Path(f"/proc/{server.process.pid}/fd").iterdir()])


class waiting_client(ExitStack):  # noqa: N801 - a context
    """A client whose memory is being filled."""

    def __init__(self, server: Running, **more: Any) -> None:
        super().__init__()
        self.client = server.connect(make_request(**{"bytes": SLOW, **more}))
        wait_until(server.list_workers)

    def __enter__(self) -> Any:
        return self.enter_context(self.client)


def list_children(pid: int) -> list[int]:
    with suppress(OSError):
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
        return [int(word) for word in text.split()]
    return []


@contextmanager
def short_directory() -> Iterator[Path]:
    """Give a directory whose sockets have names that are short enough."""
    with tempfile.TemporaryDirectory(prefix="bmm") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@contextmanager
def run_server(
    *words: str,
    path: Path | None = None,
    inside: Sequence[str] = (),
    code: str = "",
    **more: Any,
) -> Iterator[Running]:
    """Have a server, which is stopped at the end, and leaves nothing then."""
    with short_directory() as place:
        socket_path = path or place / "pool"
        start = [sys.executable, "-c", code] if code else COMMAND
        argv = [*inside, *start, "pool", "serve", "--socket", str(socket_path), *words]
        with subprocess.Popen(
            argv, stdout=subprocess.PIPE, text=True, cwd=ROOT, **more
        ) as process:
            try:
                assert process.stdout
                assert process.stdout.readline() == f"serving on {socket_path}\n"
                yield Running(process, str(socket_path))
            finally:
                process.terminate()
                process.wait(LONGEST)


@contextmanager
def as_nobody(user: int = NOBODY) -> Iterator[None]:
    """Be another user in this process; it is to be root."""
    if os.geteuid():
        pytest.skip("needs root")
    os.seteuid(user)
    try:
        yield
    finally:
        os.seteuid(0)


def check_status(server: Running) -> dict[str, Any]:
    """Return what the command prints as JSON, which is as the schema says."""
    import json

    document: dict[str, Any] = json.loads(server.run("leases", "--json").stdout)
    check_schema(document)
    return document


@contextmanager
def shared_huge_pages(word: str) -> Iterator[None]:
    """Have the kernel's setting for transparent huge pages of shared memory."""
    file = Path("/sys/kernel/mm/transparent_hugepage/shmem_enabled")
    with alone_with_the_pool():
        usual = file.read_text().partition("[")[2].partition("]")[0]
        file.write_text(word)
        try:
            yield
        finally:
            file.write_text(usual)


def count_free_huge() -> int:
    file = Path("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages")
    return int(file.read_text())


def find_compiler() -> str:
    if not (compiler := shutil.which("cc")):
        pytest.skip("no C compiler")
    return compiler
