# SPDX-License-Identifier: GPL-2.0-only
"""Every command of every page is run, here or by a test that is named here.

What a machine without the module, without root or within seconds cannot do is
done as far as it goes: a run of the lab up to the moment at which it would touch
the machine, a bench with a result that was made before, make without its recipes.
"""

import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

import made
import pytest
from docpages import PAGES, ROOT, commands, name
from fakekernel import Fake, kernel, load

from bulkmm import cli
from bulkmm.bench import measure, populate
from bulkmm.errors import Exit
from bulkmm.lab import run
from bulkmm.lab.commands import prepare
from bulkmm.native import find
from bulkmm.native import fuzz as kernel_fuzz
from bulkmm.native import measure as kernel_measure

# The command is the one of this tree, whatever directory it is given in.
SHELL = 'bulkmm() { "$PYTHON" -m bulkmm.cli "$@"; }\n'
HERE = {**os.environ, "PYTHON": sys.executable, "PYTHONPATH": str(ROOT)}

# What a command is, by how it begins. The first that fits counts.
KINDS = {
    "status": r"bulkmm (status|doctor|on|off|tune|watch)\b",
    "result": r"bulkmm (show|compare|plot|report)\b",
    "populate": r"bulkmm populate\b",
    "bench": r"bulkmm bench\b",
    "list": r"bulkmm lab list$",
    "lab": r"bulkmm lab (run|matrix|prepare)\b",
    "sysfs": r"cat /sys/kernel/bulkmm/",
    "library": r"(make (install-lib|-C examples)|cc |\./pool|examples/|BULKMM_CLEAR=)",
    "make": r"make( [a-z]|$)",
    "script": r"scripts/\w+( tests)?$",
    "generator": r"python scripts/\w+\.py$",
    "pytest": r"pytest tests/",
}


SHM = "/dev/shm"  # noqa: S108 - a file system of memory


@dataclass(frozen=True)
class Elsewhere:
    """A command that another test runs, there in other words perhaps."""

    command: str
    test: str
    words: str  # found in the test, or in what it has the guest do
    script: str = ""


PACKAGES = Elsewhere(
    "dkms status", "tests/packages/test_packages.py", "dkms status",
    "lab/guest/packages.sh",
)  # fmt: skip
PMEM_FAULTS = Elsewhere(
    "echo 1 > /sys/kernel/tracing/events/bulkmm/memmap/enable",
    "tests/lab/test_pmem.py", 'events/bulkmm/memmap/enable" 1',
    "lab/guest/faults.sh",
)  # fmt: skip
PURGE = "apt purge bulkmm bulkmm-dkms libbulkmm-dev libbulkmm0"
WHEEL = f"build/wheel/bulkmm-{metadata.version('bulkmm')}-py3-none-any.whl"
EXAMPLES = "/usr/share/doc/bulkmm-dkms/examples"
ELSEWHERE = (
    Elsewhere(
        "insmod module/bulkmm.ko",
        "tests/command/test_guest.py",
        "insmod /lib/modules/bulkmm.ko",
    ),
    Elsewhere("rmmod bulkmm", "tests/command/test_guest.py", "rmmod bulkmm"),
    PMEM_FAULTS,
    replace(
        PMEM_FAULTS,
        command="cat /sys/kernel/tracing/trace_pipe",
        words="grep -q ' memmap: start_pfn='",
    ),
    PACKAGES,
    # the guest has no network: dpkg does what apt would have it do
    replace(PACKAGES, command="apt install ./build/debs/*.deb", words="dpkg -i"),
    replace(PACKAGES, command=PURGE, words="dpkg --purge"),
    replace(PACKAGES, command="modprobe bulkmm", words="modprobe bulkmm"),
    replace(
        PACKAGES, command="modprobe bulkmm inert=0", words="modprobe bulkmm inert=0"
    ),
    replace(
        PACKAGES,
        command="modinfo -F signer bulkmm",
        words="modinfo -F signer bulkmm",
    ),
    *(
        replace(
            PACKAGES,
            command=f"cp {EXAMPLES}/{kind}-bulkmm.conf /etc/{kind}/bulkmm.conf",
            words=f"{kind}-bulkmm.conf /etc/{kind}/bulkmm.conf",
        )
        for kind in ("modules-load.d", "modprobe.d")
    ),
    Elsewhere(
        f"pip install {WHEEL}", "tests/packages/test_wheel.py", '*PIP, "install"'
    ),
)
# Nobody runs these, for the reason given.
NO_BPFTRACE = "the lab's guests have no bpftrace"
NOT_RUN = {
    "bpftrace -e 'tracepoint:bulkmm:alloc "
    "{ @us[args.streaming] = hist(args.ns / 1000); }'": NO_BPFTRACE,
    "bpftrace -e 'tracepoint:bulkmm:memmap "
    "{ @us[args.start_pfn] = args.ns / 1000; }'": NO_BPFTRACE,
    "mokutil --import /var/lib/dkms/mok.pub": "needs UEFI and somebody at its keyboard",
}


