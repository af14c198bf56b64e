# SPDX-License-Identifier: GPL-2.0-only
"""Results as one page to quote from."""
