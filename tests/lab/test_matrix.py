# SPDX-License-Identifier: GPL-2.0-only
"""The support matrix: what it runs, and what it says of a run."""

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from judgelib import Reports, all_is_seen
from lablib import whole

from bulkmm import cli
from bulkmm.results.model import Check, Document
from bulkmm.shell.errors import Exit, UsageError
from lab import run, scenario
from lab.commands import matrix
from lab.commands.run import parse_request
from lab.machine import arch as archs
from lab.machine import cached, kernel_kinds, kernels, versions
from lab.machine import root as roots
from lab.machine.kernels import Kernel
from lab.machine.root import DebianRoot
from lab.paths import PROJECT

CELL = matrix.Cell("memmap", "x86_64", "6.12", "pmem-fsdax-100g", ("--size", "2G"))
JUDGES = (
    *("lab/state.py", "lab/machine/klog.py", "lab/scenario/vmap.py"),
    *("bulkmm/control/module.py", "bulkmm/results/stats.py"),
)


def document(*, ok: bool = True) -> Document:
    result = Document(machine={"accelerator": "TCG"})
    result.checks = [Check("a", ok, ""), Check("b", ok=True, detail="")]
    return result


def test_every_scenario_runs_on_the_debug_kernel() -> None:
    cells = matrix.list_debug_cells()

    assert {cell.kernel for cell in cells} == set(kernel_kinds.NAMES)
    choices = {
        cell: kernels.find_kernel(cell.kernel, archs.find_arch(cell.arch))
        for cell in cells
    }
    assert all(
        scenario.find_scenario(cell.scenario).runs_on(choices[cell]) for cell in cells
    )
    assert len({cell.name for cell in cells}) == len(cells)
    covered = {cell.scenario for cell in cells if cell.kernel == "debug"}
    names = {
        one.name
        for one in scenario.SCENARIOS
        if one.runs_on(kernels.find_kernel("debug"))
    }
    # what they test is the command, beside what others have there
    command = {"pool-grow", "prezero-days"}
    assert names - covered == {"ndctl-odd", "stress"} | command


