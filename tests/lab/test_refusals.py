# SPDX-License-Identifier: GPL-2.0-only
"""Bad input and a bad machine: one clear line, and the documented code."""

import os
import shutil
from argparse import ArgumentParser
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bench import populate_peers
from bench.populate_peers import Program
from bulkmm import cli
from bulkmm.results import host
from bulkmm.shell.errors import Exit
from lab import choices, paths
from lab.machine import versions
from lab.scenario import SCENARIOS, Scenario

FSDAX = "pmem-fsdax-100g"


# text that each option is given, and text that it refuses
VALUES = {"SIZE": ("2G", "2T"), "N": ("3", "-1"), None: ("", "")}
VALUES |= dict.fromkeys(("NAME", "BACKEND"), ("a", ""))


@pytest.mark.parametrize("declaration", SCENARIOS, ids=[one.name for one in SCENARIOS])
def test_each_option_applies_or_is_refused(
    run_refused: Callable[..., tuple[int, str]], declaration: Scenario
) -> None:
    kernel = next(iter(declaration.needs.kinds), "7.3")
    where = ("run", declaration.name, "--kernel", kernel)
    for option in choices._take(ArgumentParser()):
        flag = choices.FLAGS[option.dest]
        good, bad = VALUES[option.metavar]
        good = next(iter(option.choices)) if option.choices else good
        words = [flag, good] if good else [flag]
        if option.dest not in declaration.takes:
            code, line = run_refused(*where, *words)
            assert line == f"bulkmm: {flag} does not apply to {declaration.name}"
            assert code == Exit.USAGE
        elif isinstance(option.type, partial):
            code, line = run_refused(*where, flag, bad)
            assert f"{flag}: {bad}: give {option.type.args[1]} " in line
            assert code == Exit.USAGE


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("pmem-fsdax-100g --arm streaming", "unknown arm streaming"),
        ("thp-2m --arm pte", "unknown arm pte"),
        ("vmap-check --arm auto", "unknown arm auto"),
        ("pmem-fsdax-100g --arm absent --workers 2", "--workers need --arm on"),
        ("pmem-devdax-100g --arm off --backend movnti", "--workers need --arm on"),
    ],
)
def test_an_arm_that_does_not_fit(
    run_refused: Callable[..., tuple[int, str]], words: str, message: str
) -> None:
    code, line = run_refused("run", *words.split())
    assert code == Exit.USAGE
    assert message in line


def test_result_file_is_checked_before_the_run(
    run_refused: Callable[..., tuple[int, str]], tmp_path: Path
) -> None:
    code, line = run_refused("run", FSDAX, "-o", str(tmp_path / "no" / "file"))
    assert code == Exit.ENVIRONMENT
    assert "cannot be written" in line


@pytest.mark.usefixtures("empty_cache")
def test_a_kernel_of_the_lab_without_root(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert cli.main(["bench", "kernel", "memmap"]) == Exit.ENVIRONMENT
    assert "needs root" in capsys.readouterr().err


@pytest.mark.parametrize("words", ["kernel memmap", "history 7.3", "populate"])
def test_without_a_checkout(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: str
) -> None:
    """What needs the lab says so; what can do without its QEMU does."""
    nowhere = paths.VERSIONS / "nowhere"
    monkeypatch.setattr(paths, "VERSIONS", nowhere)
    monkeypatch.setattr(versions, "VERSIONS", nowhere)
    if words == "populate":
        qemu = shutil.which("qemu-system-x86_64")
        assert populate_peers.find_qemu() == (Program([qemu]) if qemu else None)
        return
    assert cli.main(["bench", *words.split()]) == Exit.ENVIRONMENT
    stderr = capsys.readouterr().err
    assert stderr == f"bulkmm: the lab runs from a source checkout: no {nowhere}\n"


SHORT = shutil.disk_usage("/")._replace(free=100_000_000)
LITTLE = (host, "memory_kib", lambda _field: 1_000_000_000 >> 10)


@pytest.mark.parametrize(
    ("words", "lacks", "message"),
    [
        (FSDAX, (os, "geteuid", lambda: 1000), "needs root"),
        (FSDAX, LITTLE, "6 GB are needed, 1.0 GB are available"),
        # memory is poisoned when it is plugged, unless the allocator zeroes
        ("hotplug-faults --kernel debug", LITTLE, "10 GB are needed, 1.0 GB are avail"),
        ("hotplug-kmem-4g --kernel debug", LITTLE, "6 GB are needed, 1.0 GB are avail"),
        (
            "hmm-private-64g --kernel 7.3",
            LITTLE,
            "18 GB are needed, 1.0 GB are available",
        ),
        (FSDAX, (shutil, "which", lambda _tool: None), ": apt-get install mmdebstrap"),
        (
            FSDAX,
            (shutil, "disk_usage", lambda _path: SHORT),
            "3.0 GB are needed in {}, 0.1 GB are free",
        ),
    ],
)
def test_a_machine_that_lacks_something(
    run_refused: Callable[..., tuple[int, str]],
    empty_cache: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    words: str,
    lacks: tuple[Any, str, Any],
    message: str,
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(host, "memory_kib", lambda _field: 64 << 20)
    monkeypatch.setattr(shutil, "which", lambda tool: f"/usr/bin/{tool}")
    monkeypatch.setattr(*lacks)
    code, line = run_refused("run", *words.split())
    assert code == Exit.ENVIRONMENT
    assert message.format(empty_cache) in line
    assert not list(empty_cache.glob("root*"))


@pytest.mark.parametrize("name", ["populate-guest", "pmem-faults"])
def test_cpus_where_memory_nodes_have_them(
    run_refused: Callable[..., tuple[int, str]], name: str
) -> None:
    code, line = run_refused("run", name, "--cpus", "8")
    assert code == Exit.USAGE
    assert "--cpus does not apply" in line


@pytest.mark.vm
def test_no_network(
    run_refused: Callable[..., tuple[int, str]],
    empty_cache: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mirror = "http://127.0.0.1:9/debian"
    monkeypatch.setenv("BULKMM_DEBIAN_MIRROR", mirror)
    code, line = run_refused("run", FSDAX)
    assert code == Exit.ENVIRONMENT
    assert f"could not be made from {mirror}" in line
    assert "BULKMM_DEBIAN_MIRROR" in line
    assert [path.name for path in empty_cache.iterdir()] == ["lock"]
