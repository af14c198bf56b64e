# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm pool serve``: no page is two clients', however they come and end.

Many clients at once, of stock and beyond it, each of which fills its memory with its
own pattern. All are alive while each compares its bytes, inode and page frames.
"""

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from commandlib import ROOT
from rootlib import huge_pages
from servelib import MIB, Running, run_server, wait_until

CLIENT = """
import ctypes, json, mmap, os, sys
from array import array
from libbulkmm import pool
path, number, nbytes, page = sys.argv[1], *map(int, sys.argv[2:4]), sys.argv[4]
lease = pool.take(nbytes, page=page, path=path)
memory = lease.map()
is_zero = memory[:] == bytes(nbytes)
pattern = number.to_bytes(8, "little") * (nbytes // 8)
memory[:] = pattern
at = ctypes.addressof(ctypes.c_char.from_buffer(memory)) // mmap.PAGESIZE * 8

def find_frames():
    # 0 of all, unless this is root
    with open("/proc/self/pagemap", "rb", buffering=0) as file:
        entries = array("Q", os.pread(file.fileno(), nbytes // mmap.PAGESIZE * 8, at))
    return [entry & (1 << 55) - 1 for entry in entries]

while True:
    answer = {"inode": os.fstat(lease.fd).st_ino, "is_zero": is_zero}
    answer |= {"is_mine": memory[:] == pattern, "frames": find_frames()}
    print(json.dumps(answer), flush=True)
    sys.stdin.readline()
"""
KINDS = [("4K", 2 * MIB), ("4K", 4 * MIB), ("2M", 2 * MIB), ("2M", 4 * MIB)]
CLIENTS, ROUNDS = 12, 4


@dataclass
class Client:
    """A client, and what it said last."""

    process: subprocess.Popen[str]
    last: dict[str, Any] = field(default_factory=dict)

    def hear(self) -> None:
        """Read what it says."""
        assert self.process.stdout
        line = self.process.stdout.readline()
        assert line, "a client has ended"
        self.last = json.loads(line)

    def ask(self) -> None:
        """Have it look again."""
        assert self.process.stdin
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def kill(self) -> None:
        """Kill it."""
        self.process.kill()
        self.process.wait()


def start_client(server: Running, number: int) -> Client:
    page, nbytes = KINDS[number % len(KINDS)]
    words = [server.path, str(number), str(nbytes), page]
    return Client(
        subprocess.Popen(
            [sys.executable, "-c", CLIENT, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT / "lib" / "python")},
        )
    )


@contextmanager
def many_clients() -> Iterator[list[Client]]:
    """Have clients, all of which are killed at the end."""
    clients: list[Client] = []
    try:
        yield clients
    finally:
        for client in clients:
            client.kill()


def check_clients(clients: list[Client]) -> None:
    """Have each client look at its memory while all others are alive."""
    for client in clients:
        client.ask()
    for client in clients:
        client.hear()
        assert client.last["is_zero"], "it was not zero when it came"
        assert client.last["is_mine"], "another has written there"


def count_shared(clients: list[Client]) -> int:
    """Return the page frames that are of two clients; none is seen but by root."""
    frames = [frame for client in clients for frame in client.last["frames"] if frame]
    return len(frames) - len({*frames})


def test_no_page_is_two_clients() -> None:
    """Some are killed, and as many come, before what the first had is freed."""
    chance = random.Random("clients")  # noqa: S311 - to vary
    inodes = []
    stock = ["--stock", "2M,count=2", "--stock", "4M,page=2M,count=1"]
    with huge_pages(24), run_server(*stock) as server, many_clients() as clients:
        for first in range(0, CLIENTS * ROUNDS, CLIENTS):
            for client in chance.sample(clients, len(clients) // 2):
                client.kill()
                clients.remove(client)
            numbers = range(first + 1, first + 1 + CLIENTS - len(clients))
            fresh = [start_client(server, number) for number in numbers]
            clients.extend(fresh)
            for client in fresh:
                client.hear()
            inodes += [client.last["inode"] for client in fresh]
            check_clients(clients)
            if count_shared(clients):  # the kernel has moved some meanwhile
                check_clients(clients)
            assert not count_shared(clients)
            assert len(inodes) == len({*inodes}), "a memfd was handed out twice"
            if not os.geteuid():
                assert all(client.last["frames"][0] for client in clients)
        assert server.states().count("leased") == CLIENTS
        for client in clients:
            client.kill()
        clients.clear()
        wait_until(lambda: "leased" not in server.states())
