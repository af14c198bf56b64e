# SPDX-License-Identifier: GPL-2.0-only
#
# The kernels of bulkmm, read by make and as text by bulkmm/control/requirements.py.

# The only series that the module builds for and loads into: each was built for without
# a warning, compared natively (bulkmm lab kernels) and booted (bulkmm lab matrix).
tested-x86_64 := 6.1 6.12 7.2 7.3
tested-arm64 := 7.3

# Those of them that are booted again for every change, and measured: the default
# first, the newest, whose source the lab's own kernels are built from, last.
# lab/versions.txt pins their releases; of another series the lab takes the newest.
pinned-x86_64 := 6.12 6.1 7.3
pinned-arm64 := 7.3

# Preemption models that Debian's kernel of a series accepts at boot.
models-x86_64-6.12 := none voluntary full
models-x86_64-6.1 := none voluntary full
models-x86_64-7.2 := full lazy
models-x86_64-7.3 := full lazy

# Options that no kernel had that was booted: such kernels are refused.
untested := PREEMPT_RT ARM64_16K_PAGES ARM64_64K_PAGES
