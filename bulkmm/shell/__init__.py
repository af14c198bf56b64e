# SPDX-License-Identifier: GPL-2.0-only
"""What every command shares: arguments, errors, files, progress, child processes."""
