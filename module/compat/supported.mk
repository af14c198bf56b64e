# SPDX-License-Identifier: GPL-2.0-only
#
# The kernels that bulkmm is tested on. This is about what has been proven, not
# about what a kernel has, so it goes by version, unlike probe.mk.
# BMM_ANY_KERNEL=1 builds for others, at the builder's own risk.

bmm-oldest := 6012
bmm-newest := 7003
ifdef CONFIG_ARM64
bmm-oldest := 7000
endif

bmm-kernel := $(shell echo $$(($(VERSION) * 1000 + $(PATCHLEVEL))))
bmm-known := $(shell [ $(bmm-kernel) -ge $(bmm-oldest) ] && \
	[ $(bmm-kernel) -le $(bmm-newest) ] && echo y)
bmm-name = $(shell echo $$(($(1) / 1000)).$$(($(1) % 1000)))

# "make clean" reads this without a configuration
ifdef CONFIG_MODULES
ifeq ($(CONFIG_X86_64)$(CONFIG_ARM64),)
$(error bulkmm does not support this architecture: x86-64 and arm64 only)
endif
ifeq ($(bmm-known)$(BMM_ANY_KERNEL),)
$(error bulkmm does not support Linux $(VERSION).$(PATCHLEVEL) here: $(call bmm-name,$(bmm-oldest)) to $(call bmm-name,$(bmm-newest)) only (BMM_ANY_KERNEL=1 builds all the same))
endif
endif
