# SPDX-License-Identifier: GPL-2.0-only
"""Path prezero sees every way back to a pool, and out: the calls are in the image.

A compiler that inlined a hooked function into a caller would leave a call out.
"""

import bisect

import numpy as np
import pytest
from nativelib import Pair

from bulkmm.lab.progress import Progress
from bulkmm.native import symbols, vmlinux

CALL, JUMP = 0xE8, 0xE9
# as the sources have them, or the functions that these are inlined into
CALLERS = {
    ("6.12", "enqueue_hugetlb_folio"): {
        "add_hugetlb_folio",
        "free_huge_folio",
        "prep_and_add_allocated_folios",
        "hugetlb_acct_memory.part.0",  # gather_surplus_pages()
        "isolate_or_dissolve_huge_page",  # alloc_and_dissolve_hugetlb_folio()
    },
    ("6.12", "remove_hugetlb_folio"): {
        "free_huge_folio",
        "remove_pool_hugetlb_folio",
        "dissolve_free_hugetlb_folio",
        "demote_store",  # demote_pool_huge_page()
        "isolate_or_dissolve_huge_page",
    },
    ("7.3", "enqueue_hugetlb_folio"): {
        "add_hugetlb_folio",
        "free_huge_folio",
        "prep_and_add_allocated_folios",
        "gather_surplus_pages",
        "alloc_and_dissolve_hugetlb_folio",
    },
    ("7.3", "remove_hugetlb_folio"): {
        "free_huge_folio",
        "remove_pool_hugetlb_folio",
        "dissolve_free_hugetlb_folio",
        "demote_pool_huge_page",
        "alloc_and_dissolve_hugetlb_folio",
    },
}


SERIES = sorted({series for series, _ in CALLERS})  # others have other functions


@pytest.fixture(scope="module")
def calls(pair: Pair) -> dict[str, set[str]]:
    """Return the callers of each function that has some in the table."""
    image = vmlinux.read(pair.kernel)
    names = symbols.find(image, Progress())
    ordered = sorted((address, name) for name, address in names.all.items())
    starts = [address for address, _ in ordered]
    start, size = image.sections[".text"]
    code = image.at(start, size)
    at = np.flatnonzero((code[:-4] == CALL) | (code[:-4] == JUMP))
    parts = [code[at + 1 + i].astype(np.int64) << 8 * i for i in range(4)]
    offsets = sum(parts[1:], parts[0])
    targets = start + at + 5 + np.where(offsets >> 31, offsets - (1 << 32), offsets)
    return {
        name: {
            ordered[bisect.bisect_right(starts, start + int(one)) - 1][1]
            for one in at[targets == names[name]]
        }
        for _, name in CALLERS
    }


@pytest.mark.parametrize("pair", SERIES, indirect=True, scope="session")
@pytest.mark.parametrize("name", sorted({name for _, name in CALLERS}))
def test_every_call_is_one(pair: Pair, calls: dict[str, set[str]], name: str) -> None:
    assert calls[name] == CALLERS[pair.series, name]
