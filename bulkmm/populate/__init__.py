# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm populate``: memory that is there before its user starts."""
