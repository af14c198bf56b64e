# SPDX-License-Identifier: GPL-2.0-only
"""Pools of huge pages (hugetlb): seen, grown in parallel, shrunk."""
