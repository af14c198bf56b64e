# SPDX-License-Identifier: GPL-2.0-only
"""Two kernels in one process, and one after the other."""

from dataclasses import replace
from pathlib import Path

import pytest
from nativelib import SIZES, Pair, pair_of, small, wrong

from bench.kernel import measure, process
from bulkmm import cli
from bulkmm.results.model import Document
from bulkmm.shell.errors import Exit
from bulkmm.shell.progress import Progress

pytestmark = pytest.mark.lab

SUBJECTS = tuple(measure.SUBJECTS)


def compare_kernels(pair: Pair, against: Path, **more: object) -> Document:
    """Compare every subject, reduced."""
    job = replace(small(pair, "memmap"), module=None, against=against)
    job = replace(job, **more)
    images = job.kernel, job.module, job.against
    with process.prepare_kernels(*images, "host", Progress()) as ready:
        document, *additions = (
            measure.measure_prepared(
                ready, replace(job, size=SIZES.get(name, 2 << 30)), [name]
            )
            for name in SUBJECTS
        )
    for addition in additions:
        for part in ("results", "ratios", "checks"):
            getattr(document, part).extend(getattr(addition, part))
        document.run["picks"] |= addition.run["picks"]
    return document


def test_a_kernel_with_itself_and_the_module(pair: Pair) -> None:
    document = compare_kernels(pair, pair.kernel, module=pair.module)
    assert not wrong(document)
    variants: dict[str, set[str]] = {}
    for ratio in document.ratios:
        assert ratio.base in ("against", "limit") or ratio.variant != "kernel"
        variants.setdefault(ratio.scenario, set()).add(ratio.variant)
    assert all({"kernel", "against-again"} <= arms for arms in variants.values())
    assert "bulkmm" in variants["pmem-fsdax-3g"] & variants["hotplug-contiguous"]
    # one whose module answers at once, and one where it cannot
    picks = document.run["picks"]
    assert "bulkmm" not in picks.get("hotplug-contiguous", {})
    assert picks["hotplug-contiguous-whole"]["bulkmm"] == "kernel"


def test_two_series(older: Pair) -> None:
    """6.12 leaves other reference counts in the struct pages of devices."""
    document = compare_kernels(pair_of("7.3"), older.kernel)
    differs = {name.split()[2] for name in wrong(document)}
    assert differs
    assert all(name.startswith(("pmem-", "hmm-")) for name in differs)
    assert document.machine["kernel"].startswith("7.3")
    assert document.run["against"].startswith("6.12")


def test_a_broken_word_of_the_kernel_is_found(older: Pair) -> None:
    document = compare_kernels(older, older.kernel, corrupt=True)
    scenarios = {one.scenario for one in document.results}
    broken = {tuple(name.split()[2:]) for name in wrong(document)}
    # a use that writes over the result leaves nothing to compare
    scenarios -= {"thp-2m-then-write"}
    assert broken == {(name, "kernel") for name in scenarios}


def test_history(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The oldest is the base, in whatever order they are named."""
    file = tmp_path / "history.json"
    names = [str(pair_of(series).kernel) for series in ("7.3", "6.12")]
    words = [*names, "--processes", "1", "--rounds", "1", "--markdown", "-o", str(file)]
    assert cli.main(["bench", "history", *words]) == Exit.OK
    rows = [line for line in capsys.readouterr().out.splitlines() if "-amd64 |" in line]
    assert [row[2:6] for row in rows] == ["6.12", "7.3."]
    document = Document.read(file)
    assert {one.base[:4] for one in document.ratios} == {"6.12"}
    assert len(rows[1].split(" | ")) == 1 + len({r.scenario for r in document.results})
