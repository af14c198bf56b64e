# SPDX-License-Identifier: GPL-2.0-only
"""A stock kernel's own machine code, and the module's, in a process.

Commands import process, vmlinux and image_calls in functions, once the request is
checked: these load numpy and elftools, which takes longer than all else before a run.
"""

from importlib.util import find_spec

from bulkmm.shell.errors import BulkmmError

NEEDS = ("elftools", "lz4", "vmlinux_to_elf", "zstandard")  # to read kernels

if not all(map(find_spec, NEEDS)):
    raise BulkmmError(
        "bench kernel needs more packages: make build installs them in a checkout"
    )
