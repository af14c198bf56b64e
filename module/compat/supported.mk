# SPDX-License-Identifier: GPL-2.0-only
#
# Refuses kernels that bulkmm is not tested on. This is about what has been
# proven, not about what a kernel has, so it goes by version, unlike probe.mk.
# BMM_ANY_KERNEL=1 builds for others, at the builder's own risk.

include $(dir $(lastword $(MAKEFILE_LIST)))kernels.mk

bmm-range := $(if $(CONFIG_ARM64),$(range-arm64),$(range-x86_64))
bmm-this := $(VERSION).$(PATCHLEVEL)
bmm-known := $(shell printf '%s\n' $(firstword $(bmm-range)) $(bmm-this) \
	$(lastword $(bmm-range)) | sort -CV && echo y)

# "make clean" reads this without a configuration
ifdef CONFIG_MODULES
ifeq ($(CONFIG_X86_64)$(CONFIG_ARM64),)
$(error bulkmm does not support this architecture: x86-64 and arm64 only)
endif
ifeq ($(bmm-known)$(BMM_ANY_KERNEL),)
$(error bulkmm does not support Linux $(bmm-this) here: $(firstword $(bmm-range)) to $(lastword $(bmm-range)) only (BMM_ANY_KERNEL=1 builds all the same))
endif
endif
