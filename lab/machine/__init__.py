# SPDX-License-Identifier: GPL-2.0-only
"""The lab's machines: kernels, roots, images, guests, and what they need built."""
