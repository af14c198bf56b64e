# SPDX-License-Identifier: GPL-2.0-only
"""Copying memory by size, from cold and from hot memory, natively."""

from __future__ import annotations

from bulkmm.bench.sweep import GIB, KIB, MIB, Amount, Subject

SUBJECT = Subject(
    name="copy",
    full=Amount(
        GIB,
        (
            *(4 * KIB, 64 * KIB, 256 * KIB),
            *(MIB, 4 * MIB, 16 * MIB, 64 * MIB, 256 * MIB),
            GIB,
        ),
    ),
    quick=Amount(256 * MIB, (64 * KIB, MIB, 16 * MIB, 64 * MIB)),
    buffers=2,
    suffixes=("", "-again"),
    variants=("glibc", "glibc-again", "libpmem2", "plain", "rep-movsb", "bulkmm"),
    bases=("glibc",),
    peers={"bulkmm": ("glibc", "libpmem2", "plain", "rep-movsb")},
    right="every byte as in the source, none beside it was touched",
    wrong="differs from the source, or touches other bytes",
)
