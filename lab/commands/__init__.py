# SPDX-License-Identifier: GPL-2.0-only
"""The commands of ``bulkmm lab``, one per module; options: lab.command."""
