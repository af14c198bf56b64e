# SPDX-License-Identifier: GPL-2.0-only
"""Control of the module: status, diagnosis, switching."""
