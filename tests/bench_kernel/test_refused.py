# SPDX-License-Identifier: GPL-2.0-only
"""What the harness refuses, what ends it, and what it says of that."""

import io
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from nativelib import Pair, harness, measure_subjects, pair_of, small, tamper

from bench.kernel import measure, process, symbols, vmlinux
from bench.kernel.every import Row, _prototypes
from bulkmm import cli
from bulkmm.control import requirements
from bulkmm.shell.errors import BulkmmError, Exit
from bulkmm.shell.progress import Progress

pytestmark = pytest.mark.lab

WORDS = ("--rounds=1", "--seed=1")


def test_the_module_of_another_kernel(older: Pair) -> None:
    newer = pair_of("7.3")
    job = replace(small(older, "memmap"), module=newer.module)
    with pytest.raises(BulkmmError, match=r"built for 7\.3.*the kernel is 6\.12"):
        measure_subjects(job, "memmap")


def test_a_module_that_is_none(older: Pair, tmp_path: Path) -> None:
    file = tmp_path / "bulkmm.ko"
    file.write_text("nothing")
    with pytest.raises(BulkmmError, match="not a module"):
        measure_subjects(replace(small(older, "memmap"), module=file), "memmap")


def test_a_kernel_without_btf(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    image = vmlinux.read_image(pair.kernel)
    del image.sections[".BTF"]
    monkeypatch.setattr(vmlinux, "read_image", lambda *_: image)
    with pytest.raises(BulkmmError, match="the kernel has no BTF"):
        measure.measure_kernel(small(pair, "memmap"), ["memmap"], Progress())


def test_a_kernel_without_kallsyms(older: Pair) -> None:
    image = vmlinux.read_image(older.kernel)
    section = ELFFile(io.BytesIO(image.payload)).get_section_by_name(".rodata")
    start, size = section["sh_offset"], section["sh_size"]
    blank = image.payload[:start] + bytes(size) + image.payload[start + size :]
    with pytest.raises(BulkmmError, match="has no kallsyms"):
        symbols.find_symbols(replace(image, payload=blank), Progress())


def test_a_kernel_outside_the_range(
    older: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    image = replace(vmlinux.read_image(older.kernel), release="7.4.1-made-up")
    monkeypatch.setattr(vmlinux, "read_image", lambda *_: image)
    message = r"7\.4\.1-made-up is older or newer .* 7\.3$"
    with pytest.raises(BulkmmError, match=message):
        measure.measure_kernel(small(older, "memmap"), ["memmap"], Progress())


# of older kernels: alloc's function is inlined everywhere, and prezero's differ
LACKS = {"6.1": "without prezero; without alloc", "6.12": "without alloc"}


def test_prototypes(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    row, table = Row(pair.series, ""), requirements.read_table("x86_64")
    _prototypes(row, pair.kernel)
    assert row.ok
    assert row.prototypes == LACKS.get(pair.series, row.prototypes)
    memmap = table.paths[0]
    (name,) = memmap.needed[0]
    odd = replace(table, prototypes=table.prototypes | {name: ["int (void)"]})
    monkeypatch.setattr(requirements, "read_table", lambda _: odd)
    _prototypes(row, pair.kernel)
    assert not row.ok
    assert row.prototypes.startswith(f"{name}: void (struct zone *, ")
    _, types = process.read_kernel(pair.kernel)
    absent_hook = replace(memmap, hooks={"memmap": ["odd"]})
    assert types.list_obstacles(absent_hook, odd.prototypes | {"odd": []}) == [
        "odd: none"
    ]


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT])
def test_a_signal_leaves_nothing_behind(
    older: Pair, tmp_path: Path, number: signal.Signals
) -> None:
    words = ["bench", "kernel", "clear", "--kernel", str(older.kernel)]
    # as a job in the background CI may have been born with them ignored
    sane = [sys.executable, "-m", "bulkmm.cli"]
    command = subprocess.Popen(
        [*sane, *words, "--module", str(older.module)],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stderr=subprocess.PIPE,
        text=True,
    )
    end = time.monotonic() + 300
    while not list(tmp_path.glob("bulkmm-native-*/names")):
        assert command.poll() is None, command.communicate()[1]
        assert time.monotonic() < end
        time.sleep(0.01)
    time.sleep(0.5)
    harnesses = children(command.pid)
    command.send_signal(number)
    assert command.communicate(timeout=300)[1].endswith("bulkmm: interrupted\n")
    assert command.returncode == Exit.INTERRUPTED
    assert not list(tmp_path.iterdir())
    assert harnesses
    assert not any(map(running, harnesses))


def running(pid: int) -> bool:
    """Return if a process lives; one that nobody has waited for does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def children(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(word) for word in text.split()]


@pytest.mark.parametrize(
    ("fact", "value", "message"),
    [
        ("offset zone.zone_pgdat", 1 << 40, "SIGSEGV in the harness at 0x"),
        ("gs", 0, "SIGSEGV in "),
        ("offset zone.zone_pgdat", 0, "SIGILL (a BUG or WARN"),
    ],
)
def test_a_fault_names_the_symbol(
    ready: Path, fact: str, value: int, message: str
) -> None:
    tamper(ready, fact, value)
    result = harness(ready, "memmap", f"--size={1 << 30}", *WORDS)
    assert result.code == Exit.ENVIRONMENT
    assert result.message.startswith(message)
    assert "harness" in message or re.search(
        r" in [\w:]+\+0x[0-9a-f]+, address", result.message
    )


def test_it_stays_on_one_cpu(ready: Path) -> None:
    first = min(os.sched_getaffinity(0))
    words = ["memmap", f"--size={1 << 30}", "--rounds=1000", "--seed=1"]
    with subprocess.Popen(
        [process.find_harness(), ready, *words], stdout=subprocess.DEVNULL
    ) as started:
        end = time.monotonic() + 60
        while (on := os.sched_getaffinity(started.pid)) != {first}:
            assert time.monotonic() < end, on
            time.sleep(0.01)
        started.kill()


def test_a_range_that_is_taken(ready: Path) -> None:
    tamper(ready, "kernel", 0x70000000)  # where the harness is
    result = harness(ready, "memmap", f"--size={1 << 30}", *WORDS)
    assert result.code == Exit.ENVIRONMENT
    assert (
        result.message
        == "the kernel cannot be mapped at 0x70000000: the range is taken"
    )


def test_no_memory(ready: Path) -> None:
    words = ("memmap", f"--size={64 << 30}", *WORDS)
    result = harness(ready, *words, memory=512 << 20)
    assert result.code == Exit.ENVIRONMENT
    assert result.message.startswith("no memory: ")


@pytest.mark.parametrize(
    ("data", "path", "size"),
    [("copy_mc_fragile_key", "copy", 4 << 20), ("__start_BTF", "memmap", 1 << 30)],
)
def test_what_the_module_does_not_attach_to(
    ready: Path, data: str, path: str, size: int
) -> None:
    """On a CPU for which the kernel sets that key; a kernel whose BTF is none."""
    lines = (ready / "names").read_text().splitlines()
    addresses = {
        name: int(at, 16) for at, _, name in (line.split(" ", 2) for line in lines)
    }
    with (ready / "kernel").open("r+b") as image:
        image.seek(addresses[data] - addresses["kernel"])
        image.write(b"\1")
    result = harness(ready, path, f"--size={size}", *WORDS)
    assert result.code == Exit.ENVIRONMENT
    assert result.message == f"the module does not attach {path} in mode on"


def test_a_size_that_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["bench", "kernel", "memmap", "--size", "1"]) == Exit.USAGE
    assert capsys.readouterr().err.count("bulkmm: ") == 1


@pytest.mark.parametrize(
    "words", [["bench", "kernel", "vmap"], ["bench", "history"], ["lab", "kernels"]]
)
def test_without_the_libraries_that_read_kernels(words: list[str]) -> None:
    code = (
        "import importlib.util as util, sys; find = util.find_spec; "
        "util.find_spec = lambda name: name != 'lz4' and find(name); "
        "from bulkmm import cli; sys.exit(cli.main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", code, *words]
    result = subprocess.run(command, text=True, capture_output=True, check=False)
    assert result.returncode == Exit.ENVIRONMENT
    assert "needs more packages: make build" in result.stderr
