# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm worth`` without a kernel to ask: refusals, ratios, verdicts."""

import json
import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import made
import pytest
from fakekernel import RELEASE, Fake, load_module, make_pool

from bench.kernel import find, measure, ratios
from bulkmm import cli
from bulkmm.control import tracefs
from bulkmm.control.module import list_serving
from bulkmm.control.system_files import SystemFiles
from bulkmm.shell.errors import BulkmmError, Exit
from bulkmm.worth import gain, report, run, uncounted
from bulkmm.worth.functions import Function, find_functions
from bulkmm.worth.probes import Counts, Sum
from bulkmm.worth.report import Worth
from lab.machine.kernels import SERIES

ZEN4 = "AuthenticAMD-25-17-1"
CLEAR = Function("clear", "folio_zero_user")
VMAP = Function("vmap", "vmap_small_pages_range_noflush")


def make_figures(touched: float, order8: float) -> dict[str, dict[str, Any]]:
    """Return figures as they are kept: 100 GiB of devices in 0.25 s, say."""
    gib_per_s = {"gb_per_s": (1 << 30) / 1e9}
    return {
        "memmap": {"ratios": [4.0], "gb_per_s": (100 << 24) / 0.25e9},
        "clear": {"ratios": [touched, 2.5], **gib_per_s},
        gain.LARGE: {"ratios": [5.0, order8], **gib_per_s},
    }


def make_result() -> Worth:
    """Return a result in which nothing was counted."""
    return Worth(
        kernel="6.12.1",
        cpu=ZEN4,
        module=False,
        command=[],
        seconds=1.0,
        ratios_from="",
        functions=[],
        not_counted=[],
        before=[],
        cost_seconds=0.1,
        compared=[],
        verdict="",
    )


@pytest.fixture
def ratios_file(tmp_path: Path) -> Path:
    """Return figures of two CPUs."""
    file = tmp_path / "ratios.json"
    by_series = {"6.12": make_figures(1.6, 20.0), "7.3": make_figures(1.0, 20.0)}
    file.write_text(
        json.dumps({ZEN4: by_series, "other": {"6.12": make_figures(1.2, 9.0)}})
    )
    return file


@pytest.fixture
def root(kernel: Fake) -> SystemFiles:
    """Return a machine on which worth can count."""
    for name in ("kprobe_events", "synthetic_events"):
        kernel.write(f"/sys/kernel/tracing/{name}", "")
    (kernel.root / "proc/self/ns").mkdir(parents=True)
    (kernel.root / "proc/self/ns/pid").symlink_to(tracefs.OUTSIDE)
    return SystemFiles(kernel.root)


def test_a_machine_that_can_count(root: SystemFiles) -> None:
    assert run._require_tracefs(root) == "/sys/kernel/tracing"
    available, missing = find_functions(root, "x86_64")
    assert {CLEAR, VMAP, Function("memmap", "memmap_init_zone_device")} < {*available}
    assert {one.path for one in available} == {
        "memmap",
        "clear",
        "copy",
        "vmap",
        "hotplug",
    }
    lacks = "do_huge_pmd_anonymous_page: the kernel has no such function"
    assert lacks in "".join(missing)


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("/sys/kernel/tracing/synthetic_events", None, "CONFIG_HIST_TRIGGERS"),
        (f"/boot/config-{RELEASE}", "CONFIG_KPROBE_EVENTS=y", "CONFIG_HIST_TRIGGERS"),
        ("/proc/sys/kernel/ftrace_enabled", "0", "sysctl kernel.ftrace_enabled=1"),
    ],
)
def test_a_machine_that_cannot(
    kernel: Fake, root: SystemFiles, file: str, text: str | None, *, message: str
) -> None:
    if text is None:
        kernel.remove(file)
    else:
        kernel.write(file, text)
    with pytest.raises(BulkmmError, match=message):
        run._require_tracefs(root)


def test_what_can_be_said_without_counting(kernel: Fake, root: SystemFiles) -> None:
    make_pool(kernel, {0: (10, 6, 0)})
    lines = uncounted.list_uncounted(root)
    text = "\n".join(lines)
    assert "for this machine: load (there is work for it)" in text
    assert "clear: a pool of 20 MiB in 2M pages" in text
    assert "before: 12 MiB of free huge pages of 2M are zeroed at their first" in text
    (gains,) = (line for line in lines if "a call is faster by: " in line)
    assert {word for word in gains.split() if word.isalpha()} >= {"clear", "vmap"}


