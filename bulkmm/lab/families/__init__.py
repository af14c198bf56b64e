# SPDX-License-Identifier: GPL-2.0-only
"""The families of scenarios: their jobs in the guest and their checks."""
