# SPDX-License-Identifier: GPL-2.0-only
"""The status as metrics for Prometheus, in its text format 0.0.4.

For the textfile collector of node_exporter: no program has to listen. Counters
begin at zero when the module is loaded, which Prometheus takes for what it is.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from bulkmm.control import kernel as kernels
from bulkmm.control import module as modules
from bulkmm.control.module import KernelPath, Module
from bulkmm.control.root import Root
from bulkmm.control.status import select

COUNTER, GAUGE = "counter", "gauge"
# Names and units of the counters that every path has.
KNOWN = {
    "hits": ("requests", COUNTER, "Requests served."),
    "bytes": ("bytes", COUNTER, "Bytes written by requests served."),
    "ns": ("seconds", COUNTER, "Time spent in requests served."),
    "inflight": ("inflight", GAUGE, "Calls inside the handler now."),
}
NANO = GIGA = 1e9


@dataclass
class Metric:
    """A metric and its samples: labels, value."""

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
    """Metrics in the order in which they are first met."""

    def __init__(self) -> None:
        self.metrics: dict[str, Metric] = {}

    def add(
        self, name: str, kind: str, about: str, value: float, **labels: str
    ) -> None:
        """Add a sample; counters are named as counters are."""
        name = f"bulkmm_{name}" + ("_total" if kind == COUNTER else "")
        metric = self.metrics.setdefault(name, Metric(name, kind, about))
        metric.samples.append((labels, value))

    def text(self) -> str:
        """Return the page."""
        lines = [line for metric in self.metrics.values() for line in metric.lines()]
        return "\n".join(lines) + "\n"


def text(root: Root, wanted: list[str]) -> str:
    """Return the metrics of the module; without it, that it is not there."""
    page = Page()
    kernel = kernels.Kernel(root)
    module = modules.read(root)
    page.add("loaded", GAUGE, "Whether the module is loaded.", int(module is not None))
    case = kernels.zeroing(kernel).case
    page.add(
        "zeroing_info",
        GAUGE,
        "How often, or by whom, the kernel clears a huge page.",
        1,
        case=case,
        kernel=kernel.release,
    )
    if module:
        _add_module(page, module, wanted)
    return page.text()


def _add_module(page: Page, module: Module, wanted: list[str]) -> None:
    page.add("info", GAUGE, "Version of the module.", 1, version=module.version)
    for name, value in module.parameters.items():
        page.add(
            "parameter", GAUGE, "Module parameters that can be changed.", value,
            parameter=name,
        )  # fmt: skip
    for path in select(module, wanted):
        _add_path(page, path)


def _add_path(page: Page, path: KernelPath) -> None:
    for mode in path.mode.words:
        page.add(
            "mode", GAUGE, "Modes of a path: 1 for the one in force.",
            int(mode == path.mode.chosen), path=path.name, mode=mode,
        )  # fmt: skip
    for hook in path.hooks:
        page.add(
            "hook_attached", GAUGE, "Whether a kernel function is hooked.",
            int(hook.attached), path=path.name, symbol=hook.symbol,
        )  # fmt: skip
    for name, count in path.counters.items():
        own = (f"{path.name}_{name}", COUNTER, f"Counter {name} of this path.")
        metric, kind, about = KNOWN.get(name, own)
        value = count / NANO if name == "ns" else count
        page.add(metric, kind, about, value, path=path.name)
    for reason, count in path.fallbacks.items():
        page.add(
            "fallbacks", COUNTER, "Requests that fell back to the kernel's own code.",
            count, path=path.name, reason=reason,
        )  # fmt: skip
    _add_settings(page, path)


def _add_settings(page: Page, path: KernelPath) -> None:
    for file, backends in path.backends.items():
        for pick in backends.picks:
            for backend in backends.names:
                page.add(
                    "backend", GAUGE, "Store backends: 1 for the one that serves.",
                    int(backend == pick.serving), path=path.name,
                    operation=file, pick=pick.label, backend=backend,
                )  # fmt: skip
            for backend, rate in pick.gb_per_s.items():
                page.add(
                    "backend_bytes_per_second", GAUGE,
                    "Rate of a backend when it was measured.",
                    rate * GIGA, path=path.name,
                    operation=file, pick=pick.label, backend=backend,
                )  # fmt: skip
    for setting, value in path.settings.items():
        page.add(
            "setting", GAUGE, "Settings of a path, in units of their own.",
            value, path=path.name, setting=setting,
        )  # fmt: skip
    for table, rows in path.tables.items():
        for row in rows:
            (label, at), *values = row.items()
            for name, value in values:
                metric, kind, scale = _column(table, name)
                about = f"Numbers {name} by {table}."
                page.add(
                    f"{path.name}_{metric}", kind, about,
                    value / scale, path=path.name, **{label: str(at)},
                )  # fmt: skip


def _column(table: str, name: str) -> tuple[str, str, float]:
    """Return what a column is called, its kind, and how many make a base unit."""
    if name.endswith("_ns"):
        return f"{table}_{name.removesuffix('ns')}seconds", GAUGE, NANO
    return f"{table}_{name}", COUNTER, 1
