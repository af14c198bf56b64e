# SPDX-License-Identifier: GPL-2.0-only
"""A stock kernel's own machine code, and the module's, in a process."""

from importlib.util import find_spec

from bulkmm.shell.errors import BulkmmError

NEEDS = ("elftools", "lz4", "vmlinux_to_elf", "zstandard")  # to read kernels

if not all(map(find_spec, NEEDS)):
    raise BulkmmError(
        "bench kernel needs more packages: make build installs them in a checkout"
    )
