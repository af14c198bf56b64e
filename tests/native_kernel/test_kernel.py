# SPDX-License-Identifier: GPL-2.0-only
"""Each path on each kernel of the lab, reduced: the module's result is the kernel's.

Nothing is booted: the code runs in a process.
"""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import jsonschema
import pytest
from elftools.elf.elffile import ELFFile
from nativelib import deb, harness, pair_of, tamper

from bulkmm import cli
from bulkmm.control import needs
from bulkmm.errors import BulkmmError, Exit
from bulkmm.lab.progress import Progress
from bulkmm.native import btf, command, measure, process, prototypes, symbols, vmlinux

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nativelib import Pair

    from bulkmm.results import Document

pytestmark = pytest.mark.lab

SCHEMA = Path(__file__).parents[2] / "docs" / "result.schema.json"
SIZES = {"memmap": 3 << 30, "clear": 64 << 20, "vmap": 100 << 20}
SMALL = ("64k", "256k")
USED = ("-again", "-then-read", "-then-write", "-then-random")
SCENARIOS = {
    "memmap": {
        *("pmem-fsdax-3g", "pmem-devdax-3g"),
        *("pmem-devdax-3g-align-1g", "pmem-devdax-3g-map-mem"),
    },
    "clear": {
        *(f"thp-{size}{how}" for size in SMALL for how in ("", "-populate")),
        *(f"thp-2m{how}" for how in ("-populate", *USED)),
        "thp-2m",
    },
    "vmap": {
        *(f"vmap-100m-order{order}" for order in (0, 4, 8, 9)),
        *("vmap-100m-order0-far", "vmap-100m-mixed", "vmap-1page"),
        *("vmap-100m-order8-adjacent", "vmap-100m-order9-empty"),
        *(f"vmap-256k-order0{how}" for how in ("", "-far", "-split", "-empty")),
        *("vmalloc-1m", "vmalloc-100m-huge"),
        *("ioremap-256k", "ioremap-1m", "ioremap-100m", "ioremap-1g"),
    },
}
MORE = {  # with all rows
    "memmap": {
        *("pmem-fsdax-3g-map-mem", "pmem-fsdax-3g-odd", "pmem-fsdax-3g-early"),
        *("pmem-devdax-3g-align-4k", "pmem-devdax-3g-align-1g-map-mem"),
        *("pmem-devdax-3g-odd", "pmem-devdax-3g-early-map-mem", "hmm-private-3g"),
    },
    "clear": {
        *("thp-16k", "thp-16k-again", "thp-32k", "hugetlb-2m", "hugetlb-2m-populate"),
        *(f"thp-64k{how}" for how in USED),
    },
    "vmap": set[str](),
}
WORDS = ("--rounds=1", "--seed=1")


def small(pair: Pair, subject: str) -> measure.Job:
    return measure.Job(
        pair.kernel, pair.module, rounds=1, processes=1, size=SIZES[subject]
    )


def measured(job: measure.Job, *subjects: str) -> Document:
    return measure.run(job, subjects, Progress())


def wrong(document: Document) -> list[str]:
    return [check.name for check in document.checks if not check.ok]


@pytest.mark.parametrize("subject", command.SUBJECTS)
def test_the_module_leaves_what_the_kernel_leaves(pair: Pair, subject: str) -> None:
    document = measured(replace(small(pair, subject), backends=True), subject)
    assert not wrong(document)
    held = {(one.scenario, one.variant) for one in document.results}
    every = SCENARIOS[subject] | MORE[subject]
    assert {scenario for scenario, _ in held} == every
    for scenario in every:
        assert (scenario, "stock") in held
        assert ((scenario, "limit") in held) != scenario.endswith(USED)
        assert {v for s, v in held if s == scenario} & {*measure.SUBJECTS[subject].ours}
    backends = {variant for _, variant in held if variant.startswith("bulkmm")}
    assert subject == "vmap" or any(variant.endswith(":movnti") for variant in backends)
    assert document.machine["kernel"].startswith(pair.series)


def test_what_the_kernel_does_alone(pair: Pair) -> None:
    job = measure.Job(pair.kernel, None, rounds=1, processes=1, size=2 << 30)
    document = measured(job, *command.ALONE)
    assert not wrong(document)
    assert {one.variant for one in document.results} >= {"stock", "limit"}


