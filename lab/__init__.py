# SPDX-License-Identifier: GPL-2.0-only
"""Stock kernels in virtual machines, with and without bulkmm in one boot."""
