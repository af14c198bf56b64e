# SPDX-License-Identifier: GPL-2.0-only
"""Bad input and a bad machine: one clear line, and the documented code."""

import os
import shutil
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import pytest

from bulkmm import cli, machine
from bulkmm.errors import Exit
from bulkmm.lab import run as lab_run
from bulkmm.lab.choices import Options
from bulkmm.lab.scenario import SCENARIOS, Scenario
from bulkmm.options import flag_of

FSDAX = "pmem-fsdax-100g"
ARM64_KERNEL = "7.3.4+deb13-cloud-arm64"


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["no-such"], "there are pmem-fsdax-100g, pmem-devdax-100g, hmm-pri"),
        ([FSDAX, "--kernel", "5.10"], "unknown kernel 5.10: give 6.12 or 6.1 or 7.3"),
        ([FSDAX, "--kernel", "debu"], "or the lab's own: debug, debug-kobject, kasan"),
        ([FSDAX, "--kernel", "debug", "--arch", "arm64"], "is built for x86_64 only"),
        (["hook-faults", "--kernel", "debug-kobject"], "its disk would be reported"),
        (["packages", "--kernel", "kasan"], "Debian has no packages of the kernel"),
        ([FSDAX, "--arch", "sparc"], "unknown architecture sparc: give x86_64 or arm"),
        ([FSDAX, "--arch", "arm64", "--kernel", "6.12"], "6.12: give 7.3, or a full"),
        ([FSDAX, "--kernel", ARM64_KERNEL], f"{ARM64_KERNEL} is not for x86_64"),
        ([FSDAX, "--size", "64M"], "below a section: at least 128M"),
        ([FSDAX, "--size", "130M"], "no multiple of 16M"),
        ([FSDAX, "--size", "lots"], "bad size lots"),
        ([FSDAX, "--size", "2T"], "above the 1T"),
        ([FSDAX, "--backend", "rm -rf"], "bad backend name rm -rf"),
        ([FSDAX, "--module-defines", "a b"], "bad define a b"),
        (["hmm-private-64g"], "hmm-private-64g needs kernel 7.3 or later, not 6.12"),
        (["upstream-hmm"], "upstream-hmm needs kernel 7.3 or later, not 6.12"),
        (["mthp", "--way", "read"], "unknown way read: there are write-first"),
        (["mthp", "--kib", "48"], "unknown kib 48: there are 16, 32, 64, 128"),
        (["hotplug-cxl-4g", "--arch", "arm64"], "QEMU has CXL devices for x86_64 only"),
        (["hotplug-cxl-4g", "--kernel", "debug"], "lacks what Debian's own has"),
        (
            ["pmem-devdax-100g", "--align", "1G", "--arch", "arm64"],
            "no alignment 1G on arm64: 4K, 2M",
        ),
        (["coexist", "--part", "perf"], "unknown part perf: there are function, fun"),
        (["coexist", "--kernel", "debug"], "the kernel debug lacks what Debian's own"),
        (["upstream-mm", "--arch", "arm64"], "the suites are built for x86_64"),
        (["clear-faults", "--seconds", "0"], "--seconds 0: give 1 to 3600"),
        (["pmem-devdax-100g", "--align", "1G", "--size", "1G"], "at least 2G"),
        (["vmap-order0", "--arm", "on"], "unknown --arm on: "),
        (["hotplug-kmem-4g", "--size", "512M"], "a multiple of 128M"),
        (["hotplug-kmem-4g", "--size", "1040M"], "a multiple of 128M"),
        (["hotplug-cxl-4g", "--size", "1152M"], "a multiple of 256M"),
        (["populate-guest", "--cpus", "8"], "--cpus does not apply to populate-guest"),
    ],
)
def test_bad_input(
    refused: Callable[..., tuple[int, str]], argv: list[str], says: str
) -> None:
    code, line = refused("run", *argv)
    assert code == Exit.USAGE
    assert says in line


# text that each option is given, and text that it refuses
GIVEN = {"SIZE": ("2G", "2T"), "NAME": ("a", ""), "N": ("3", "-1"), "": ("", "")}