@pytest.mark.parametrize("subject", command.SUBJECTS)
def test_a_broken_word_is_found(older: Pair, subject: str) -> None:
    document = measured(replace(small(older, subject), spoil=True), subject)
    ours = {one.variant for one in document.results} & {*measure.SUBJECTS[subject].ours}
    broken = wrong(document)
    assert broken
    assert all(any(name.endswith(f" {one}") for one in ours) for name in broken)
    assert len(broken) >= len(SCENARIOS[subject])


@dataclass(frozen=True)
class Settled:
    """What a mode of the module did once it was settled, in one scenario."""

    folios: int
    clocks: int  # how often it looked at one


def settled(pair: Pair, rounds: int, only: str = "") -> tuple[int, str, list[Settled]]:
    """Return code, last words, and what was seen while shared memory was read-only."""
    words = ["clear", f"--size={128 << 20}", "--seed=1", "--settled"]
    words += [f"--rounds={rounds}", *([f"--only={only}"] if only else [])]
    with process.prepared(pair.kernel, pair.module, "host", Progress()) as ready:
        ended = harness(ready.path, *words)
    events = [json.loads(line) for line in ended.out.splitlines()]
    seen = [Settled(e["calls"], e["clocks"]) for e in events if e["event"] == "settled"]
    return ended.code, ended.said, seen


def test_settled_clearing_shares_nothing(pair: Pair) -> None:
    code, said, seen = settled(pair, rounds=12)
    assert code == 0, said
    assert len(seen) == 3 * len(SCENARIOS["clear"])
    # twice for one unit in 61; a folio has three, or more if they are slow
    assert all(one.clocks <= 2 + one.folios / 4 for one in seen)


def test_small_folios_share_nothing(pair: Pair) -> None:
    code, said, seen = settled(pair, rounds=1, only="thp-16k")
    assert code == 0, said
    assert [one.clocks for one in seen] == [0, 0, 0]


def test_a_shared_store_is_found(pair: Pair) -> None:
    code, said, _ = settled(pair, rounds=0)  # the pick still measures
    assert code == Exit.ENVIRONMENT
    assert said.startswith("SIGSEGV in bulkmm:bmm_pick_")


@pytest.mark.parametrize("mitigations", ["on", "off"])
def test_mitigations(older: Pair, mitigations: str) -> None:
    document = measured(
        replace(small(older, "memmap"), mitigations=mitigations), "memmap"
    )
    assert not wrong(document)
    assert ("plain" in document.run["returns"]) == (mitigations == "off")


def test_the_kernel_alone(pair: Pair) -> None:
    document = measured(replace(small(pair, "memmap"), module=None), "memmap")
    assert {one.variant.partition(":")[0] for one in document.results} == {
        *("stock", "stock-again", "limit")
    }


def test_the_module_of_another_kernel(older: Pair) -> None:
    other = pair_of("7.3")
    job = replace(small(older, "memmap"), module=other.module)
    with pytest.raises(BulkmmError, match=r"built for 7\.3.*the kernel is 6\.12"):
        measured(job, "memmap")


def test_a_module_that_is_none(older: Pair, tmp_path: Path) -> None:
    file = tmp_path / "bulkmm.ko"
    file.write_text("nothing")
    with pytest.raises(BulkmmError, match="not a module"):
        measured(replace(small(older, "memmap"), module=file), "memmap")


def test_a_truncated_kernel(older: Pair, tmp_path: Path) -> None:
    file = tmp_path / "vmlinuz"
    file.write_bytes(older.kernel.read_bytes()[: 8 << 20])
    with pytest.raises(BulkmmError, match="truncated"):
        measured(replace(small(older, "memmap"), kernel=file), "memmap")


