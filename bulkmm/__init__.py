# SPDX-License-Identifier: GPL-2.0-only
"""Initialise, clear and map memory in ranges: control, bench and lab."""
