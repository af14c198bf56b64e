# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm pool serve`` with the programs that it is for."""

import os
import re
import select
import subprocess
import sys
from pathlib import Path

import pytest
from commandlib import ROOT
from programs import run_program
from rootlib import huge_pages
from servelib import COMMAND, MIB, Running, find_compiler, wait_until

from bench import populate_peers, serve
from bulkmm.results.model import Document
from bulkmm.shell.errors import Exit

PAGE = (ROOT / "docs" / "serve.md").read_text()


def read_recipe(title: str, language: str = "") -> str:
    """Return the first block of a section of the page."""
    block = re.search(
        rf"^### {title}$.*?^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL
    )
    assert block
    return block[1]


def test_numpy_finds_its_weights_again(server: Running) -> None:
    """The recipe, in two processes, with smaller pages and less of them."""
    with huge_pages(4):
        program = read_recipe("A model server in Python", "python")
        program = program.replace("2 << 30", "8 << 20")
        loading = "weights[:] = 1"
        for load in (loading, "raise SystemExit('it was to be there')"):
            code = program.replace(loading, load)
            code = code.replace(
                'name="weights"', f'name="weights", path="{server.path}"'
            )
            result = run_program(
                [sys.executable, "-c", code],
                env={**os.environ, "PYTHONPATH": str(ROOT / "lib" / "python")},
            )
            assert (result.returncode, result.stdout) == (0, "1.0\n"), result.stderr
            wait_until(lambda: server.states() == ["kept"])
        server.run("drop", "weights")
        wait_until(server.is_clean)


def test_the_example_in_c(server: Running, tmp_path: Path) -> None:
    program = tmp_path / "take"
    source = ROOT / "lib" / "examples" / "take.c"
    run_program(
        [find_compiler(), "-Wall", "-Werror", "-o", program, source], check=True
    )
    for _ in range(2):
        result = run_program([program, server.path, 4 * MIB, "4K"])
        assert result.stdout == "4194304 bytes are there, not zero: 0\n"
        wait_until(lambda: not server.states())
    result = run_program([program, server.path, 5, "4K"])
    assert result.returncode == 1
    assert "give a multiple of the page" in result.stderr


@pytest.mark.parametrize("page", ["4K", "2M"])
def test_a_guest_of_qemu_has_the_memory(server: Running, page: str) -> None:
    """What was stored is in the guest's memory, without a page of QEMU's own."""
    if not populate_peers.find_qemu():
        pytest.skip("QEMU is not installed (qemu-system-x86)")
    with huge_pages(32):
        with server.take(64 * MIB, page=page, name="guest") as lease:
            lease.map()[MIB : MIB + 4] = b"\x12\x34\x56\x78"
        wait_until(lambda: server.states() == ["kept"])
        backend = "memory-backend-file,share=on,mem-path={}"
        assert "mem-path={},share=on" in read_recipe("A virtual machine of QEMU")
        words = ["take", "--socket", server.path, "--size", "64M", "--page", page]
        qemu = [*serve.find_qemu(), *serve.guest_words(backend, 64 * MIB)]
        argv = [*COMMAND, "pool", *words, "--name", "guest", "--", *qemu]
        output = ask_monitor(argv, b"xp /4xb 0x100000\n", rb"0x12 0x34 0x56 0x78")
        assert b"0x12 0x34 0x56 0x78" in output
        wait_until(lambda: server.states() == ["kept"])
        server.run("drop", "guest")
        wait_until(server.is_clean)


def ask_monitor(argv: list[str], question: bytes, pattern: bytes) -> bytes:
    """Start QEMU, ask its monitor, and return what it printed."""
    output = b""
    with subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as qemu:
        assert qemu.stdin
        assert qemu.stdout
        try:
            while not re.search(pattern, output):
                readable, _, _ = select.select([qemu.stdout], [], [], 60)
                more = os.read(qemu.stdout.fileno(), 4096) if readable else b""
                if not more:
                    break
                if populate_peers.QEMU_READY in more and question not in output:
                    qemu.stdin.write(question)
                    qemu.stdin.flush()
                output += more
        finally:
            qemu.kill()
    return output


def test_take_becomes_the_command(server: Running) -> None:
    """The lease ends with the last process that has its descriptors."""
    script = "stat -Lc %s {}; (sleep 1000 </dev/null >/dev/null 2>&1 & echo $!)"
    size, pid = server.run(
        "take", "--size", "4M", "--", "sh", "-c", script
    ).stdout.split()
    assert size == "4194304"
    assert server.states() == ["leased"]
    os.kill(int(pid), 9)
    wait_until(lambda: not server.states())
    error = server.run("take", "--size", "4M", code=Exit.USAGE).stderr
    assert "take needs a command after --" in error
    words = ("take", "--size", "4M", "--", "no-such-command")
    assert "there is no such command" in server.run(*words, code=Exit.USAGE).stderr


def test_what_an_outsider_runs_to_check(server: Running) -> None:
    """The two commands of the page: the second client has the pages of the first."""
    (program,) = re.findall(r"^map='.*'$", PAGE, re.MULTILINE)
    lines = re.findall(r"^bulkmm pool (take --size 16M .*)$", PAGE, re.MULTILINE)
    with huge_pages(8):
        for line, printed in zip(lines, ["", "False\n"], strict=True):
            script = line.replace(" -- ", f" --socket {server.path} -- ", 1)
            bash = f"{program}; {' '.join(COMMAND)} pool {script}"
            result = run_program(["bash", "-ec", bash], cwd=ROOT)
            assert (result.returncode, result.stdout) == (0, printed), result.stderr
            wait_until(lambda: not server.states())


def test_the_bench_times_each_way(tmp_path: Path) -> None:
    if not populate_peers.find_qemu():
        pytest.skip("QEMU is not installed (qemu-system-x86)")
    file = tmp_path / "starts.json"
    words = ["--size", "64M", "--keep", "4M", "--page", "4K", "--processes", "1"]
    argv = [*COMMAND, "bench", "serve", *words, "-o", file]
    result = run_program(argv, timeout=120)
    assert result.returncode == 0, result.stderr
    document = Document.read(file)
    ways = {result.scenario: {*()} for result in document.results}
    for result in document.results:
        ways[result.scenario].add(result.variant)
    assert ways == {
        "start-64m-4k": {"no-pages", "prealloc", "server", "pool-take"},
        "load-4m-4k": {"read", "kept"},
    }
    assert len(document.ratios) == 2 * 2 + 1
