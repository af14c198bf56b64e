# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm lab list``: the scenarios that fit, and no other."""

import json

import pytest
from commandlib import check_schema

from bulkmm import cli
from bulkmm.shell.errors import Exit, UsageError
from lab import choices, run, scenario
from lab.commands.run import parse_request
from lab.machine import arch, kernel_kinds, kernels
from lab.scenario import SCENARIOS


def list_names(capsys: pytest.CaptureFixture[str], *words: str) -> set[str]:
    """Return the names, which text and JSON must agree on."""
    assert cli.main(["lab", "list", *words]) == Exit.OK
    body, _, _ = capsys.readouterr().out.partition("\n\n")
    short = [line.split()[0] for line in body.splitlines()]
    assert cli.main(["lab", "list", "--full", *words]) == Exit.OK
    text = capsys.readouterr().out
    assert cli.main(["lab", "list", *words, "--json"]) == Exit.OK
    document = json.loads(capsys.readouterr().out)
    check_schema(document)
    names = {one["name"] for one in document["scenarios"]}
    body, _, ending = text.partition("\n\n")
    assert names == {line for line in body.splitlines() if line[:1].strip()}
    for machine in arch.ARCHES:
        series = document["kernels"][machine.name]
        assert series == [*machine.tested, *kernel_kinds.list_names(machine)]
        line = f"--arch {machine.name} --kernel {', '.join(series)}"
        assert line in " ".join(ending.split()) or not names
        assert not any(kernels.find_problem(name, machine) for name in series)
    assert sorted(names) == sorted(short)
    return names


def test_all(capsys: pytest.CaptureFixture[str]) -> None:
    by_family = [list_names(capsys, "--family", family) for family in choices.FAMILIES]
    assert all(by_family)
    assert (
        list_names(capsys) == set().union(*by_family) == {one.name for one in SCENARIOS}
    )


def test_a_kernel_newer_than_what_a_scenario_needs() -> None:
    name = "upstream-hmm"
    for kernel in ("7.3", "debug", "7.4", "7.10.1+deb13-cloud-amd64", "8.0-rc1"):
        assert scenario.find_scenario(name).runs_on(kernels.read_name(kernel))
    for kernel in ("6.1", "6.12", "7.2.12+deb13-cloud-amd64"):
        assert not scenario.find_scenario(name).runs_on(kernels.read_name(kernel))


def test_nothing_fits(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["lab", "list", "no-such-scenario"]) == Exit.USAGE
    assert capsys.readouterr() == (
        "",
        "bulkmm: nothing fits: bulkmm lab list shows all of them\n",
    )


@pytest.mark.parametrize(
    ("words", "has", "lacks"),
    [
        (("--family", "clear"), "thp-2m", "vmap-check"),
        (("--family", "hmm"), "upstream-hmm", "pmem-fsdax-100g"),
        (("real-time",), "clear-latency", "clear-cases"),
        (("REAL-time", "--family", "clear"), "clear-latency", "thp-2m"),
        (("--arch", "arm64", "--kernel", "6.12"), None, "thp-2m"),
    ],
)
def test_filters(
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    has: str | None,
    lacks: str | None,
) -> None:
    names = list_names(capsys, *words)
    assert has is None or has in names
    assert lacks not in names


def test_a_kernel_that_nobody_has(capsys: pytest.CaptureFixture[str]) -> None:
    for words in ((), ("--arch", "arm64")):
        assert cli.main(["lab", "list", "--kernel", "nonsense", *words]) == Exit.USAGE
        assert "unknown kernel nonsense: give" in capsys.readouterr().err


def test_what_is_listed_is_what_lab_run_takes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """On every kernel of every architecture, and nothing else is."""
    for on in arch.ARCHES:
        for kernel in (*on.series, *kernel_kinds.list_names(on)):
            where = ("--kernel", kernel, "--arch", on.name)
            names = list_names(capsys, *where)
            for declaration in SCENARIOS:
                request = parse_request([declaration.name, *where])
                if declaration.name in names:
                    run.check_request(request)
                else:
                    with pytest.raises(UsageError):
                        run.check_request(request)
