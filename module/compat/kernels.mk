# SPDX-License-Identifier: GPL-2.0-only
#
# The kernels of bulkmm, read by make and as text by bulkmm/control/requirements.py.

# The series that the lab boots, and the only ones that the module builds for and
# loads into: the default first, the newest, whose source the lab's own kernels are
# built from, last. lab/versions.txt pins their releases.
tested-x86_64 := 6.12 6.1 7.3
tested-arm64 := 7.3

# Preemption models that Debian's kernel of a series accepts at boot.
models-x86_64-6.12 := none voluntary full
models-x86_64-6.1 := none voluntary full
models-x86_64-7.3 := full lazy
