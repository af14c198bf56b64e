# SPDX-License-Identifier: GPL-2.0-only
"""Control of the module: what it does, what it could do here, switching it."""
