# SPDX-License-Identifier: GPL-2.0-only
"""Published figures for comparison with ours, as data.

Source: the cover letters of "mm: speed up ZONE_DEVICE memmap initialization" on the
Linux memory management list, 2026. A virtual machine on Intel Ice Lake, a namespace
of 100 GB, mean time of memmap_init_zone_device() over later rebinds.
"""

MACHINE = "Ice Lake VM, 100 GB"
# version of the series, and ms before and after
FIGURES = {
    "pmem-fsdax-100g": (
        ("v2 (7.1-rc3)", 273.5, 111.1),
        ("v4 (7.1-rc6)", 262.1, 108.4),
        ("v5 (7.2-rc1)", 244.3, 96.8),
    ),
    "pmem-devdax-100g": (
        ("v2 (7.1-rc3)", 313.5, 110.2),
        ("v4 (7.1-rc6)", 229.1, 100.2),
        ("v5 (7.2-rc1)", 273.3, 119.0),
    ),
}
# The native bench does the work that dominates the fsdax scenario.
FIGURES["memmap-stamp"] = FIGURES["pmem-fsdax-100g"]


def list_figures(scenario: str) -> tuple[str, ...]:
    """Return a scenario's figures as text, oldest first; none if none are known."""
    return tuple(
        f"{version}: {before} → {after} ms, {before / after:.2f}x"
        for version, before, after in FIGURES.get(scenario, ())
    )
