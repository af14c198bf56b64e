# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm populate``: make memory resident before its user starts."""