def test_a_kernel_without_btf(older: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    image = vmlinux.read(older.kernel)
    del image.sections[".BTF"]
    monkeypatch.setattr(vmlinux, "read", lambda _: image)
    with pytest.raises(BulkmmError, match="the kernel has no BTF"):
        measured(small(older, "memmap"), "memmap")


def test_a_kernel_without_kallsyms(older: Pair) -> None:
    image = vmlinux.read(older.kernel)
    section = ELFFile(io.BytesIO(image.payload)).get_section_by_name(".rodata")
    start, size = section["sh_offset"], section["sh_size"]
    blank = image.payload[:start] + bytes(size) + image.payload[start + size :]
    with pytest.raises(BulkmmError, match="has no kallsyms"):
        symbols.find(replace(image, payload=blank), Progress())


def test_a_kernel_outside_the_range(
    older: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    image = replace(vmlinux.read(older.kernel), release="7.4.1-made-up")
    monkeypatch.setattr(vmlinux, "read", lambda _: image)
    with pytest.raises(BulkmmError, match=r"Linux 7\.4\.1-made-up is outside .* 7\.3$"):
        measured(small(older, "memmap"), "memmap")


def test_prototypes(pair: Pair) -> None:
    image = vmlinux.read(pair.kernel)
    types = btf.Types(image.at(*image.sections[".BTF"]).tobytes())
    table = needs.read("x86_64")
    for path in table.paths:
        # 6.12 has alloc's function inlined everywhere
        if path.name != "alloc" or pair.series != "6.12":
            assert not prototypes.against(path, types, table.prototypes)
    memmap = table.paths[0]
    odd = table.prototypes | {memmap.hooks[0]: "int (void)"}
    (said,) = prototypes.against(memmap, types, odd)
    assert said.startswith("memmap_init_zone_device: void (struct zone *, ")
    (said,) = prototypes.against(replace(memmap, hooks=("odd",)), types, odd)
    assert said == "odd: none"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_leaves_nothing_behind(
    older: Pair, tmp_path: Path, number: signal.Signals
) -> None:
    words = ["bench", "kernel", "clear", "--kernel", str(older.kernel)]
    # as a job in the background CI may have been born with them ignored
    sane = ["env", "--default-signal=INT,HUP", sys.executable, "-m", "bulkmm.cli"]
    command = subprocess.Popen(
        [*sane, *words, "--module", str(older.module)],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stderr=subprocess.PIPE,
        text=True,
    )
    end = time.monotonic() + 60
    while not list(tmp_path.glob("bulkmm-native-*/symbols")):
        assert time.monotonic() < end
        time.sleep(0.01)
    time.sleep(0.5)
    harnesses = children(command.pid)
    command.send_signal(number)
    assert command.communicate(timeout=60)[1].endswith("bulkmm: interrupted\n")
    assert command.returncode == Exit.INTERRUPTED
    assert not list(tmp_path.iterdir())
    assert harnesses
    assert not any(map(running, harnesses))


def running(pid: int) -> bool:
    """Return if a process lives; one that nobody has waited for does not."""
    try:
        said = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return said.rpartition(")")[2].split()[0] not in "ZX"


def children(pid: int) -> list[int]:
    said = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(word) for word in said.split()]


@pytest.mark.parametrize(
    ("fact", "value", "said"),
    [
        ("offset zone.zone_pgdat", 1 << 40, "SIGSEGV in the harness at 0x"),
        ("gs", 0, "SIGSEGV in "),
        ("offset zone.zone_pgdat", 0, "SIGILL (a BUG or WARN"),
    ],
)
def test_a_fault_names_the_symbol(
    ready: Path, fact: str, value: int, said: str
) -> None:
    tamper(ready, fact, value)
    ended = harness(ready, "memmap", f"--size={1 << 30}", *WORDS)
    assert ended.code == Exit.ENVIRONMENT
    assert ended.said.startswith(said)
    assert "harness" in said or re.search(
        r" in [\w:]+\+0x[0-9a-f]+, address", ended.said
    )


def test_a_range_that_is_taken(ready: Path) -> None:
    tamper(ready, "kernel", 0x70000000)  # where the harness is
    ended = harness(ready, "memmap", f"--size={1 << 30}", *WORDS)
    assert ended.code == Exit.ENVIRONMENT
    assert ended.said == "the kernel cannot be mapped at 0x70000000: the range is taken"


def test_no_memory(ready: Path) -> None:
    words = ("memmap", f"--size={64 << 30}", *WORDS)
    ended = harness(ready, *words, memory=512 << 20)
    assert ended.code == Exit.ENVIRONMENT
    assert ended.said.startswith("no memory: ")


def test_a_scenario_that_is_none(older: Pair) -> None:
    with pytest.raises(BulkmmError, match="no scenario vmap-1t of this size"):
        measured(replace(small(older, "vmap"), only=("vmap-1t",)), "vmap")


def test_only_what_is_named_is_run(older: Pair) -> None:
    names = {"vmap-1page", "thp-64k"}
    job = replace(small(older, "clear"), only=tuple(names))
    found = measured(job, "clear", "vmap", "memmap")
    assert {row.scenario for row in found.results} == names


def test_a_package(older: Pair, tmp_path: Path) -> None:
    """The image as it comes out of a package runs."""
    file = tmp_path / "linux-image.deb"
    file.write_bytes(deb({"./boot/vmlinuz-1": older.kernel.read_bytes()}))
    document = measured(replace(small(older, "memmap"), kernel=file), "memmap")
    assert not wrong(document)
    assert document.machine["kernel"].startswith("6.12.")


@pytest.fixture
def open_to_all(older: Pair) -> Iterator[Pair]:
    """Kernel and module where every user can read them."""
    place = Path(tempfile.mkdtemp(prefix="bulkmm-test-"))
    try:
        place.chmod(0o755)
        for file in (older.kernel, older.module):
            shutil.copy(file, place)
            (place / file.name).chmod(0o644)
        kernel, module = place / older.kernel.name, place / older.module.name
        yield replace(older, kernel=kernel, module=module)
    finally:
        shutil.rmtree(place)


def as_nobody(*words: str) -> subprocess.CompletedProcess[str]:
    """Run the command as a user who owns nothing.

    The one capability is to reach the interpreter, wherever root has it.
    """
    reach = ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *reach]
    return subprocess.run(
        [*nobody, sys.executable, "-m", "bulkmm.cli", *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env={"PATH": os.environ["PATH"], "HOME": "/nonexistent"},
    )


def test_doctor_measures_without_root(open_to_all: Pair) -> None:
    words = ("doctor", "--measure", "--kernel", str(open_to_all.kernel))
    done = as_nobody(*words, "--module", str(open_to_all.module), "--json")
    assert done.returncode == Exit.OK, done.stderr
    document = json.loads(done.stdout)
    jsonschema.validate(document, json.loads(SCHEMA.read_text()))
    assert {row["variant"] for row in document["results"]} >= {"stock", "bulkmm", "pte"}


def test_doctor_measures_the_kernel_alone(open_to_all: Pair) -> None:
    words = ("doctor", "--measure", "--kernel", str(open_to_all.kernel))
    done = as_nobody(*words, "--module", "none")
    assert done.returncode == Exit.OK, done.stderr
    first, *lines = done.stdout.splitlines()
    assert "kernel 6.12." in first
    for path in command.SUBJECTS:
        assert any(re.match(rf"{path}: .* at most \d+\.\d\d", line) for line in lines)
    assert any(line.startswith("No bulkmm.ko") for line in lines)


def test_an_image_that_root_alone_can_read(open_to_all: Pair) -> None:
    open_to_all.kernel.chmod(0o600)
    os.seteuid(65534)
    try:
        with pytest.raises(BulkmmError, match="Permission denied: have root make a"):
            vmlinux.read(open_to_all.kernel)
    finally:
        os.seteuid(0)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--kernel", "x"], Exit.USAGE, "say what to --measure"),
        (["--measure", "--kernel", "./none"], Exit.ENVIRONMENT, "no such file"),
        (["--measure", "--kernel", "5.10"], Exit.USAGE, "unknown kernel 5.10"),
        (["--measure", "--kernel", __file__], Exit.ENVIRONMENT, "not a kernel image"),
    ],
)
def test_what_doctor_refuses(
    words: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["doctor", *words]) == code
    assert said in capsys.readouterr().err