@pytest.mark.parametrize("one", SCENARIOS, ids=[one.name for one in SCENARIOS])
def test_each_option_applies_or_is_refused(
    refused: Callable[..., tuple[int, str]], one: Scenario
) -> None:
    where = ("run", one.name, "--kernel", one.kind or "7.3")
    for field in fields(Options):
        declared = field.metadata["opt"]
        flag = flag_of(field.name, declared)
        good, bad = GIVEN[declared.value]
        good = declared.choices[0] if declared.choices else good
        words = [flag, good] if good else [flag]
        if field.name not in one.takes:
            code, line = refused(*where, *words)
            assert line == f"bulkmm: {flag} does not apply to {one.name}"
            assert code == Exit.USAGE
        elif declared.least is not None:
            code, line = refused(*where, flag, bad)
            assert f"{flag} {bad}: give {declared.least} " in line
            assert code == Exit.USAGE


def test_result_file_is_checked_before_the_run(
    refused: Callable[..., tuple[int, str]], tmp_path: Path
) -> None:
    code, line = refused("run", FSDAX, "-o", str(tmp_path / "no" / "file"))
    assert code == Exit.ENVIRONMENT
    assert "cannot be written" in line


def test_without_root(
    refused: Callable[..., tuple[int, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    code, line = refused("run", FSDAX)
    assert code == Exit.ENVIRONMENT
    assert "needs root" in line


@pytest.mark.usefixtures("empty_cache")
def test_a_kernel_of_the_lab_without_root(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert cli.main(["bench", "kernel", "memmap"]) == Exit.ENVIRONMENT
    assert "needs root" in capsys.readouterr().err


@pytest.fixture
def as_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lab_run, "need_root", lambda: None)
    monkeypatch.setattr(lab_run, "need_memory", lambda _request: None)


@pytest.mark.usefixtures("as_root")
def test_no_disk_space(
    refused: Callable[..., tuple[int, str]],
    empty_cache: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    usage = shutil.disk_usage("/")._replace(free=100_000_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: usage)
    monkeypatch.setattr(shutil, "which", lambda tool: f"/usr/bin/{tool}")
    code, line = refused("run", FSDAX)
    assert code == Exit.ENVIRONMENT
    assert f"3.0 GB are needed in {empty_cache}, 0.1 GB are free" in line
    assert not list(empty_cache.glob("root*"))


@pytest.mark.usefixtures("as_root", "empty_cache")
def test_no_mmdebstrap(
    refused: Callable[..., tuple[int, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda _tool: None)
    code, line = refused("run", FSDAX)
    assert code == Exit.ENVIRONMENT
    assert line == ("bulkmm: mmdebstrap is not installed: apt-get install mmdebstrap")


def test_no_memory(
    refused: Callable[..., tuple[int, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lab_run, "need_root", lambda: None)
    monkeypatch.setattr(machine, "memory_kib", lambda _field: 1_000_000_000 >> 10)
    code, line = refused("run", FSDAX)
    assert code == Exit.ENVIRONMENT
    assert "6 GB are needed, 1.0 GB are available" in line
    # there all that is plugged is filled with a pattern
    # memory is poisoned when it is plugged, unless the allocator zeroes
    for name, need in (("hotplug-faults", "10 GB"), ("hotplug-kmem-4g", "6 GB")):
        code, line = refused("run", name, "--kernel", "debug")
        assert code == Exit.ENVIRONMENT
        assert f"{need} are needed, 1.0 GB are available" in line


@pytest.mark.vm
def test_no_network(
    refused: Callable[..., tuple[int, str]],
    empty_cache: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mirror = "http://127.0.0.1:9/debian"
    monkeypatch.setenv("BULKMM_DEBIAN_MIRROR", mirror)
    code, line = refused("run", FSDAX)
    assert code == Exit.ENVIRONMENT
    assert f"could not be made from {mirror}" in line
    assert "BULKMM_DEBIAN_MIRROR" in line
    assert [path.name for path in empty_cache.iterdir()] == ["lock"]
