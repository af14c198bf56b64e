# SPDX-License-Identifier: GPL-2.0-only
"""The recipes of docs/populate.md, as they are there but for sizes and places."""

import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
import rootlib
from corelib import NATIVE, ROOT
from populatelib import MIB, count_resident
from programs import run_program

PAGE = ROOT / "docs" / "populate.md"
ENVIRONMENT = {
    "PYTHONPATH": str(ROOT / "lib" / "python"),
    "BULKMM_LIBRARY": str(NATIVE / "lib" / "libbulkmm.so"),
}
POOL = Path("/sys/kernel/mm/hugepages/hugepages-2048kB")
# lines of bash before those of a recipe
START = (
    f'set -eu; bulkmm() {{ PYTHONPATH={ROOT} {sys.executable} -m bulkmm.cli "$@"; }}'
)
SERVERS = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
HELLO = """
public class Hello {
    public static void main(String[] words) throws Exception {
        new java.io.File(words[0]).createNewFile();
        System.in.read();
    }
}
"""


def read_recipe(title: str, language: str = "") -> str:
    """Return the first block of a section."""
    section = re.search(
        rf"^### {title}$(.*?)^##", PAGE.read_text(), re.MULTILINE | re.DOTALL
    )
    assert section, title
    block = re.search(
        rf"^```{language}\n(.*?)^```$", section[1], re.MULTILINE | re.DOTALL
    )
    assert block, title
    return block[1]


def replace_all(text: str, changes: Mapping[str, str]) -> str:
    for before, after in changes.items():
        assert before in text, f"{before}: is the recipe another one now?"
        text = text.replace(before, after)
    return text


def run_bash(lines: str, **environment: str) -> None:
    """Run a recipe, whose servers may keep what it prints to open."""
    with tempfile.TemporaryFile("w+") as output:
        status = subprocess.run(
            ["bash", "-c", f"{START}\n{lines}"],
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **ENVIRONMENT, **environment},
            timeout=120,
        )
        output.seek(0)
        assert status.returncode == 0, output.read()


@contextmanager
def empty_pool(pages: int) -> Iterator[None]:
    """Have an empty pool on a machine that could have so many pages."""
    with rootlib.huge_pages(pages):
        rootlib.POOL.write_text("0")
        yield


def count_free() -> int:
    return int((POOL / "free_hugepages").read_text())


def test_a_pinned_pool() -> None:
    size, limit = 96 * MIB, resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    if os.geteuid() != 0 and limit != resource.RLIM_INFINITY:
        pytest.skip(f"the limit of locked memory is {limit}")
    program = replace_all(
        read_recipe("A pinned pool for a model server", "python"),
        {
            "64 << 30, 1 << 30": "96 << 20, 16 << 20",
            'ctypes.CDLL("libcudart.so").cudaHostRegister': "ctypes.CDLL(None).mlock",
        },
    )
    program += "print(open('/proc/self/status').read())"
    result = run_program(
        [sys.executable, "-c", program], env={**os.environ, **ENVIRONMENT}
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith(f"{size} bytes in ")
    assert re.search(rf"^VmLck:\s+{size >> 10} kB$", result.stdout, re.MULTILINE)


def test_files_for_two_nodes_of_qemu(tmp_path: Path) -> None:
    """With smaller pages, and one node; QEMU is not started."""
    place = tmp_path / "huge"
    commands, qemu, arguments = read_recipe("QEMU, two nodes").partition("qemu-system")
    assert qemu
    changes = {
        "/dev/hugepages1G": str(place),
        "1G": "2M",
        "32G": "16M",
        "--node 1": "--node 0",
        "node=1": "node=0",
    }
    with empty_pool(16):
        try:
            run_bash(replace_all(commands, changes))
            sizes = {path.name: count_resident(path) for path in place.iterdir()}
            assert sizes == {"guest0": 16 * MIB, "guest1": 16 * MIB}
            assert count_free() == 0
        finally:
            subprocess.run(["umount", place], check=False)
    for name, size in ("guest0", "32G"), ("guest1", "32G"):
        assert f"size={size},mem-path=/dev/hugepages1G/{name}," in arguments


def test_a_file_for_dpdk(tmp_path: Path) -> None:
    """Filled, under the name that the application is told; that is not started."""
    commands, _, application = read_recipe("DPDK").partition("dpdk-testpmd")
    prefix = re.search(r"--file-prefix (\w+)", application)
    assert prefix
    with (
        empty_pool(8),
        rootlib.mount_memory("hugetlbfs", "pagesize=2M", tmp_path / "huge") as place,
    ):
        run_bash(replace_all(commands, {"/dev/hugepages": str(place), "4G": "16M"}))
        assert count_resident(place / f"{prefix[1]}map_0") == 16 * MIB
        assert count_free() == 0


@pytest.mark.skipif(not shutil.which("javac"), reason="no javac")
def test_a_heap_of_java(tmp_path: Path) -> None:
    (tmp_path / "Hello.java").write_text(HELLO)
    run_bash(f"javac -d {tmp_path} {tmp_path}/Hello.java")
    commands = replace_all(
        read_recipe("A JVM"),
        {
            "9G": "512M",
            "8g": "128m",
            "-jar server.jar": f"-cp {tmp_path} Hello {tmp_path}/up < <(sleep 60)",
            "awk": f"while [ ! -e {tmp_path}/up ]; do kill -0 $!; done; awk",
            "/smaps": f"/smaps > {tmp_path}/resident; kill $!",
        },
    )
    with empty_pool(256):
        run_bash(commands)
    assert float((tmp_path / "resident").read_text().split()[0]) >= 128


@pytest.mark.skipif(not SERVERS, reason="no server of PostgreSQL in Debian's place")
def test_buffers_of_postgresql() -> None:
    rootlib.needs_root()
    with tempfile.TemporaryDirectory(dir="/var/tmp") as home:
        shutil.chown(home, "postgres")
        path = f"{SERVERS[-1].parent}:{os.environ['PATH']}"
        run_bash(
            f"cd {home}; runuser -u postgres -- initdb -A trust -D {home}/data",
            PATH=path,
        )
        with Path(home, "data", "postgresql.conf").open("a") as file:
            file.write("listen_addresses = ''\nshared_buffers = 64MB\n")
            file.write(f"unix_socket_directories = '{home}'\n")
        script = f"cd {home}\n{read_recipe('PostgreSQL')}"
        script += f"stat -Lc '%b %s' /proc/$pid/map_files/$range > {home}/filled\n"
        stop = f"runuser -u postgres -- pg_ctl -D {home}/data -m fast stop || true"
        with empty_pool(64):
            try:
                run_bash(script, PATH=path, PGDATA=f"{home}/data")
            finally:
                run_bash(f"cd {home}; {stop}", PATH=path)
        blocks, size = map(int, Path(home, "filled").read_text().split())
        assert blocks * 512 == size > 64 * MIB