def test_the_running_kernel_without_an_image(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    release = tmp_path / "proc/sys/kernel/osrelease"
    release.parent.mkdir(parents=True)
    release.write_text("7.3.99-odd")
    assert cli.main(["doctor", "--measure", "--root", str(tmp_path)]) == (
        Exit.ENVIRONMENT
    )
    assert "/boot/vmlinuz-7.3.99-odd" in capsys.readouterr().err


def test_the_command(older: Pair, tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    words = ["bench", "kernel", "memmap", "--size", "1G", "--rounds", "1"]
    words += ["--processes", "2", "--scenario", "pmem-fsdax-1g"]
    words += ["--kernel", str(older.kernel), "--module", str(older.module)]
    assert cli.main([*words, "--json", str(file)]) == Exit.OK
    document = json.loads(file.read_text())
    jsonschema.validate(document, json.loads(SCHEMA.read_text()))
    assert {row["scenario"] for row in document["results"]} == {"pmem-fsdax-1g"}
    assert cli.main([*words, "--break-one-word"]) == Exit.VERDICT


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--kernel", "5.10"], Exit.USAGE),
        (["--kernel", "./nothing/vmlinuz"], Exit.ENVIRONMENT),
        (["--size", "1"], Exit.USAGE),
        (["--rounds", "0"], Exit.USAGE),
    ],
)
def test_what_is_refused(
    words: list[str], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["bench", "kernel", "memmap", *words]) == code
    assert capsys.readouterr().err.count("bulkmm: ") == 1


def test_the_harness_is_built() -> None:
    assert process.harness().is_file()
