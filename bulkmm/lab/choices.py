# SPDX-License-Identifier: GPL-2.0-only
"""Values that lab options accept, kept apart so that --help stays fast."""

ACCEL = ("auto", "kvm", "tcg")
ALIGNS = {"4K": 4 << 10, "2M": 2 << 20, "1G": 1 << 30}
MAPS = ("dev", "mem")
PREEMPT = ("none", "voluntary", "full", "lazy")
CPUS = 2  # of a guest
