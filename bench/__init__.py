# SPDX-License-Identifier: GPL-2.0-only
"""Native benchmark of the core on this machine."""
