# SPDX-License-Identifier: GPL-2.0-only
"""What the names of scenarios and variants mean."""

import re

Key = tuple[str, str]  # scenario, variant
OURS = "bulkmm"
LIMIT = "limit"  # no peer: nothing can beat it


def split(variant: str) -> tuple[str, str, str]:
    """Return name, number of threads ("-2t"), backend or kind of a variant."""
    way, _, kind = variant.partition(":")
    name, threads, _ = re.split(r"(-\d+t)?$", way, maxsplit=1)
    return name, threads or "", kind
