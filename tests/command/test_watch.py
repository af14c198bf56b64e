# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm watch``: rates of what moved between two reads."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from commandlib import Command, check_schema
from fakekernel import Fake
from programs import on_terminal

from bulkmm.control import module, tracefs, watch
from bulkmm.control.system_files import SystemFiles
from bulkmm.shell.errors import Exit

QUICK = ("--interval", "0.05")


def look_once(fake: Fake, name: str) -> module.KernelPath:
    state = module.read_module(SystemFiles(fake.root))
    assert state
    return next(path for path in state.paths if path.name == name)


@pytest.mark.parametrize(
    ("moved", "rates", "small"),
    [
        ({"hits": 14, "bytes": (8 << 20) + 1000, "ns": 2000500}, (5, 500, 50), 10),
        ({"inflight": -1}, (0, 0, None), 10),
        # reloaded: they begin at 0, also those that are larger by now
        ({"hits": 2, "bytes": 6, "ns": 8}, (1, 3, 4), 13.5),
        ({"hits": 6, "bytes": 9 << 20, "ns": 60}, (3, 4.5 * (1 << 20), 10), 13.5),
    ],
)
def test_rates(
    loaded: Fake,
    moved: dict[str, int],
    rates: tuple[float, float, float | None],
    small: float,
) -> None:
    before = look_once(loaded, "clear")
    loaded.counters("clear", fallback_small=27, **moved)
    actual = watch.compute_rates(before, look_once(loaded, "clear"), 2.0, None)
    assert (actual.requests_per_s, actual.bytes_per_s, actual.mean_ns) == rates
    assert actual.fallbacks_per_s == {"off": 0, "small": small}


@pytest.mark.usefixtures("loaded")
def test_json_is_a_document_a_line(bulkmm: Command) -> None:
    result = bulkmm("watch", "clear", "later", *QUICK, "--count", "2", "--json")
    assert result.code == Exit.OK
    documents = [json.loads(line) for line in result.out.splitlines()]
    assert len(documents) == 2
    for document in documents:
        check_schema(document)
        assert [path["name"] for path in document["paths"]] == ["clear", "later"]
        assert document["seconds"] >= 0.05


def test_a_table_on_a_terminal(loaded: Fake) -> None:
    command = [sys.executable, "-m", "bulkmm.cli", "watch", *QUICK, "--count", "2"]
    code, output = on_terminal([*command, "--root", loaded.root])
    assert code == Exit.OK
    assert b"requests/s" in output
    assert b"\x1b[" in output
    assert output.count(b"memmap") >= 2
    dumb = {**os.environ, "TERM": "dumb"}  # which would show the escapes
    code, output = on_terminal([*command, "--root", loaded.root], env=dumb)
    assert code == Exit.OK
    assert b"memmap" in output
    assert b"\x1b" not in output


def test_a_module_without_paths() -> None:
    assert (
        watch.format_table(watch.Sample(time="", seconds=1, paths=[]), traced=False)
        == []
    )


def test_the_module_is_unloaded(loaded: Fake, bulkmm: Command) -> None:
    def unload(_seconds: float) -> None:
        loaded.remove("/sys/kernel/bulkmm/version")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("time.sleep", unload)
        result = bulkmm("watch")
    assert result.code == Exit.ENVIRONMENT
    assert "the module was unloaded" in result.err


@pytest.mark.parametrize(("words", "code"), [((), 0), (("--count", "99"), 130)])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it(
    loaded: Fake, number: signal.Signals, words: tuple[str, ...], code: int
) -> None:
    command = [sys.executable, "-m", "bulkmm.cli", "watch", *QUICK, *words]
    with subprocess.Popen(
        [*command, "--root", str(loaded.root)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        assert running.stdout
        assert running.stderr
        running.stdout.readline()
        running.send_signal(number)
        stderr = running.stderr.read()
    assert running.returncode == code
    assert stderr == ("bulkmm: interrupted\n" if code else "")


TRACED = """\
        bmmfault-71      [001] ...1.     9.120: clear: pfn=0x1 order=9 bytes=2 ns=30 gap=7 streaming=0 backend=rep
        bmmfault-71      [001] ...1.     9.121: clear: pfn=0x2 order=9 bytes=2 ns=10 gap=7 streaming=0 backend=rep
CPU:1 [LOST 17 EVENTS]
        bmmfault-71      [001] ...1.     9.122: clear: pfn=0x3 order=9 bytes=2 ns=20 gap=9 streaming=0 backend=rep
           ndctl-72      [000] .....     9.123: memmap: start_pfn=0x4 nr_pages=1 order=0 bytes=8 ns=5 backend=movnti
"""  # noqa: E501


def test_times_of_tracepoints() -> None:
    times = watch.times_by_path(TRACED)
    assert times == {"clear": [30, 10, 20], "memmap": [5]}
    latency = watch.summarize_times(times["clear"])
    assert (latency.n, latency.median_ns, latency.p99_ns, latency.max_ns) == (
        3,
        20,
        30,
        30,
    )
    assert watch.summarize_times(list(range(1, 201))).p99_ns == 198


@pytest.mark.usefixtures("loaded")
def test_trace_where_it_cannot_be(kernel: Fake, bulkmm: Command) -> None:
    result = bulkmm("watch", "--trace", "--count", "1")  # no tracefs makes the instance
    assert result.code == Exit.ENVIRONMENT
    assert result.err.startswith("bulkmm: --trace: ")
    assert not list((kernel.root / "sys/kernel/tracing").glob("instances/*"))
    kernel.remove("/sys/kernel/tracing/trace")
    result = bulkmm("watch", "--trace", "--count", "1")
    assert result.code == Exit.ENVIRONMENT
    assert "mount -t tracefs" in result.err


def test_an_instance_that_others_use_stays_and_costs_no_result(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "instances").mkdir()
    with tracefs.own_instance(SystemFiles(tmp_path), "watch") as (name, _):
        (tmp_path / "instances" / name / "trace").touch()  # rmdir() fails
    stderr = capsys.readouterr().err
    assert stderr.startswith(f"bulkmm: {name} stays in tracefs: ")


@pytest.mark.parametrize("at", ["made", "within", "removed"])
def test_an_instance_is_removed_by_any_number_of_signals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    remove, root = tracefs.remove_instance, SystemFiles(tmp_path)

    def removed(*words: Any) -> None:
        signal.raise_signal(signal.SIGINT)
        remove(*words)

    def use() -> None:
        with tracefs.own_instance(root, "watch") as (name, interruptible):
            assert root.names("instances") == [name]
            if at == "made":
                signal.raise_signal(signal.SIGINT)
                assert root.names("instances") == [name]
            with interruptible():
                assert at != "made"
                if at == "within":
                    signal.raise_signal(signal.SIGINT)

    (tmp_path / "instances").mkdir()
    monkeypatch.setattr(tracefs, "remove_instance", removed)
    with pytest.raises(KeyboardInterrupt):
        use()
    assert root.names("instances") == []
