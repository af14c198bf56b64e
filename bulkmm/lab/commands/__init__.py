# SPDX-License-Identifier: GPL-2.0-only
"""What ``bulkmm lab`` does, a command a module; bulkmm.lab.command has the options."""
