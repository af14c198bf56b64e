# SPDX-License-Identifier: GPL-2.0-only
"""Stock kernels in virtual machines: before and after in one boot."""
