# SPDX-License-Identifier: GPL-2.0-only
"""The machines of the lab: kernels, roots, images, guests; what is built for them."""
