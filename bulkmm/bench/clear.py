# SPDX-License-Identifier: GPL-2.0-only
"""Clearing memory by extent, and what it costs the next user, natively."""

from __future__ import annotations

from bulkmm.bench.sweep import GIB, KIB, MIB, Amount, Subject

CACHING = ("rep-stosb", "rep-stosb-4k", "glibc", "plain")

SUBJECT = Subject(
    name="clear",
    full=Amount(GIB, (4 * KIB, 64 * KIB, 256 * KIB, 2 * MIB, 32 * MIB, GIB)),
    quick=Amount(256 * MIB, (4 * KIB, 2 * MIB, 32 * MIB)),
    buffers=1,
    suffixes=("", "-then-read", "-then-write", "-then-random"),
    variants=(
        "rep-stosb",
        "rep-stosb-again",
        "rep-stosb-4k",
        "glibc",
        "glibc-again",
        "libpmem2",
        "plain",
        "bulkmm-cached",
        "bulkmm-streaming",
    ),
    bases=("rep-stosb", "glibc"),
    peers={
        # what goes around the cache does another job than the cached call
        "bulkmm-cached": CACHING,
        "bulkmm-streaming": (*CACHING, "libpmem2"),
    },
    right="every byte is zero, none beside it was touched",
    wrong="leaves bytes not zero, or touches others",
)
