# SPDX-License-Identifier: GPL-2.0-only
"""Bulk memory management by the range: lab, bench and control."""
