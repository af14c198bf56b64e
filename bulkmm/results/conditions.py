# SPDX-License-Identifier: GPL-2.0-only
"""The circumstances of a result: CPU, kernel, noise, checks."""

from statistics import median
from typing import Any

from bulkmm.results.model import INTERVAL_LEAST, Document
from bulkmm.shell.size import GIB

DASH = "\N{EN DASH}"
STEAL = 0.01  # of the CPU time: more is a disturbance
SHARE, BUSY = 0.1, 0.5  # of the CPU time for other work: disturbs; no figure counts
NO_PMEM = "libpmem2 is left out: it was not installed when the bench program was built."
EMULATED = (
    "TCG: the processor is emulated; these times do not reflect hardware, so no ratios "
    "are shown."
)
WORK_NOTE = (
    "TCG: instructions, by the emulated guest's clock under icount, each turn of a "
    "string instruction: they measure work, not speed."
)

WORK_NOTE_ONCE = (
    "TCG: instructions of the emulated guest's kernel, a string instruction as one: "
    "they measure work, not speed."
)


def get_accelerator(document: Document) -> str:
    """Return native, KVM or TCG."""
    return str(document.machine.get("accelerator", "native"))


def get_kernel(document: Document) -> str:
    """Return the release whose code was measured: the guest's, if any."""
    machine = document.machine
    release = machine.get("guest", {}).get("kernel") or machine.get("kernel")
    return str(release or "unknown")


def cpu_name(document: Document) -> str:
    """Return the CPU by its name, family and model."""
    cpu = document.machine.get("cpu", {})
    name = str(cpu.get("model", "unknown CPU"))
    if cpu.get("family") is None:
        return name
    return f"{name} (family {cpu['family']}, model {cpu.get('model_number')})"


def name_returns(document: Document) -> str:
    """Return how the kernel's functions return, or nothing if none of them ran.

    With Safe RET, the mitigation of SRSO, a CPU mispredicts every return.
    """
    thunk = str(document.run.get("returns", ""))
    return "Safe RET" if thunk.startswith("srso") else thunk


def describe_cpu(document: Document) -> str:
    """Return the CPU, and how the kernel's functions return on it."""
    return ", ".join(filter(None, (cpu_name(document), name_returns(document))))


def describe_checks(document: Document) -> str:
    """Return how many checks passed."""
    many = len(document.checks)
    return f"Checks passed: {many - len(document.failed)} of {many}."


def list_footnotes(document: Document) -> list[str]:
    """Return the lines required below a table of this document's figures."""
    guest = " visits of one boot" if "guest" in document.machine else ""
    unit = " processes" if "processes" in document.run else guest
    cpu, kernel = describe_cpu(document), get_kernel(document)
    machine = f"{get_accelerator(document)}: {cpu}; kernel {kernel}"
    counts = sorted({len(result.samples) for result in document.printed().results})
    n = DASH.join(str(n) for n in dict.fromkeys(counts[:1] + counts[-1:]))
    lines = [f"{machine}; n = {n}{unit}.", *describe_noise(document)]
    if document.checks:
        lines.append(describe_checks(document))
    if document.emulated:
        lines.append(describe_emulation(document))
    return lines


def describe_emulation(document: Document) -> str:
    """Return what an emulated guest's figures mean."""
    if not document.counts_work:
        return EMULATED
    return WORK_NOTE_ONCE if document.has_stores else WORK_NOTE


def describe_noise(document: Document) -> list[str]:
    """Return the run's memory, peers and noise."""
    run, lines = document.run, []
    if "huge_bytes" in run and run.get("bytes"):
        share = min(1, run["huge_bytes"] / run["bytes"])
        lines.append(f"Memory in huge pages: at most {share:.0%}.")
    if any(name.endswith("libpmem2") and not run[name] for name in run):
        lines.append(NO_PMEM)
    if varied := [r for r in document.results if r.cv is not None]:
        worst = max(varied, key=lambda r: r.cv or 0)
        middle = median(r.cv or 0 for r in varied)
        lines.append(
            f"Coefficient of variation between processes: median {middle:.1%}, most "
            f"{worst.cv or 0:.0%} ({worst.scenario} {worst.variant})."
        )
    if "load" in run:
        before, after = run["load"]
        stolen = f"{run.get('steal', 0):.1%} of the CPU time stolen"
        shared = f", {run['other']:.0%} for other work" if "other" in run else ""
        lines.append(f"Load {before} before, {after} after; {stolen}{shared}.")
    if shaky := sum(ratio.unstable for ratio in document.printed().ratios):
        many = len(document.printed().ratios)
        lines.append(f"Unstable: {shaky} of {many} ratios (!).")
    return lines


