# SPDX-License-Identifier: GPL-2.0-only
"""Metrics as the official client's parser reads them."""

import pytest
from commandlib import Command, Done
from fakekernel import Fake
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

from bulkmm.errors import Exit

Key = tuple[str, frozenset[tuple[str, str]]]


def metrics(done: Done) -> dict[str, Metric]:
    """Return the metrics of a page, each there once."""
    assert done.code == Exit.OK
    held = list(text_string_to_metric_families(done.out))
    assert len({one.name for one in held}) == len(held)
    return {one.name: one for one in held}


def value(found: dict[str, Metric], name: str, **labels: str) -> float:
    """Return the one sample with these labels."""
    held = [
        sample.value
        for metric in found.values()
        for sample in metric.samples
        if sample.name == name and labels == sample.labels
    ]
    assert len(held) == 1, f"{name} {labels}: {held}"
    return held[0]


@pytest.mark.usefixtures("loaded")
def test_every_counter_is_there(bulkmm: Command) -> None:
    found = metrics(bulkmm("status", "--format", "prometheus"))
    assert value(found, "bulkmm_loaded") == 1
    assert value(found, "bulkmm_info", version="0.1.0") == 1
    assert value(found, "bulkmm_requests_total", path="memmap") == 4
    assert value(found, "bulkmm_bytes_total", path="clear") == 8 << 20
    assert value(found, "bulkmm_seconds_total", path="clear") == 0.002
    assert value(found, "bulkmm_inflight", path="later") == 0
    assert value(found, "bulkmm_fallbacks_total", path="clear", reason="small") == 7
    assert value(found, "bulkmm_mode", path="memmap", mode="on") == 1
    assert value(found, "bulkmm_mode", path="memmap", mode="off") == 0
    labels = {"path": "clear", "operation": "backend_cached"}
    assert value(found, "bulkmm_backend", **labels, backend="rep-b") == 1
    assert value(found, "bulkmm_backend", **labels, backend="plain") == 0
    labels = {"path": "memmap", "operation": "backend"}
    name = "bulkmm_backend_bytes_per_second"
    assert value(found, name, **labels, backend="movdir64b") == 37.8e9
    hook = {"path": "clear", "symbol": "folio_zero_user"}
    assert value(found, "bulkmm_hook_attached", **hook) == 0
    assert value(found, "bulkmm_setting", path="clear", setting="latency_us") == 1000
    assert value(found, "bulkmm_clear_streamed_total", path="clear") == 4096
    assert value(found, "bulkmm_later_leaves_pte_total", path="later") == 9
    assert value(found, "bulkmm_later_runs_total", path="later") == 5
    assert value(found, "bulkmm_parameter", parameter="memmap_min_pages") == 32768


def test_without_the_module_that_is_a_metric(bulkmm: Command) -> None:
    found = metrics(bulkmm("status", "--format", "prometheus"))
    assert value(found, "bulkmm_loaded") == 0
    labels = {"case": "allocator", "kernel": "7.3.4+deb13-cloud-amd64"}
    assert value(found, "bulkmm_zeroing_info", **labels) == 1
    assert set(found) == {"bulkmm_loaded", "bulkmm_zeroing_info"}


def test_what_must_be_escaped(loaded: Fake, bulkmm: Command) -> None:
    odd = 'a"b\\n\\c'
    loaded.write("/proc/sys/kernel/osrelease", odd)
    loaded.write("/proc/cmdline", "init_on_alloc=0")
    found = metrics(bulkmm("status", "--format", "prometheus"))
    assert value(found, "bulkmm_zeroing_info", case="once", kernel=odd) == 1
