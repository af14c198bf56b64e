# SPDX-License-Identifier: GPL-2.0-only
"""What may be used of a CPU, from answers that no CPU here gives."""

import platform
from itertools import pairwise
from pathlib import Path

import pytest
from corelib import core, ffi

pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64", reason="CPUID is of x86-64"
)

ERMS, CLZERO, MOVDIR64B, AVX2, AVX512 = (1 << n for n in range(5))
ALL = ERMS | CLZERO | MOVDIR64B | AVX2 | AVX512
OSXSAVE, AVX, HYBRID = 1 << 27, 1 << 28, 1 << 15
EVERYTHING = {
    "most": 0x20,
    "most_ext": 0x80000021,
    "c1": OSXSAVE | AVX,
    "b7": 1 << 9 | 1 << 5 | 1 << 16,
    "c7": 1 << 28,
    "d7": 0,
    "b_ext8": 1,
    "xcr0": 0xE7,
}


def features(**changed: int) -> int:
    raw = ffi.new("struct bmm_cpuid *", EVERYTHING | changed)
    return int(core().bmm_cpu_features(raw))


def test_a_cpu_that_has_everything() -> None:
    assert features() == ALL


@pytest.mark.parametrize(
    ("changed", "gone"),
    [
        ({"xcr0": 0x07}, AVX512),  # AVX is kept, ZMM is not
        ({"xcr0": 0x67}, AVX512),  # the upper half of the registers is not
        ({"xcr0": 0x03}, AVX2 | AVX512),
        ({"xcr0": 0}, AVX2 | AVX512),
        ({"c1": AVX}, AVX2 | AVX512),  # XCR0 is not to be read
        ({"c1": OSXSAVE}, AVX2 | AVX512),
    ],
)
def test_a_feature_whose_state_is_not_kept(changed: dict[str, int], gone: int) -> None:
    assert features(**changed) == ALL & ~gone


@pytest.mark.parametrize(
    ("changed", "gone"),
    [
        ({"most": 6}, ERMS | MOVDIR64B | AVX2 | AVX512),
        ({"most": 0}, ERMS | MOVDIR64B | AVX2 | AVX512),
        ({"most_ext": 0x80000007}, CLZERO),
        ({"most_ext": 0x80000000}, CLZERO),
        ({"most_ext": 0}, CLZERO),
    ],
)
def test_a_leaf_that_is_not_there(changed: dict[str, int], gone: int) -> None:
    """What a CPU answers for it is anything, here that all is there."""
    assert features(**changed) == ALL & ~gone


def test_cores_of_several_kinds() -> None:
    """A thread may be moved, and some cores lack AVX-512; nothing else differs."""
    assert features(d7=HYBRID) == ALL & ~AVX512


def test_the_last_level_cache_is_what_the_system_says() -> None:
    sizes = Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size")
    told = [int(size.read_text().strip().rstrip("K")) << 10 for size in sizes]
    assert core().bmm_host_llc() in (0, max(told, default=0))


def test_the_clock_goes_forward() -> None:
    ticks = [core().bmm_host_clock() for _ in range(1000)]
    assert all(a <= b for a, b in pairwise(ticks))
    assert ticks[-1] > ticks[0]
