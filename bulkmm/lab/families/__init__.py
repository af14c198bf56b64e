# SPDX-License-Identifier: GPL-2.0-only
"""The families of scenarios: what each asks of a guest, and what proves it."""
