# SPDX-License-Identifier: GPL-2.0-only
"""The status as metrics for Prometheus, in its text format 0.0.4.

For node_exporter's textfile collector, so no program has to listen. Counters
restart at zero when the module is loaded, which Prometheus handles as a reset.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Any

from bulkmm.control.status import Status

METRICS = {
    "loaded": ("gauge", "Whether the module is loaded."),
    "zeroing_info": ("gauge", "How often, or by whom, the kernel clears a huge page."),
    "info": ("gauge", "Version of the module."),
    "parameter": ("gauge", "Module parameters that can be changed."),
    "mode": ("gauge", "Modes of a path: 1 for the one in force."),
    "hook_attached": ("gauge", "Whether a kernel function is hooked."),
    "requests_total": ("counter", "Requests served."),
    "bytes_total": ("counter", "Bytes written by requests served."),
    "seconds_total": ("counter", "Time spent in requests served."),
    "inflight": ("gauge", "Calls inside the handler now."),
    "fallbacks_total": ("counter", "Requests that fell back to the kernel's own code."),
    "backend": ("gauge", "Store backends: 1 for the one that serves."),
    "backend_bytes_per_second": ("gauge", "Rate of a backend when it was measured."),
    "setting": ("gauge", "Settings of a path, in units of their own."),
}
# counters that every path has; others are metrics of their path
EVERYWHERE = {"hits": "requests_total", "bytes": "bytes_total", "inflight": "inflight"}
GIGA = 1e9

Sample = tuple[str, float, dict[str, str]]  # of a metric: value, labels


def format_metrics(status: Status) -> str:
    """Return the module's metrics, or the one that it is not loaded."""
    return format_samples(_list_samples(asdict(status)), METRICS)


def format_samples(
    samples: Iterable[Sample], about_metrics: Mapping[str, tuple[str, str]]
) -> str:
    """Return samples as Prometheus reads them."""
    metrics: dict[str, list[str]] = {}
    for name, value, labels in samples:
        kind, about = about_metrics.get(
            name, ("counter", "A counter of this path alone.")
        )
        head = [f"# HELP bulkmm_{name} {about}", f"# TYPE bulkmm_{name} {kind}"]
        pairs = ",".join(f'{label}="{_escape_label(v)}"' for label, v in labels.items())
        line = f"bulkmm_{name}{{{pairs}}}" if pairs else f"bulkmm_{name}"
        metrics.setdefault(name, head).append(f"{line} {+value!r}")
    return "\n".join(line for lines in metrics.values() for line in lines) + "\n"


def _escape_label(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def _list_samples(status: dict[str, Any]) -> Iterator[Sample]:
    kernel = status["kernel"]
    yield "loaded", status["loaded"], {}
    labels = {"case": kernel["zeroing"], "kernel": kernel["release"]}
    yield "zeroing_info", 1, labels
    if status["loaded"]:
        yield "info", 1, {"version": status["version"]}
    for name, value in status["parameters"].items():
        yield "parameter", value, {"parameter": name}
    for path in status["paths"]:
        for name, value, labels in _of_path(path):
            yield name, value, {"path": path["name"], **labels}


def _of_path(path: dict[str, Any]) -> Iterator[Sample]:
    for mode in path["modes"]:
        yield "mode", mode == path["mode"], {"mode": mode}
    for hook in path["hooks"]:
        yield "hook_attached", hook["attached"], {"symbol": hook["symbol"]}
    for name, count in path["counters"].items():
        if name == "ns":
            yield "seconds_total", count / GIGA, {}
        else:
            yield EVERYWHERE.get(name, f"{path['name']}_{name}_total"), count, {}
    for reason, count in path["fallbacks"].items():
        yield "fallbacks_total", count, {"reason": reason}
    for operation, backends in path["backends"].items():
        for name in backends["choices"][1:]:
            labels = {"operation": operation, "backend": name}
            yield "backend", name == backends["serving"], labels
        for name, rate in backends["gb_per_s"].items():
            labels = {"operation": operation, "backend": name}
            yield "backend_bytes_per_second", rate * GIGA, labels
    for name, value in path["settings"].items():
        yield "setting", value, {"setting": name}
