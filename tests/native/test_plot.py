# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm plot``: the figure shows the medians it was given, and says so."""

import errno
import json
import os
import re
import subprocess
import sys
from copy import deepcopy
from pathlib import Path
from xml.etree import ElementTree as ET

import eventlib
import pytest

from bulkmm import cli, grid, panels, plot, stats
from bulkmm.bench import subjects
from bulkmm.control import text
from bulkmm.results import Document, Ratio

SVG = "{http://www.w3.org/2000/svg}"
SIZES = [4 << 10, 2 << 20, 32 << 20]
USES = ("", "-again", "-then-read", "-then-write", "-then-random")
VARIANTS = ("glibc", "plain", "libpmem2", "bulkmm-streaming", "limit:rep")


@pytest.fixture(scope="module")
def measured() -> Document:
    names = [f"clear-{size}{use}" for size in ("4k", "2m", "32m") for use in USES]
    return eventlib.document(
        subjects.CLEAR,
        {
            scenario: {
                variant: eventlib.steady(100 + 30 * i + 10 * k, 3)
                for k, variant in enumerate(VARIANTS)
            }
            for i, scenario in enumerate(names)
        },
    )


@pytest.fixture(scope="module")
def drawn(measured: Document) -> ET.Element:
    return ET.fromstring(plot.svg([measured]))  # noqa: S314 - our own


def texts(root: ET.Element) -> list[str]:
    """Return what a reader sees: text kept as text, without line breaks."""
    return ["".join(element.itertext()).strip() for element in root.iter(f"{SVG}text")]


def copied() -> Document:
    """Return a document of made-up copies, in the names of the bench."""
    results = [
        stats.summarise(
            f"copy-{size}{use}", variant, "ns", 1 << 20, [ns, ns + 1, ns + 2]
        )
        for size, ns in (("1g", 300), ("64k", 100), ("1m", 200))
        for use in ("", "-again")
        for variant in ("glibc", "bulkmm")
    ]
    machine = {"accelerator": "native", "kernel": "6.18", "cpu": {"model": "A & B"}}
    return Document(machine=machine, results=results)


def emulated() -> Document:
    arms = [
        stats.summarise("pmem-100g", variant, "instructions", 64, work)
        for variant, work in (("off", [3e6, 4e6]), ("on", [1e6, 2e6]))
    ]
    machine = {"accelerator": "TCG", "kernel": "6.18", "cpu": {"model": "A"}}
    return Document(machine=machine, results=arms, ratios=[stats.ratio(*arms)])


def test_what_has_no_sizes_is_drawn_by_its_ratios() -> None:
    found = emulated()
    (panel,) = panels.panels([found], ["a"])
    assert panel.ratios == found.ratios
    seen = texts(ET.fromstring(plot.svg([found], ["a"])))  # noqa: S314 - our own
    title = "a: how many times less work than the module off: emulation (TCG)"
    assert {title, "pmem-100g: on", "bulkmm: ratios; emulation (TCG)"} <= {*seen}
    assert any("no hardware figures" in text for text in seen)
    other = copied()
    other.machine["accelerator"] = "TCG"
    assert "GB/s, emulated" in texts(ET.fromstring(plot.svg([other])))  # noqa: S314


@pytest.mark.parametrize("most", [1.01, 3, 40, 5000])
def test_an_axis_of_ratios_has_a_few_ticks(most: float) -> None:
    ratios = [
        Ratio(f"s{i}", "off", "on", value, (value, value), significant=True, n=9)
        for i, value in enumerate((0.99, most))
    ]
    found = [panels.Panel("a", emulated=False, ratios=ratios)]
    seen = texts(ET.fromstring(plot.render(found, [])))  # noqa: S314 - our own
    ticks = [text for text in seen if text.endswith("\N{MULTIPLICATION SIGN}")]
    assert 2 <= len({*ticks}) <= 20


def test_points_are_the_medians_of_the_document(measured: Document) -> None:
    wanted = {
        (r.variant, r.scenario): (r.bytes / r.median, r.bytes / r.ci95[1])
        for r in grid.shown(measured)
    }
    suffixes = {"clear": "", "clear again, hot": "-again",
                "clear, then read in order": "-then-read",
                "clear, then write in order": "-then-write",
                "clear, then read at random": "-then-random"}  # fmt: skip
    found = panels.panels([measured])
    assert [panel.title for panel in found] == list(suffixes)
    seen = {}
    for panel in found:
        for arm in panel.arms:
            assert [point.size for point in arm.points] == SIZES
            for point, size in zip(arm.points, ("4k", "2m", "32m"), strict=True):
                name = f"clear-{size}{suffixes[panel.title]}"
                seen[arm.variant, name] = point.rate, point.low
                assert point.low <= point.rate <= point.high
    assert seen == wanted


def test_legend_names_every_variant(measured: Document, drawn: ET.Element) -> None:
    (legend,) = [g for g in drawn.iter(f"{SVG}g") if g.get("id") == "legend_1"]
    assert {r.variant for r in grid.shown(measured)} < {*texts(legend)}


def test_looks_differ_without_colour(measured: Document) -> None:
    variants = {r.variant for r in grid.shown(measured)}
    looks = [plot._look(i, 0) for i in range(len(variants))]
    assert len({look["marker"] for look in looks}) == len(variants)
    every = [plot._look(i, source) for i in range(70) for source in range(8)]
    assert len({tuple(look.values()) for look in every}) == 70 * 8


