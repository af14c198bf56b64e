# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm worth``: what this machine would gain, before anything is loaded."""
