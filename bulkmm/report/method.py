# SPDX-License-Identifier: GPL-2.0-only
"""How the figures are made: what the page says of the method, in few words."""

from bulkmm import facts, panels, published, stats
from bulkmm.results import ALPHA, INTERVAL_LEAST

# A title, a colon and a paragraph each.
TEXT = f"""
Order: All variants of a scenario are run once in each round, in random order
within the round, so that what drifts on the machine hits all of them alike. A
native bench does so in several processes, each with fresh memory, a seed and a
stack of its own. In the lab, the module absent, off and on take turns within one
boot of one stock kernel.

Median: A sample is a process, by the median of its rounds, or a visit in the lab.
Medians have an exact interval of {stats.LEVEL:.0%} from order statistics, whatever
the distribution. Below {INTERVAL_LEAST} samples the whole range does not reach that;
then the range is given, in square brackets.

Ratio: Time of the base / time of the variant, so above 1 the variant is faster.
Of a native bench it is paired: the median of the log-ratios of the rounds, and of
these over the processes. From {INTERVAL_LEAST} processes on it is proven if its
interval lacks 1 and the largest of all ratios of the run is as far from 1 in at most
{ALPHA:.0%} of the ways to turn the signs of the processes (max-T): many comparisons
are corrected for. Below {INTERVAL_LEAST}, if all processes agree and stay beyond all
that the control does, and so many comparisons leave less than {ALPHA:.0%} to chance.
In the lab it is bootstrapped, each arm on its own, and proven by a Mann-Whitney test.

Control: A variant that is measured twice, or the module loaded and off beside no
module, is the control. Its ratio should say ~. A ratio that the control moves by more
than is marked as unstable.

Correctness: Every output is verified outside the timing, native ones byte for
byte; in the lab every struct page against the kernel's own, and every byte of a
cleared page. A check that fails is named above the figures.

Emulation: {facts.COUNTED} Where none was counted: {facts.EMULATED} Less work is
never to be quoted as a speed of hardware.

Published figures: They are those of the cover letters of the series
\N{LEFT DOUBLE QUOTATION MARK}mm: speed up ZONE_DEVICE memmap
initialization\N{RIGHT DOUBLE QUOTATION MARK} on the Linux memory management list,
2026, taken on another machine ({published.MACHINE}), as means of later rebinds.
Compare ratios, not times.

Figures: {panels.HOW_TO_READ}
"""


def method() -> list[tuple[str, str]]:
    """Return titles and paragraphs."""
    parts = (" ".join(part.split()) for part in TEXT.strip().split("\n\n"))
    return [(title, text) for title, _, text in (p.partition(": ") for p in parts)]
