# SPDX-License-Identifier: GPL-2.0-only
"""The words of the page."""

from bulkmm.results import INTERVAL_LEAST

TERMS = {
    "scenario": "One job, such as bringing up a device of 100 GiB (pmem-fsdax-100g).",
    "variant": "A way to do it. The base is the one that the others are compared with.",
    "stock, rebuild": (
        "The kernel's own code: as it stands in its image, or a model of its loop."
    ),
    "absent, off, on": (
        "In a virtual machine: the module not loaded; loaded and switched off; on."
    ),
    "bulkmm, pte, block": "The module or library, as it picks its way by itself.",
    "limit": "The fastest plain loop of stores for the same bytes: what memory allows.",
    "A/A control": (
        "A variant measured twice, as in stock and stock-again: what chance does."
    ),
    "faster": "Time of the base / time of the variant: at 2 it takes half the time.",
    "fewer": "Share of the base's instructions that the variant does not execute.",
    "n": "Independent samples: processes, each the median of its rounds. In a virtual "
    "machine: visits of one boot, and what they prove is proven of that boot.",
    "(a\N{EN DASH}b)": "95 % interval.",
    "[a\N{EN DASH}b]": f"Lowest and highest, of fewer than {INTERVAL_LEAST} samples.",
    "~": "Not proven: chance alone may look like this.",
    "!": "Unstable: the A/A control moved by more than this ratio.",
    "native": "Run on this CPU, without emulation.",
    "KVM": "Run on this CPU in a virtual machine.",
    "TCG": "An emulated CPU: instructions are counted, times say nothing of hardware.",
    "work": "Instructions and stores that the emulated guest's kernel executed.",
}
