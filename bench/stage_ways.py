# SPDX-License-Identifier: GPL-2.0-only
"""One of our ways to have a file in memory, in a process of its own.

    python -m bench.stage_ways SCENARIO WAY FILE [--unverified]

prints the events of the bench. ``bulkmm`` is libbulkmm.stage(), ``mmap-copy`` the C
library's memmove() out of a mapping of the file into a new one of the scenario's pages.
``streaming`` is bmm_copy_streaming() into pages that are there already, and
``populate-streaming`` that and bmm_populate() before it; small pages are those of a
memfd, as with stage(), or with ``populate-private`` private ones, which take less.
"""

import json
import mmap
import sys
import time
from pathlib import Path

import numpy as np

from bench.populate_python import Array, map_memory
from bench.stage import COPY, HUGE, POPULATED, PRIVATE, SMALL, STREAMING
from bulkmm.populate import libbulkmm
from bulkmm.populate.library import BUILT_LIBRARY
from bulkmm.shell.size import MIB


def map_file(path: Path) -> Array:
    """Return a file as an array."""
    with path.open("rb") as file:
        return np.frombuffer(
            mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ), dtype=np.uint8
        )


def time_copy(way: str, path: Path, kind: str) -> tuple[int, Array]:
    """Copy a file out of a mapping; return the ns that it takes, and the memory."""
    source = map_file(path)
    shared = way == POPULATED and kind == SMALL
    memory = map_memory("memfd" if shared else kind, source.nbytes)
    if way == STREAMING:
        libbulkmm.populate(memory)
    start = time.monotonic_ns()
    if way == COPY:
        np.copyto(memory, source)
    else:
        if way != STREAMING:
            libbulkmm.populate(memory)
        libbulkmm.copy(memory, source, streaming=True)
    return time.monotonic_ns() - start, memory


def time_stage(path: Path, page: int) -> tuple[int, Array]:
    """Stage a file; return the ns that it takes, and the memory."""
    start = time.monotonic_ns()
    staged = libbulkmm.stage([path], page=page)
    return time.monotonic_ns() - start, np.frombuffer(staged, np.uint8)


def main(scenario: str, way: str, name: str, *options: str) -> None:
    """Print the sample and, unless it is not wanted, the verdict."""
    path = Path(name)
    if BUILT_LIBRARY.exists():
        libbulkmm.set_library(str(BUILT_LIBRARY))
    libbulkmm.version()  # loads it
    kind = SMALL if SMALL in scenario.split("-") else HUGE
    if way in (COPY, STREAMING, POPULATED, PRIVATE):
        ns, memory = time_copy(way, path, kind)
    else:
        ns, memory = time_stage(path, 2 * MIB if kind == HUGE else 0)
    labels = {"scenario": scenario, "variant": way}
    print(json.dumps({"event": "sample", **labels, "bytes": memory.nbytes, "ns": ns}))
    if options:
        return
    right = bool(np.array_equal(memory.view(np.uint64), map_file(path).view(np.uint64)))
    print(json.dumps({"event": "verified", **labels, "ok": right}))


if __name__ == "__main__":
    main(*sys.argv[1:])