def test_nothing_runs_uncounted(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """As with perf and strace; the error names what was not done."""
    monkeypatch.setattr(run.os, "geteuid", lambda: 1)
    ran_file, file = tmp_path / "ran", tmp_path / "before.json"
    words = ["worth", "-o", str(file), "--", "touch", str(ran_file)]
    assert cli.main(words) == Exit.ENVIRONMENT
    output, error = capfd.readouterr()
    assert "What can be said without" in output
    undone = f"run it as root; touch was not run and {file} was not written\n"
    assert error.endswith(undone)
    assert not [*tmp_path.iterdir()]
    cli.main(["worth", "--for", "1s"])
    assert capfd.readouterr().err.endswith("run it as root\n")


def test_what_fails_later_does_not_say_that_nothing_ran(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    class Unreadable:
        def read(self) -> Counts:
            raise OSError(5, "Input/output error")

    monkeypatch.setattr(run, "_require_tracefs", lambda _: "/")
    monkeypatch.setattr(run, "_select", lambda *_: ([], []))
    monkeypatch.setattr(
        run.probes, "install_probes", lambda *_: nullcontext(Unreadable())
    )
    file = tmp_path / "ran"
    assert cli.main(["worth", "--", "touch", str(file)]) == Exit.ENVIRONMENT
    assert file.exists()
    output, error = capfd.readouterr()
    assert (output, "cannot be read" in error, "not run" in error) == ("", True, False)


def test_this_cpu_is_rated_by_itself_and_another_by_the_least(
    ratios_file: Path,
) -> None:
    this_cpu = gain.read_gains(ZEN4, "7.3.9-amd64", ratios_file)
    assert this_cpu.source == "this CPU's results on 7.3"
    assert gain.read_gains(ZEN4, "6.1.0", ratios_file).source.endswith("6.12")
    other_cpu = gain.read_gains("GenuineIntel-6-1-1", "6.12.1", ratios_file)
    assert "2 other CPUs" in other_cpu.source
    assert other_cpu.gains[gain.LARGE].ratios == [5.0, 9.0]


def test_figures_are_kept_of_every_path() -> None:
    ratios = json.loads(gain.RATIOS_FILE.read_text())
    assert {*gain.SCENARIOS} <= {*ratios[ZEN4][SERIES[0]]}


def test_untimed_calls_are_scaled_and_single_pages_left_out(ratios_file: Path) -> None:
    ratios = gain.read_gains(ZEN4, "6.12.1", ratios_file)
    sums = [Sum(VMAP.name, 12, 50, 5_000_000), Sum(VMAP.name, 27, 30, 30_000_000)]
    row = report.make_row(VMAP, Counts({VMAP.name: 160}, sums), ratios, 2.0)
    assert (row.calls, row.timed, row.too_small) == (160, 80, 50)
    assert row.seconds == pytest.approx(0.06)
    assert row.cpu_share == pytest.approx(0.03)
    assert row.saved_seconds == pytest.approx((0.048, 0.057))
    assert report._time_call(row) == pytest.approx(1_000_000)


@pytest.mark.parametrize(
    ("ms", "release", "prefix"),
    [
        (3200, "6.12.1", "load it: in 60.0 s it would save clear 1.20 s to 1.92 s"),
        (3200, "7.3.1", "try it: it may save clear 0 ns to 1.92 s"),
        (3200, None, "try it: it may save clear an unknown part of 3.20 s"),
        (100, "6.12.1", "not needed for what ran in 60.0 s"),
    ],
)
def test_the_verdict(
    ms: int, release: str | None, prefix: str, ratios_file: Path
) -> None:
    counts = Counts({CLEAR.name: 99}, [Sum(CLEAR.name, 40, 99, ms * 1_000_000)])
    ratios = (
        gain.read_gains(ZEN4, release, ratios_file)
        if release
        else gain.Figures("none", {})
    )
    rows = [report.make_row(one, counts, ratios, 60) for one in (CLEAR, VMAP)]
    verdict = report.state_verdict(rows, [], 60)
    assert verdict.startswith(prefix), verdict
    assert verdict.endswith("Nothing called vmap.")


def test_the_verdict_once_the_module_is_loaded() -> None:
    comparison = report.Comparison(
        "clear", CLEAR.name, (1.5, 2.5), before_ns=2000.0, now_ns=1000.0, ratio=2.0
    )
    comparison = replace(comparison, serving=True)
    idle = replace(comparison, function=VMAP.name, now_ns=None, ratio=None)
    off = replace(comparison, function="copy_user_large_folio", serving=False)
    start = "the module is loaded, and on: clear, memmap. "
    short, ratio, silence = (
        report.state_loaded(["clear", "memmap"], rows)
        for rows in ([], [comparison, idle, off], [idle, off])
    )
    assert all(text.startswith(start) for text in (short, ratio, silence))
    assert "before" not in short
    assert ratio.endswith(f"measured against before: {CLEAR.name} 2.00\u00d7.")
    assert silence.endswith("no function of theirs was called both times.")
    assert report.state_loaded([], []).startswith("the module is loaded, and on: no p")
    assert report._format_ratio(comparison) == "2.00\u00d7"
    assert report._format_ratio(off) == "2.00\u00d7 (off)"
    assert report._format_ratio(idle) == "not called"


def test_only_what_is_on_is_the_modules_doing(kernel: Fake, ratios_file: Path) -> None:
    load_module(kernel)
    root = SystemFiles(kernel.root)
    make_pool(kernel, {0: (10, 6, 0)})
    ratios = gain.read_gains(ZEN4, "6.12.1", ratios_file)
    for name in ("clear", "vmap"):
        kernel.write(f"/sys/kernel/bulkmm/{name}/mode", "off [auto]")
    kernel.write("/sys/kernel/bulkmm/clear/hook", f"0 {CLEAR.name}: attached")
    kernel.write("/sys/kernel/bulkmm/vmap/hook", f"-16 {VMAP.name}: a live patch")
    on = list_serving(root)
    assert ("clear" in on, "vmap" in on) == (True, False)
    times = [Sum(one.name, 27, 9, 9_000_000) for one in (CLEAR, VMAP)]
    counts = Counts({CLEAR.name: 9, VMAP.name: 9}, times)
    rows = [report.make_row(one, counts, ratios, 60) for one in (CLEAR, VMAP)]
    saved = [report.without_saving(row, on).saved_seconds for row in rows]
    assert (saved[0], saved[1]) == (None, rows[1].saved_seconds)
    assert [one.path for one in gain.estimate_early(root, ratios)] == ["clear"]
    assert gain.estimate_early(root, ratios, on) == []
    earlier = SimpleNamespace(functions=rows)
    comparisons = report.compare_results(earlier, rows, on)  # type: ignore[arg-type]
    assert [one.serving for one in comparisons] == [True, False]
    assert report.compare_results(earlier, rows, [])[0].serving is False  # type: ignore[arg-type]
    elsewhere = replace(rows[0], served=False)  # what no path hooks
    assert not report.compare_results(earlier, [elsewhere], on)[0].serving  # type: ignore[arg-type]


def test_whose_rate_a_time_is_calculated_by(ratios_file: Path) -> None:
    work = gain.Early("clear", "160 MiB are zeroed", 160 << 20, 0.0168, 0.0075)
    for cpu, owner in ((ZEN4, "this CPU's"), ("GenuineIntel-6-1-1", "another CPU's")):
        source = gain.read_gains(cpu, "6.12.1", ratios_file).source
        line = report.describe_early(work, source)
        assert f"about 16.8 ms (calculated by {owner} rate), 7.50 ms less" in line


def test_why_a_row_has_no_ratio(ratios_file: Path) -> None:
    ratios = gain.read_gains(ZEN4, "6.12.1", ratios_file)
    names = ("hotplug", "set_zone_contiguous"), ("copy", "copy_user_large_folio")
    functions = [CLEAR, *(Function(*one) for one in names)]
    rows = [report.make_row(one, Counts({}, []), ratios, 60) for one in functions]
    notes = report.list_notes(replace(make_result(), functions=rows))
    assert [note for note in notes if note.startswith("?")] == [
        f"?: {report.UNRATED['hotplug']}",
        "?: no CPU has a ratio of copy",
    ]


def test_what_no_path_serves_is_no_gain(ratios_file: Path) -> None:
    migrated = replace(CLEAR, name="folio_mc_copy", is_hooked=False)
    counts = Counts({migrated.name: 9}, [Sum(migrated.name, 40, 9, 30_000_000_000)])
    ratios = gain.read_gains(ZEN4, "6.12.1", ratios_file)
    rows = [report.make_row(one, counts, ratios, 60) for one in (CLEAR, migrated)]
    assert (rows[1].seconds, rows[1].ratio, rows[1].saved_seconds) == (30, None, None)
    verdict = "not needed for what ran in 60.0 s. Nothing called clear."
    assert report.state_verdict(rows, [], 60) == verdict


def test_of_a_fault_only_the_clearing_gets_faster(ratios_file: Path) -> None:
    fault = Function("alloc", "do_huge_pmd_anonymous_page")
    counts = Counts({fault.name: 512}, [Sum(fault.name, 40, 256, 9_000_000_000)])
    row = report.make_row(
        fault, counts, gain.read_gains(ZEN4, "6.12.1", ratios_file), 60
    )
    assert row.seconds == pytest.approx(18)
    cleared = 1  # s, of 1 GiB
    assert row.saved_seconds == pytest.approx((cleared * 0.375, cleared * 0.6))
    partial = replace(counts, huge_pages=128)  # so many of the faults
    row = report.make_row(
        fault, partial, gain.read_gains(ZEN4, "6.12.1", ratios_file), 60
    )
    assert row.saved_seconds == pytest.approx((cleared * 0.375 / 4, cleared * 0.6 / 4))


def test_the_least_gain_of_copy_is_its_least_scenario() -> None:
    of = gain.Figures("", {"copy": gain.Gain([1.5, 1.2, 2.0], 1)})
    function = Function("copy", "copy_user_large_folio")
    assert gain.find_span(of, function, 0) == (1.2, 2.0)


def test_what_happened_before(kernel: Fake, ratios_file: Path) -> None:
    zoneinfo = "Node 0, zone   Device\n  pages free     0\n        spanned  26214400\n"
    kernel.write("/proc/zoneinfo", f"{zoneinfo}Node 1, zone    DMA")
    make_pool(kernel, {0: (40, 40, 0)})
    kernel.write("/sys/kernel/bulkmm/prezero/known", "2048 0 8")
    ratios = gain.read_gains(ZEN4, "6.12.1", ratios_file)
    devices, pages = gain.estimate_early(SystemFiles(kernel.root), ratios)
    assert (devices.bytes, pages.bytes) == (100 << 30, 64 << 20)
    assert devices.seconds == pytest.approx(0.25)
    assert pages.seconds == pytest.approx(1 / 16)
    assert devices.saved_seconds == pytest.approx(0.25 * 3 / 4)
    load_module(kernel)  # which has seen them come up
    assert gain.estimate_early(SystemFiles(kernel.root), ratios) == [pages]


def test_only_the_dead_are_swept(tmp_path: Path) -> None:
    instance = tracefs.own_name("worth")
    (tmp_path / "instances" / instance).mkdir(parents=True)
    (tmp_path / "instances" / "bulkmm_watch_1_1").mkdir()
    (tmp_path / "instances" / "theirs").mkdir()
    assert tracefs.remove_leftovers(SystemFiles(tmp_path)) == ["bulkmm_watch_1_1"]
    instances = {one.name for one in (tmp_path / "instances").iterdir()}
    assert instances == {instance, "theirs"}


def test_an_earlier_result_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ratios = gain.read_gains(ZEN4, "6.12.1")
    counts = Counts({CLEAR.name: 8}, [Sum(CLEAR.name, 40, 8, 800_000)])
    row = report.make_row(CLEAR, counts, ratios, 1.0)
    result = replace(make_result(), ratios_from=ratios.source, functions=[row])
    file = tmp_path / "worth.json"
    file.write_text(result.to_json())
    monkeypatch.setitem(sys.modules, "msgspec", None)  # not in every system
    earlier = report.read_result(file)
    monkeypatch.undo()
    (comparison,) = report.compare_results(
        earlier, [replace(row, seconds=row.seconds / 2)], ["clear"]
    )
    assert comparison.ratio == pytest.approx(2)
    again = replace(result, compared=[comparison])
    document = json.loads(again.to_json())
    file.write_text(json.dumps(document))
    assert report.read_result(file) == again
    del document["compared"][0]["serving"]  # by an earlier version
    file.write_text(json.dumps(document))
    assert report.read_result(file).compared == [replace(comparison, serving=False)]
    file.write_text(result.to_json())
    assert "expected" in "\n".join(
        report.format_lines(replace(result, compared=[comparison]))
    )
    page = tmp_path / "page.html"
    assert cli.main(["report", str(file), "-o", str(page)]) == Exit.OK
    assert "worth: what the module would save" in page.read_text()
    assert CLEAR.name in page.read_text()
    document = json.loads(result.to_json())
    document["functions"][0]["later"] = document["later"] = 1
    file.write_text(json.dumps(document))
    assert report.read_result(file) == result
    many = {**document["functions"][0], "calls": "many"}
    for wrong, message in (
        ({"kind": "status"}, 'its "kind" is not "worth"'),
        ({"schema_version": 2}, "schema_version 2"),
        ({"functions": [many]}, "calls 'many'"),
        ({"command": "true"}, "command 'true'"),
    ):
        file.write_text(json.dumps({**document, **wrong}))
        with pytest.raises(BulkmmError, match=f"a result of bulkmm worth: {message}"):
            report.read_result(file)


def test_ratios_that_are_measured_now(monkeypatch: pytest.MonkeyPatch) -> None:
    document, jobs = made.kernel(), []
    monkeypatch.setattr(find, "find_files", lambda *_: nullcontext((Path("a"), None)))
    monkeypatch.setattr(
        measure, "measure_kernel", lambda job, *_: jobs.append(job) or document
    )
    gains = ratios.measure_ratios("7.3").gains
    assert [len(gains[kind].ratios) for kind in ("memmap", "clear")] == [1, 1]
    assert {"pmem-fsdax-16g", "thp-2m"} <= {*jobs[0].only}
    document.checks[0].ok = False
    with pytest.raises(BulkmmError, match="--measure: check failed: every byte"):
        ratios.measure_ratios("7.3")