def test_says_what_it_was_measured_on(measured: Document, drawn: ET.Element) -> None:
    seen = " ".join(texts(drawn))
    assert measured.machine["cpu"]["model"] in seen
    assert f"kernel {measured.machine['kernel']}; n = 3 processes." in seen
    assert {"4 KiB", "2 MiB", "32 MiB", "GB/s", "clear, then read at random"} <= {
        *texts(drawn)
    }
    assert "emulat" not in seen


def test_has_a_title_and_a_description(drawn: ET.Element) -> None:
    assert drawn.get("role") == "img"
    assert drawn.findtext(f"{SVG}title") == "bulkmm: throughput by size"
    assert drawn[0].tag == f"{SVG}title"  # where programs look for it
    description = drawn.findtext(f"{SVG}desc", "")
    assert "clear, then read at random, GB/s by size: " in description
    assert "bulkmm-streaming" in description


def test_background_is_opaque(drawn: ET.Element) -> None:
    first = next(drawn.iter(f"{SVG}path"))
    assert "fill: #ffffff" in first.get("style", "")


def test_same_results_give_the_same_bytes(measured: Document, tmp_path: Path) -> None:
    kept, file = tmp_path / "r.json", tmp_path / "other.svg"
    measured.write(kept)
    code = "import sys; from bulkmm import cli; sys.exit(cli.main())"
    rc = tmp_path / "matplotlibrc"  # a user's own settings must not matter
    rc.write_text("axes.linewidth: 9\naxes.facecolor: red\n")
    subprocess.run(
        [sys.executable, "-c", code, "plot", kept, "-o", file],
        check=True,
        env={**os.environ, "PYTHONHASHSEED": "7", "MATPLOTLIBRC": str(rc)},
    )
    text = file.read_text()
    assert text == plot.svg([measured])
    assert "<dc:date>" not in text
    assert not re.search(r"20[2-9]\d-\d\d-\d\d", text)


def test_copies_cold_and_again() -> None:
    cold, again = panels.panels([copied()])
    assert (cold.title, again.title) == ("copy, cold", "copy again, hot")
    for panel in (cold, again):
        assert [arm.label for arm in panel.arms] == ["glibc", "bulkmm"]
        for arm in panel.arms:  # sorted by size, whatever the order of results
            assert [point.size for point in arm.points] == [64 << 10, 1 << 20, 1 << 30]
            rates = [point.rate for point in arm.points]
            assert rates == [(1 << 20) / ns for ns in (101, 201, 301)]
    assert "A & B" in " ".join(texts(ET.fromstring(plot.svg([copied()]))))  # noqa: S314


def test_native_and_emulated_results_share_no_panel() -> None:
    other = copied()
    other.machine["accelerator"] = "TCG"
    titles = [panel.title for panel in panels.panels([copied(), other])]
    assert len(titles) == len({*titles}) == 4


def test_the_same_arms_of_two_files_are_told_apart() -> None:
    slower = deepcopy(copied())
    (panel, _) = panels.panels([copied(), slower], ["old", "new"])
    labels = ["glibc (old)", "bulkmm (old)", "glibc (new)", "bulkmm (new)"]
    assert [arm.label for arm in panel.arms] == labels
    assert all(len(arm.points) == 3 for arm in panel.arms)
    seen = texts(ET.fromstring(plot.svg([copied(), slower], ["old", "new"])))  # noqa: S314
    assert {*labels} <= {*seen}


def test_sizes_are_spoken_of_in_binary_units() -> None:
    named = [text.size(1 << power) for power in (9, 12, 16, 21, 30, 41)]
    assert named == ["512 B", "4 KiB", "64 KiB", "2 MiB", "1 GiB", "2 TiB"]


def test_odd_names_are_drawn_as_they_are() -> None:
    odd = emulated()
    odd.ratios[0].scenario = odd.results[0].scenario = "<a> & $b$ _c"
    assert "<a> & $b$ _c: on" in texts(ET.fromstring(plot.svg([odd])))  # noqa: S314


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    code = cli.main(["plot", *words])
    err = capsys.readouterr().err
    assert err.startswith("bulkmm: ")
    assert err.count("\n") == 1
    return code, err


def test_errors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, bad, empty = (str(tmp_path / f"{n}.json") for n in ("good", "bad", "empty"))
    copied().write(tmp_path / "good.json")
    Document(machine=copied().machine).write(tmp_path / "empty.json")
    (tmp_path / "bad.json").write_text(json.dumps({"schema_version": 1}))
    out = str(tmp_path / "p.svg")
    code, err = refused(capsys, good, "-o", str(tmp_path / "p.png"))
    assert (code, "must be named .svg" in err) == (2, True)
    code, err = refused(capsys, good, "-o", str(tmp_path / "none" / "p.svg"))
    assert (code, "no such directory" in err) == (3, True)
    code, err = refused(capsys, good, good, "-o", out)
    assert (code, "given twice" in err) == (2, True)
    code, err = refused(capsys, bad, "-o", out)
    assert (code, "bad.json: not a bulkmm result: Object missing required" in err) == (
        3,
        True,
    )
    code, err = refused(capsys, empty, "-o", out)
    assert (code, "nothing to draw" in err) == (3, True)
    assert not [file for file in tmp_path.iterdir() if "svg" in file.name]


def test_a_figure_that_cannot_be_written_leaves_nothing(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    copied().write(tmp_path / "r.json")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "replace", full)
    words = str(tmp_path / "r.json"), "-o", str(tmp_path / "p.svg")
    code, err = refused(capsys, *words)
    assert (code, "p.svg cannot be written: No space left" in err) == (3, True)
    assert [file.name for file in tmp_path.iterdir()] == ["r.json"]
