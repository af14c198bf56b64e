# SPDX-License-Identifier: GPL-2.0-only
"""A stock kernel's own machine code, and the module's, in a process."""
