# SPDX-License-Identifier: GPL-2.0-only
"""What was done before anything was counted, calculated from sizes and rates."""

from collections.abc import Iterator
from dataclasses import dataclass

from bulkmm.control import late, text
from bulkmm.control.root import Root
from bulkmm.pool.pools import Pool, named, sizes
from bulkmm.worth import gain
from bulkmm.worth.gain import Known

STRUCT_PAGE = 64 / 4096  # of the memory that it describes


@dataclass(frozen=True)
class Early:
    """Work of the kernel's own code that no probe has seen."""

    path: str
    says: str
    bytes: int
    seconds: float | None  # None: no rate is known
    saved_seconds: float | None


def early(root: Root, known: Known) -> list[Early]:
    """Return what happened at boot, and what will happen at the first use."""
    return [*_devices(root, known), *_pools(root, known)]


def _devices(root: Root, known: Known) -> Iterator[Early]:
    nbytes, total, _ = late.missed(root)
    if not total:
        nbytes = late.zone_bytes(root)
    if nbytes:
        said = f"struct pages of {text.size(nbytes)} of devices were built without it"
        yield _worked("memmap", said, nbytes, known, gain.FSDAX, share=STRUCT_PAGE)


def _pools(root: Root, known: Known) -> Iterator[Early]:
    for page in sizes(root):
        if nbytes := page * Pool(root, page).read("free_hugepages"):
            said = (
                f"{text.size(nbytes)} of free huge pages of {named(page)} are zeroed "
                "at their first use"
            )
            yield _worked("clear", said, nbytes, known, gain.POPULATED)


def _worked(
    path: str, said: str, nbytes: int, known: Known, scenario: str, *, share: float = 1
) -> Early:
    """Return the time for memory of which a scenario's call writes a share."""
    figure = known.figures.get(scenario)
    if not figure:
        return Early(path, said, nbytes, None, None)
    seconds = figure.stock_ns * nbytes * share / figure.bytes / 1e9
    return Early(path, said, nbytes, seconds, gain.saved(seconds, figure.ratio))
