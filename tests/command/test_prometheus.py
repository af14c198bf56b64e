# SPDX-License-Identifier: GPL-2.0-only
"""Metrics as the official client's parser reads them."""

import pytest
from commandlib import Command, Result
from fakekernel import Fake
from prometheus_client.parser import text_string_to_metric_families

from bulkmm.shell.errors import Exit

Key = tuple[str, frozenset[tuple[str, str]]]


def find_sample(name: str, **labels: str) -> Key:
    return f"bulkmm_{name}", frozenset(labels.items())


def parse_metrics(result: Result) -> dict[Key, float]:
    """Return the samples of a page; each metric is there once."""
    assert result.code == Exit.OK
    families = list(text_string_to_metric_families(result.out))
    assert len({one.name for one in families}) == len(families)
    samples = [one for metric in families for one in metric.samples]
    values = {(s.name, frozenset(s.labels.items())): s.value for s in samples}
    assert len(values) == len(samples)
    return values


@pytest.mark.usefixtures("loaded")
def test_every_counter_is_there(bulkmm: Command) -> None:
    clear = {"path": "clear", "operation": "backend_cached"}
    memmap = {"path": "memmap", "operation": "backend", "backend": "movdir64b"}
    expected = {
        find_sample("loaded"): 1,
        find_sample("info", version="0.1.0"): 1,
        find_sample("requests_total", path="memmap"): 4,
        find_sample("bytes_total", path="clear"): 8 << 20,
        find_sample("seconds_total", path="clear"): 0.002,
        find_sample("inflight", path="later"): 0,
        find_sample("fallbacks_total", path="clear", reason="small"): 7,
        find_sample("mode", path="memmap", mode="on"): 1,
        find_sample("mode", path="memmap", mode="off"): 0,
        find_sample("backend", **clear, backend="rep-b"): 1,
        find_sample("backend", **clear, backend="plain"): 0,
        find_sample("backend_bytes_per_second", **memmap): 37.8e9,
        find_sample("hook_attached", path="clear", symbol="folio_zero_user"): 0,
        find_sample("setting", path="clear", setting="latency_us"): 1000,
        find_sample("clear_streamed_total", path="clear"): 4096,
        find_sample("later_leaves_pte_total", path="later"): 9,
        find_sample("later_runs_total", path="later"): 5,
        find_sample("parameter", parameter="memmap_min_pages"): 32768,
    }
    samples = parse_metrics(bulkmm("status", "--format", "prometheus"))
    assert {key: samples.get(key) for key in expected} == expected


def test_without_the_module_that_is_a_metric(bulkmm: Command) -> None:
    kernel = {"case": "allocator", "kernel": "7.3.4+deb13-cloud-amd64"}
    samples = parse_metrics(bulkmm("status", "--format", "prometheus"))
    assert samples == {
        find_sample("loaded"): 0,
        find_sample("zeroing_info", **kernel): 1,
    }


def test_what_must_be_escaped(loaded: Fake, bulkmm: Command) -> None:
    odd = 'a"b\\n\\c'
    loaded.write("/proc/sys/kernel/osrelease", odd)
    loaded.write("/proc/cmdline", "init_on_alloc=0")
    samples = parse_metrics(bulkmm("status", "--format", "prometheus"))
    assert samples[find_sample("zeroing_info", case="once", kernel=odd)] == 1
