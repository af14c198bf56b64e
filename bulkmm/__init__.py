# SPDX-License-Identifier: GPL-2.0-only
"""Memory initialised, cleared and mapped in ranges: control, bench and lab."""