def shown(kind: str = "") -> list[str]:
    """Return every command, or those of a kind."""
    every = sorted({command for page in PAGES for command in commands(page)})
    return [x for x in every if not kind or kind_of(x) == kind]


def kind_of(command: str) -> str:
    """Return the first kind that fits."""
    fits = (kind for kind, begin in KINDS.items() if re.match(begin, command))
    return next(fits, "")


def elsewhere(command: str) -> list[Elsewhere]:
    """Return who else runs it."""
    return [one for one in ELSEWHERE if command == one.command]


def words(command: str) -> list[str]:
    """Return what the command is given, as the shell would split it."""
    return shlex.split(command)[1:]


def bash(line: str, place: Path = ROOT, **more: str) -> str:
    """Run a line that must end well; return what it printed."""
    done = subprocess.run(
        ["bash", "-euc", SHELL + line],
        check=False,
        capture_output=True,
        text=True,
        cwd=place,
        env={**HERE, **more},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_blocks_are_read() -> None:
    """A block that is not recognised would be a command that nobody tests."""
    readme = commands(ROOT / "README.md")
    assert {"make demo", "make module", "rmmod bulkmm", "bulkmm lab list"} <= {*readme}
    assert len(shown()) > 50


@pytest.mark.parametrize("command", shown())
def test_somebody_runs_it(command: str) -> None:
    assert kind_of(command) or elsewhere(command) or command in NOT_RUN, (
        f"say in this file who runs: {command}"
    )


@pytest.mark.parametrize("one", ELSEWHERE, ids=lambda one: one.command)
def test_who_runs_it_is_there(one: Elsewhere) -> None:
    files = [one.test, one.script] if one.script else [one.test]
    assert any(one.words in (ROOT / file).read_text() for file in files)
    assert one.command in shown()


def test_what_is_not_run_is_shown() -> None:
    assert {*shown()} >= {*NOT_RUN}


def documented_modes() -> dict[str, str]:
    """Return the modes of every path, as docs/abi.md has its parameter."""
    page = (ROOT / "docs" / "abi.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| (`off`[^|]*) \|", page, re.MULTILINE)
    return {name: re.sub(r"[`,]", "", modes) for name, modes in rows}


@pytest.mark.parametrize("command", shown("status"))
def test_on_a_kernel_with_the_module(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    """The module is a directory here; a file of the system lies below it."""
    fake: Fake = load(kernel(tmp_path / "root"))
    for path, modes in documented_modes().items():
        file = f"/sys/kernel/bulkmm/{path}/mode"
        if not (fake.root / file[1:]).exists():
            fake.write(file, f"[off] {modes.removeprefix('off ')}", 0o644)
    collector = fake.root / "var/lib/prometheus/node-exporter"
    collector.mkdir(parents=True)
    line = command.replace("/var/lib/", f"{fake.root}/var/lib/")
    assert cli.main([*words(line), "--root", str(fake.root)]) == Exit.OK
    said = capsys.readouterr()
    assert said.err == ""
    assert said.out or list(collector.iterdir())


@pytest.mark.parametrize(
    ("command", "codes"),
    [
        ("status", {Exit.OK, Exit.VERDICT}),
        ("doctor", {Exit.OK, Exit.VERDICT, Exit.ENVIRONMENT}),
    ],
)
def test_on_this_machine(
    command: str, codes: set[int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert f"bulkmm {command}" in shown()
    assert cli.main([command]) in codes
    assert capsys.readouterr().out


@pytest.mark.parametrize("command", shown("result"))
def test_about_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    documents = {"demo-native": made.native(), "demo-guest": made.guest()}
    documents |= {"a": made.sweep()}
    for title in ("a-1", "a-2", "b-1", "b-2"):
        documents[title] = made.sweep()
        documents[title].results[0].samples[0] += int(title[-1])  # no copy
    (tmp_path / "out").mkdir()
    for place in (tmp_path, tmp_path / "out"):
        for title, document in documents.items():
            document.write(place / f"{title}.json")
    monkeypatch.chdir(tmp_path)
    given = (Path().glob(word) if "*" in word else [word] for word in words(command))
    assert cli.main([str(word) for some in given for word in some]) == Exit.OK
    for file in re.findall(r"-o (\S+)", command):
        assert (tmp_path / file).stat().st_size > 1000


@pytest.mark.parametrize("command", shown("populate"))
def test_memory_is_filled(tmp_path: Path, command: str) -> None:
    """In a directory of the test's own, on the same file system of memory."""
    with tempfile.TemporaryDirectory(dir=SHM) as place:
        first = f"bulkmm populate {SHM}/guest --size 4M"
        for line in (first, command):
            said = bash(line.replace(SHM, place), tmp_path)
            assert said


def test_a_small_bench(tmp_path: Path) -> None:
    assert "bulkmm bench all --quick -o a.json" in shown()
    line = "bulkmm bench memmap --size 1G --rounds 1 --processes 2 -o a.json"
    assert "Checks passed" in bash(line, tmp_path)
    assert (tmp_path / "a.json").is_file()


@pytest.mark.parametrize("command", shown("bench"))
def test_a_bench_that_was_run_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """All but the time that it takes: options, table, files."""
    monkeypatch.setattr(measure, "run_bench", lambda *_: made.sweep())
    monkeypatch.setattr(kernel_measure, "run", lambda *_: made.sweep())
    none = kernel_fuzz.Found("memmap", "6.12", cases=9, kept=9, served=3)
    monkeypatch.setattr(kernel_fuzz, "run", lambda *_: none)
    monkeypatch.setattr(find, "files", lambda *_: nullcontext((tmp_path, None)))
    monkeypatch.setattr(populate, "run", lambda *_: made.sweep())
    monkeypatch.setattr(populate, "reserved", lambda _: nullcontext())
    monkeypatch.chdir(tmp_path)
    made.sweep().write(tmp_path / "a.json")
    assert cli.main(words(command)) == Exit.OK
    for file in re.findall(r"(?:-o|--plot) (\S+)", command):
        assert (tmp_path / file).stat().st_size > 1000


def test_the_scenarios_are_listed() -> None:
    assert shown("list")
    assert "pmem-fsdax-100g" in bash("bulkmm lab list")


class TouchesTheMachineError(Exception):
    """All that can be refused has been looked at."""


@pytest.fixture
def far(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Return what gives a command of the lab, up to where the machine comes in."""

    def stop(*_: Any) -> None:
        raise TouchesTheMachineError

    def give(command: str) -> None:
        args = cli.parser("lab").parse_args(words(command))
        module, _, name = args.run.partition(":")
        getattr(import_module(module), name)(args)

    for part in (run, prepare):
        monkeypatch.setattr(part, "need_sources", stop)
    return give


@pytest.mark.parametrize("command", shown("lab"))
def test_a_run_of_the_lab(far: Callable[[str], None], command: str) -> None:
    with pytest.raises(TouchesTheMachineError):
        far(command)


@pytest.mark.parametrize(
    "command",
    [
        "bulkmm lab run no-such",
        "bulkmm lab run thp-2m --no-such",
        "bulkmm lab run thp-2m --size 2G",
        "bulkmm lab run thp-2m --way no-such",
        "bulkmm lab run thp-2m --kernel 5.10",
        "bulkmm lab matrix --arch sparc",
    ],
)
def test_a_wrong_run_of_the_lab_would_be_found(
    far: Callable[[str], None], command: str
) -> None:
    with pytest.raises((cli.UsageError, SystemExit)):
        far(command)


@pytest.mark.parametrize("command", shown("sysfs"))
def test_a_file_of_the_module(tmp_path: Path, command: str) -> None:
    fake: Fake = load(kernel(tmp_path / "root"))
    assert bash(command.replace("/sys/", f"{fake.root}/sys/")).strip()


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_the_library_has_a_test_of_its_own(page: Path) -> None:
    """It runs these lines as they stand, in their order, for the pages it names."""
    own = (ROOT / "tests/lib/test_lib_docs.py").read_text()
    if any(kind_of(command) == "library" for command in commands(page)):
        only = {x for x in commands(page) if kind_of(x) == "library"}
        assert f'"{name(page)}"' in own or only == {"make install-lib"}


@pytest.mark.parametrize("command", [*shown("make"), "make install-lib"])
def test_a_goal_of_make(tmp_path: Path, command: str) -> None:
    """Without its recipes; a kernel's own Makefile is asked for modules only."""
    (tmp_path / "Makefile").write_text("modules:\n")
    assert bash(f"{command} -n KDIR={tmp_path}").strip()


def test_a_goal_that_is_not_there_would_be_found() -> None:
    with pytest.raises(AssertionError, match="No rule to make target"):
        bash("make no-such -n")


@pytest.mark.parametrize("command", shown("script"))
def test_a_script(command: str) -> None:
    """They set up, check, or take hours: here it is seen that they can begin."""
    file, *asked = command.split()
    assert os.access(ROOT / file, os.X_OK)
    bash(f"bash -n {file}")
    for word in asked:
        assert f'"${{1-}}" = {word} ' in (ROOT / file).read_text()


@pytest.mark.parametrize("command", shown("generator"))
def test_what_writes_a_page(tmp_path: Path, command: str) -> None:
    bash(f'"$PYTHON" {command.removeprefix("python ")} --out {tmp_path}/made')
    assert (tmp_path / "made").exists()


@pytest.mark.parametrize("command", shown("pytest"))
def test_tests_are_found(command: str) -> None:
    """As the others would take themselves along: what is asked for is there."""
    places = [word for word in words(command) if "/" in word]
    assert places
    assert all((ROOT / place).is_dir() for place in places)
