# SPDX-License-Identifier: GPL-2.0-only
"""What may be used of a CPU, from answers that no CPU here gives."""

import platform
from pathlib import Path

import pytest
from corelib import build_core, ffi

pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64", reason="CPUID is of x86-64"
)

ERMS, CLZERO, MOVDIR64B, AVX2, AVX512 = (1 << n for n in range(5))
FEATURES = ERMS | CLZERO | MOVDIR64B | AVX2 | AVX512
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


@pytest.mark.parametrize(
    ("changed", "missing"),
    [
        ({}, 0),
        # the state of its registers is not kept
        ({"xcr0": 0x07}, AVX512),  # AVX is kept, ZMM is not
        ({"xcr0": 0x67}, AVX512),  # the upper half of the registers is not
        ({"xcr0": 0x03}, AVX2 | AVX512),
        ({"xcr0": 0}, AVX2 | AVX512),
        ({"c1": AVX}, AVX2 | AVX512),  # XCR0 is not to be read
        ({"c1": OSXSAVE}, AVX2 | AVX512),
        # a leaf that is not there: what a CPU answers for it is anything, here all
        ({"most": 6}, ERMS | MOVDIR64B | AVX2 | AVX512),
        ({"most": 0}, ERMS | MOVDIR64B | AVX2 | AVX512),
        ({"most_ext": 0x80000007}, CLZERO),
        ({"most_ext": 0x80000000}, CLZERO),
        ({"most_ext": 0}, CLZERO),
        # a thread may be moved, and some cores lack AVX-512; nothing else differs
        ({"d7": HYBRID}, AVX512),
    ],
)
def test_what_is_missing_is_not_used(changed: dict[str, int], missing: int) -> None:
    raw = ffi.new("struct bmm_cpuid *", EVERYTHING | changed)
    assert build_core().bmm_cpu_features(raw) == FEATURES & ~missing


def test_the_last_level_cache_is_what_the_system_says() -> None:
    sizes = Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size")
    capacities = [int(size.read_text().strip().rstrip("K")) << 10 for size in sizes]
    assert build_core().bmm_host_llc() in (0, max(capacities, default=0))
