# SPDX-License-Identifier: GPL-2.0-only
"""Results: their model, statistics and tables."""
