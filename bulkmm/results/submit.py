# SPDX-License-Identifier: GPL-2.0-only
"""A result as its owner can publish it: the CPU's figures, and nothing of the owner.

Only what is named here is kept, so that what is added to results later stays out
until somebody has thought about it.
"""

import re

from msgspec.structs import replace

from bulkmm.results.model import Document
from bulkmm.shell.errors import BulkmmError
from bulkmm.shell.size import GIB

CPU = (
    *("model", "vendor", "family", "model_number", "stepping", "part", "cores"),
    *("caches", "governor", "mitigations"),
)
MACHINE = (
    "architecture",
    "numa_nodes",
    "thp",
    "accelerator",
    "bulkmm",
    "revision",
    "date",
)
# of several subjects, members of one as in "clear.rounds"
RUN = (
    *("scenario", "processes", "rounds", "seed", "size", "bytes", "huge_bytes", "llc"),
    *("cpus", "pages", "backend", "cached", "streaming", "libpmem2", "threads"),
    *("hooks", "returns", "picks", "load", "steal", "other", "against", "predictors"),
)
# Debian's releases are public; anybody else's may name a person or a machine.
RELEASE = re.compile(r"\d+(?:\.\d+)*(?:[+~-][\w.+~-]*?deb1\d[\w.+~-]*)?")
OF_DEBIAN = re.compile(r"\d+(?:\.\d+)+(?:\+deb1\d[\w.+~]*|-\d+)?-(?:cloud-|rt-)?amd64")
# Those that the lab builds, with the project's patches and without.
OF_LAB = re.compile(r"\d+\.\d+\.\d+\+deb1\d-(?:base|patched)[\w.-]*-amd64")
HISTORY = "history"  # its arms are kernels
PATCHED = "patched"
PLAIN_RETURNS = "plain returns"  # no mitigation in place of RET
LEAST = 6  # processes


def anonymise_document(document: Document) -> Document:
    """Return what can be published of a result; raise if it should not be."""
    if document.failed:
        raise BulkmmError(f"nothing to submit: {document.failed[0].name} failed")
    if document.machine.get("accelerator") != "native":
        raise BulkmmError("nothing to submit: this was not measured natively")
    if "against" in document.run:
        for release in (str(document.machine.get("kernel")), document.run["against"]):
            if not OF_LAB.fullmatch(release):
                reason = f"{release} is no kernel that the lab builds"
                raise BulkmmError(f"nothing to submit: {reason}")
    if document.run.get("scenario") == HISTORY:
        for result in document.results:
            if not OF_DEBIAN.fullmatch(result.arm):
                reason = f"{result.arm} is no kernel of Debian"
                raise BulkmmError(f"nothing to submit: {reason}")
    source = document.machine
    cpu = {name: source["cpu"].get(name) for name in CPU}
    # kept: whether there is one; its name may be a company's
    cpu["hypervisor"] = "yes" if source["cpu"].get("hypervisor") else None
    machine = {name: source.get(name) for name in MACHINE}
    machine |= {"cpu": cpu, "kernel": _anonymise_release(source.get("kernel"))}
    machine["memory_bytes"] = round((source.get("memory_bytes") or 0) / GIB) * GIB
    run = {k: v for k, v in document.run.items() if k.rpartition(".")[2] in RUN}
    if "host_kernel" in document.run:
        run["host_kernel"] = _anonymise_release(document.run["host_kernel"])
    return replace(document, machine=machine, run=run)


def _anonymise_release(text: object) -> str:
    match = RELEASE.match(str(text))
    return match[0] if match else "unknown"


def file_name(document: Document) -> str:
    """Return the file of results/ that a result belongs in."""
    from bulkmm.control import requirements

    scenario = document.run.get("scenario")
    if "host_kernel" in document.run and scenario != HISTORY:
        series = requirements.series_of(document.machine["kernel"])
        if "against" not in document.run:
            return f"kernel-{series}.json"
        plain = document.run.get("returns") == PLAIN_RETURNS
        return f"{PATCHED}-{series}{'-plain' if plain else ''}.json"
    kinds = {result.memory for result in document.results}
    if scenario == "populate" and len(kinds) == 1:
        return f"populate-{kinds.pop()}.json"
    names = {"all": "bench.json"}
    names |= {name: f"{name}.json" for name in ("populate", "stage", "serve", HISTORY)}
    if scenario not in names:
        raise BulkmmError(f"results/ takes no result of {scenario}: bench all does")
    return names[scenario]
