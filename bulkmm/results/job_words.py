# SPDX-License-Identifier: GPL-2.0-only
"""What a scenario of a kernel's own code does, in words, from the fields of a result.

A name such as thp-64k is for those who know it already.
"""

import re
from collections.abc import Callable

from bulkmm.control.format import format_size
from bulkmm.results.model import Result
from bulkmm.results.size_grid import USES
from bulkmm.shell.size import PAGE

MEMORY = {"thp": "pages", "hugetlb": "hugetlb pages"}
DEVICES = {
    "pmem-fsdax": "fsdax",
    "pmem-devdax": "devdax",
    "hmm-private": "device-private memory",
}
PLACES = {
    "middle": "the page in use is in the middle",
    "last": "the page in use is the last",
    "far": "far apart",
    "adjacent": "one behind the other",
    "empty": "page tables are missing",
    "split": "across two page tables",
    "odd": "of an odd size",
    "early": "the first section is boot memory's",
    "map-mem": "struct pages in RAM",
}
ALIGNED = re.compile(r"align-(\d+)([kmg])")


def describe_job(result: Result) -> str:
    """Return what is done; the scenario's name, if that is none of a kernel's code."""
    describe = JOBS.get(result.operation)
    if not describe or not result.size:
        return result.scenario
    return ", ".join([describe(result), *_list_places(result)])


def _clear(result: Result) -> str:
    populates = result.use == "populate"
    pages = f"{MEMORY.get(result.memory, result.memory)} of {format_size(result.size)}"
    verb = "populating" if populates else "touching"
    return f"{verb} {pages}{'' if populates else _name_use(result)}"


def _copy(result: Result) -> str:
    verb = "copying" if result.operation == "copy" else "migrating"
    return f"{verb} pages of {format_size(result.size)}{_name_use(result)}"


def _name_use(result: Result) -> str:
    return f", {USES.get(result.use, result.use)}" if result.use else ""


def _memmap(result: Result) -> str:
    kind = DEVICES.get(result.memory, result.memory)
    return f"a device of {format_size(result.size)}, {kind}"


def _map(result: Result) -> str:
    if result.size == PAGE:
        return f"mapping a single page by {result.operation}()"
    name = result.operation
    if (name, result.memory) == ("vmalloc", "huge"):
        return f"vmalloc_huge() of {format_size(result.size)}"
    return f"{name}() of {format_size(result.size)}{_name_blocks(result.memory)}"


def _name_blocks(memory: str) -> str:
    """Return what an array is made of."""
    if order := re.fullmatch(r"order(\d+)", memory):
        return f" in blocks of {format_size(PAGE << int(order[1]))}"
    return " in blocks of three sizes" if memory == "mixed" else ""


def _list_places(result: Result) -> list[str]:
    words = result.placement
    places = []
    if aligned := ALIGNED.match(words):
        places = [f"aligned to {aligned[1]} {aligned[2].upper()}iB"]
        words = words[aligned.end() :].removeprefix("-")
    if words not in PLACES and words.endswith("-map-mem"):
        places.append(PLACES[words.removesuffix("-map-mem")])
        words = "map-mem"
    return [*places, *filter(None, [PLACES.get(words, words)])]


JOBS: dict[str, Callable[[Result], str]] = {
    "clear": _clear,
    "copy": _copy,
    "migrate": _copy,
    "memmap": _memmap,
    **dict.fromkeys(("vmap", "vmalloc", "ioremap"), _map),
}
