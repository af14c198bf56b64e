# SPDX-License-Identifier: GPL-2.0-only
"""The status as metrics for Prometheus, in its text format 0.0.4.

For node_exporter's textfile collector, so no program has to listen. Counters
restart at zero when the module is loaded, which Prometheus handles as a reset.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from bulkmm.control import kernel as kernels
from bulkmm.control import module as modules
from bulkmm.control.module import KernelPath
from bulkmm.control.root import Root
from bulkmm.control.status import select

COUNTER, GAUGE = "counter", "gauge"
# metrics that every module or every path has
METRICS = {
    "loaded": (GAUGE, "Whether the module is loaded."),
    "zeroing_info": (GAUGE, "How often, or by whom, the kernel clears a huge page."),
    "info": (GAUGE, "Version of the module."),
    "parameter": (GAUGE, "Module parameters that can be changed."),
    "mode": (GAUGE, "Modes of a path: 1 for the one in force."),
    "hook_attached": (GAUGE, "Whether a kernel function is hooked."),
    "requests": (COUNTER, "Requests served."),
    "bytes": (COUNTER, "Bytes written by requests served."),
    "seconds": (COUNTER, "Time spent in requests served."),
    "inflight": (GAUGE, "Calls inside the handler now."),
    "fallbacks": (COUNTER, "Requests that fell back to the kernel's own code."),
    "backend": (GAUGE, "Store backends: 1 for the one that serves."),
    "backend_bytes_per_second": (GAUGE, "Rate of a backend when it was measured."),
    "setting": (GAUGE, "Settings of a path, in units of their own."),
}
# those from counters that every path has
KNOWN = {"hits": "requests", "bytes": "bytes", "ns": "seconds", "inflight": "inflight"}
NANO = GIGA = 1e9


@dataclass
class Metric:
    """A metric and its samples (labels, value)."""

    name: str
    kind: str
    about: str
    samples: list[tuple[dict[str, str], float]] = field(default_factory=list)

    def lines(self) -> Iterator[str]:
        """Return the metric in the text format."""
        yield f"# HELP {self.name} {_escape(self.about, quotes=False)}"
        yield f"# TYPE {self.name} {self.kind}"
        for labels, value in self.samples:
            said = ",".join(f'{name}="{_escape(v)}"' for name, v in labels.items())
            yield (
                f"{self.name}{{{said}}} {value!r}" if said else f"{self.name} {value!r}"
            )


def _escape(value: str, *, quotes: bool = True) -> str:
    value = value.replace("\\", r"\\").replace("\n", r"\n")
    return value.replace('"', r"\"") if quotes else value


class Page:
    """Metrics in the order of first use."""

    def __init__(self) -> None:
        self.metrics: dict[str, Metric] = {}

    def add(self, name: str, value: float, **labels: str) -> None:
        """Add a sample of a known metric."""
        self.add_as(name, *METRICS[name], value, **labels)

    def add_as(
        self, name: str, kind: str, about: str, value: float, **labels: str
    ) -> None:
        """Add a sample; counters get the suffix "_total"."""
        name = f"bulkmm_{name}" + ("_total" if kind == COUNTER else "")
        metric = self.metrics.setdefault(name, Metric(name, kind, about))
        metric.samples.append((labels, value))

    def text(self) -> str:
        """Return the page."""
        lines = [line for metric in self.metrics.values() for line in metric.lines()]
        return "\n".join(lines) + "\n"


def text(root: Root, wanted: list[str]) -> str:
    """Return the module's metrics, or the one that it is not loaded."""
    page = Page()
    kernel = kernels.Kernel(root)
    module = modules.read(root)
    page.add("loaded", int(module is not None))
    case = kernels.zeroing(kernel).case
    page.add("zeroing_info", 1, case=case, kernel=kernel.release)
    if module:
        page.add("info", 1, version=module.version)
        for name, value in module.parameters.items():
            page.add("parameter", value, parameter=name)
        for path in select(module, wanted):
            _add_path(page, path)
    return page.text()


def _add_path(page: Page, path: KernelPath) -> None:
    on = path.name
    for mode in path.mode.words:
        page.add("mode", int(mode == path.mode.chosen), path=on, mode=mode)
    for hook in path.hooks:
        page.add("hook_attached", int(hook.attached), path=on, symbol=hook.symbol)
    for name, count in path.counters.items():
        value = count / NANO if name == "ns" else count
        if metric := KNOWN.get(name):
            page.add(metric, value, path=on)
        else:
            about = f"Counter {name} of this path."
            page.add_as(f"{on}_{name}", COUNTER, about, value, path=on)
    for reason, count in path.fallbacks.items():
        page.add("fallbacks", count, path=on, reason=reason)
    _add_settings(page, path)


def _add_settings(page: Page, path: KernelPath) -> None:
    for file, backends in path.backends.items():
        of = {"path": path.name, "operation": file}
        for name in backends.names:
            page.add("backend", int(name == backends.serving), **of, backend=name)
        for name, rate in backends.gb_per_s.items():
            page.add("backend_bytes_per_second", rate * GIGA, **of, backend=name)
    for setting, value in path.settings.items():
        page.add("setting", value, path=path.name, setting=setting)
