# SPDX-License-Identifier: GPL-2.0-only
"""The words that options of the lab may have, where --help need not wait for them."""

ACCEL = ("auto", "kvm", "tcg")
ALIGNS = {"4K": 4 << 10, "2M": 2 << 20, "1G": 1 << 30}
MAPS = ("dev", "mem")
PREEMPT = ("none", "voluntary", "full", "lazy")
CPUS = 2  # of a guest