@pytest.mark.parametrize("judge", JUDGES)
def test_a_changed_judge_makes_another_run(
    judge: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """--resume keeps no verdict of a judge that was changed since."""
    for room in ("lab", "bulkmm"):
        shutil.copytree(PROJECT / room, tmp_path / room)
    monkeypatch.setattr(run, "PROJECT", tmp_path)
    kernel = Kernel(DebianRoot(Path("/cache/debian")), "7.3.4")
    ready = run.Prepared(kernel, Path("/cache/debian/base-1/base"), [], [], None)
    before = run.identify_run(ready)
    with (tmp_path / judge).open("a") as file:
        file.write("# changed\n")
    assert run.identify_run(ready) != before


@pytest.mark.parametrize("series", archs.X86_64.tested)
def test_each_path_has_a_quick_run_on_each_series(series: str) -> None:
    quick = matrix.list_cells([archs.X86_64], [series], quick=True)
    paths = {"memmap", "clear", "copy", "prezero", "vmap", "hotplug"}
    assert {cell.path for cell in quick} == paths - (
        {"prezero"} if series == "6.1" else set()
    )


def test_every_cell_is_what_lab_run_takes() -> None:
    cells = [*matrix.list_cells(), *matrix.list_cells(quick=True)]
    assert {cell.path for cell in cells} >= {"memmap", "clear", "vmap", "hotplug"}
    for cell in [*cells, *matrix.list_debug_cells()]:
        run.check_request(parse_request(cell.words))
    assert len({cell.name for cell in matrix.list_cells()}) == len(matrix.list_cells())


@pytest.mark.parametrize("part", ["base", "module", "over", "disk"])
def test_a_run_is_of_all_that_it_is_made_from(part: str) -> None:
    def prepared(changed: str = "") -> run.Prepared:
        lab = DebianRoot(Path("/cache/debian"))
        names = ("base", "module", "over", "disk")
        files = {n: lab.path / f"{n}-{2 if n == changed else 1}" / n for n in names}
        return run.Prepared(
            Kernel(lab, "7.3.4"),
            files["base"],
            [files["module"]],
            [files["over"]],
            files["disk"],
        )

    assert run.identify_run(prepared()) == run.identify_run(prepared())
    assert run.identify_run(prepared()) != run.identify_run(prepared(part))


@pytest.mark.parametrize(
    ("key", "ok", "runs"), [("same", True, 0), ("same", False, 1), ("other", True, 1)]
)
def test_only_what_passed_and_is_of_the_same_is_kept(
    key: str,
    ok: bool,  # noqa: FBT001
    runs: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    requests = []

    def booted(request: run.Request) -> Document:
        requests.append(request)
        return document()

    monkeypatch.setattr(run, "identify_request", lambda _request: "same")
    monkeypatch.setattr(run, "run_scenario", booted)
    earlier = document(ok=ok)
    earlier.run["key"] = key
    earlier.write(tmp_path / f"{CELL.name}.json")
    assert matrix._run_cell(CELL, tmp_path, resume=True).ok
    assert len(requests) == runs
    matrix._run_cell(CELL, tmp_path, resume=False)
    assert len(requests) == runs + 1
    (tmp_path / f"{CELL.name}.json").write_text('{"schema_version": 7}')
    assert matrix._run_cell(CELL, tmp_path, resume=True).ok
    assert len(requests) == runs + 2


def test_newest_is_newer_and_a_series_that_is_lost_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    releases = {"6.1": "6.1.0-9-cloud-amd64", "7.3": "7.3.99+deb14-cloud-amd64"}

    def newest(_root: DebianRoot, name: str, _arch: archs.Arch) -> str:
        if name not in releases:
            raise UsageError(f"unknown kernel {name}")
        return releases[name]

    monkeypatch.setenv("BULKMM_CACHE", str(tmp_path))
    monkeypatch.setattr(roots, "ensure_root", lambda *_: DebianRoot(tmp_path))
    monkeypatch.setattr(kernels, "update_index", lambda *_: None)
    monkeypatch.setattr(kernels, "find_newest", newest)
    cells = matrix._newer([replace(CELL, kernel=name) for name in archs.X86_64.series])
    assert [cell.kernel for cell in cells] == [releases["7.3"]]


def test_a_run_that_cannot_be_does_not_end_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what was run stands in the page, whatever comes after."""
    page, requests = tmp_path / "page.md", []
    begin, end = "By hand.\n<!-- generated: begin -->\n", "<!-- generated: end -->\n"
    page.write_text(f"{begin}old\n{end}")

    def booted(request: run.Request) -> Document:
        requests.append(request)
        if len(requests) == 1:
            raise OSError(28, "No space left on device", "/a")
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "run_scenario", booted)
    words = ["lab", "matrix", "--quick", "--arch", "x86_64", "-o", str(page)]
    with monkeypatch.context() as nobody:
        nobody.setattr(os, "geteuid", lambda: 1)
        assert cli.main(words) == Exit.ENVIRONMENT
    assert "old" in page.read_text()
    monkeypatch.setattr(cached, "need_root", lambda: None)
    assert cli.main(words) == Exit.INTERRUPTED
    assert len(requests) == 2
    text = page.read_text()
    assert text.startswith(begin)
    assert text.endswith(end)
    assert "FAILED: [Errno 28] No space left on device" in text
    assert "old" not in text


# of the quick matrix, what every push shows; other tests boot these kernels, too
PUSH = (
    "pmem-fsdax-100g-6.1-x86_64",
    "pmem-fsdax-100g-7.3-arm64",
    "vmap-check-6.1-",
    "vmap-check-7.3-",
    "hotplug-kmem-4g-6.1-",
    "hotplug-kmem-4g-7.3",
)


# that for machines, whose ext4 needs modules that the one for clouds has built in
MACHINES = versions.find_release("6.12", archs.X86_64).replace("cloud-", "")


@pytest.mark.vm
@pytest.mark.parametrize(
    "cell",
    [
        pytest.param(
            cell, marks=() if cell.name.startswith(PUSH) else pytest.mark.release
        )
        for cell in (
            *matrix.list_cells(quick=True),
            *matrix.list_cells([archs.X86_64], [MACHINES], quick=True)[:1],
        )
    ],
    ids=lambda cell: cell.name,
)
def test_a_cell(cell: matrix.Cell, tmp_path: Path, reports: Reports) -> None:
    line = matrix._run_cell(cell, tmp_path, resume=False)
    assert line.ok, line.text
    assert line.text.startswith("passed ")
    result = json.loads((tmp_path / f"{cell.name}.json").read_text())
    whole(result, rounds=3)
    ((work, outcome),) = reports
    all_is_seen(" ".join(cell.words), work, outcome)