def describe_load(document: Document) -> str:
    """Return that other work had the CPUs meanwhile, or nothing."""
    if get_accelerator(document) != "native" or not is_busy(document):
        return ""
    cpus = _count_cpus(document)
    low, high = sorted(document.run["load"])
    share = f"load {low}{DASH}{high}"
    if "other" in document.run:
        share = f"other work had {document.run['other']:.0%} of the time"
    return (
        f"The CPU was busy ({share} on {cpus} CPUs): times and ratios are not this "
        "CPU's; run it again once it is idle."
    )


def is_busy(document: Document) -> bool:
    """Return whether other work had the CPUs.

    Older results have loads only. The run itself is a load of 1, on a machine whose
    load was the work before it.
    """
    if "other" in document.run:
        return bool(document.run["other"] > BUSY)
    return bool(min(document.run.get("load", (0, 0))) > _count_cpus(document))


def _count_cpus(document: Document) -> int:
    return document.machine.get("cpu", {}).get("cores") or 1


def list_warnings(document: Document) -> list[str]:
    """Return what weakens figures that were just measured, each with its remedy."""
    if get_accelerator(document) != "native":
        return []
    run, lines = document.run, []
    share, steal = run.get("other", 0), run.get("steal", 0)
    if share > SHARE:
        lines.append(
            f"{share:.0%} of the CPU time was for other work: close what uses the CPU"
        )
    if steal > STEAL:
        lines.append(
            f"{steal:.0%} of the CPU time stolen: choose a quieter host or hour"
        )
    few = run.get("processes", INTERVAL_LEAST)
    if few < INTERVAL_LEAST:
        more = f"{INTERVAL_LEAST} needed for an interval and to prove anything"
        lines.append(f"n = {few}, {more}: --processes {INTERVAL_LEAST}")
    if shaky := sum(ratio.unstable for ratio in document.printed().ratios):
        many = len(document.printed().ratios)
        remedy = "two equal variants differ by more; run more processes"
        lines.append(f"{shaky} of {many} ratios are unstable (!): {remedy}")
    return lines


def list_facts(document: Document) -> dict[str, str]:
    """Return the known facts that must be equal for times to compare."""
    machine, run = document.machine, document.run
    cpu, guest = machine.get("cpu", {}), machine.get("guest", {})
    memory, huge = machine.get("memory_bytes"), run.get("huge_bytes", 0)
    whole = run.get("bytes") if "huge_bytes" in run else 0
    names = ("model", "vendor", "family", "model_number", "stepping")
    facts = {
        "CPU": " ".join(str(cpu[name]) for name in names if cpu.get(name) is not None),
        "number of CPUs": cpu.get("cores"),
        "affinity": ",".join(map(str, cpu.get("affinity", ()))),
        "memory nodes": machine.get("numa_nodes"),
        "hypervisor": cpu.get("hypervisor"),
        "frequency governor": cpu.get("governor"),
        **_list_entries("cache", cpu.get("caches")),
        **_list_entries("mitigation", cpu.get("mitigations")),
        # rounded: kernels reserve slightly different amounts
        "memory": f"{memory / GIB:.0f} GiB" if memory else "",
        "kernel": machine.get("kernel"),
        "guest kernel": guest.get("kernel"),
        "accelerator": machine.get("accelerator"),
        "transparent huge page setting": machine.get("thp"),
        # in whole percent, so that a page does not matter
        "memory in huge pages": (
            f"at most {100 * min(1, huge / whole):.0f} %" if whole else ""
        ),
        # what was requested or chosen, such as a backend
        **_list_entries("run:", {k: v for k, v in run.items() if isinstance(v, str)}),
    }
    return {what: str(fact) for what, fact in facts.items() if fact not in (None, "")}


def _list_entries(prefix: str, fields: object) -> dict[str, Any]:
    """Return the entries of an object with prefixed names."""
    items = fields.items() if isinstance(fields, dict) else ()
    return {f"{prefix} {name}": value for name, value in items}
