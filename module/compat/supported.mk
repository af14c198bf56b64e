# SPDX-License-Identifier: GPL-2.0-only
#
# Refuses kernels of a series that bulkmm was not tested on, and those to which nothing
# could attach. What has been tested is not about what a kernel has, so it goes by
# version, unlike probe.mk. BMM_ANY_KERNEL=1 builds for others, at the builder's own
# risk.

include $(dir $(lastword $(MAKEFILE_LIST)))kernels.mk

bmm-tested := $(sort $(if $(CONFIG_ARM64),$(tested-arm64),$(tested-x86_64)))
bmm-this := $(VERSION).$(PATCHLEVEL)
bmm-known := $(if $(filter $(bmm-this),$(bmm-tested)),y)
bmm-comma := ,
bmm-list := $(subst $() ,$(bmm-comma) ,$(bmm-tested))
bmm-kind = $(if $1,$(if $(findstring clang,$1),Clang,GCC))
bmm-built-by := $(if $(CONFIG_CC_IS_CLANG),Clang,GCC)

# "make clean" reads this without a configuration
ifdef CONFIG_MODULES
ifeq ($(CONFIG_X86_64)$(CONFIG_ARM64),)
$(error bulkmm does not support this architecture: x86-64 and arm64 only)
endif
ifeq ($(bmm-known)$(BMM_ANY_KERNEL),)
$(error bulkmm was not tested on Linux $(bmm-this) here, but on $(bmm-list) (BMM_ANY_KERNEL=1 builds all the same))
endif
bmm-untested := $(strip $(foreach option,$(untested),$(if $(CONFIG_$(option)),CONFIG_$(option))))
ifneq ($(if $(BMM_ANY_KERNEL),,$(bmm-untested)),)
$(error bulkmm was not tested on kernels with $(bmm-untested), as this one (BMM_ANY_KERNEL=1 builds all the same))
endif
ifeq ($(CONFIG_DYNAMIC_FTRACE_WITH_DIRECT_CALLS),)
$(error bulkmm could not attach to this kernel: it lacks CONFIG_DYNAMIC_FTRACE_WITH_DIRECT_CALLS)
endif
ifneq ($(CONFIG_HUGETLB_PAGE)$(CONFIG_ZONE_DEVICE),yy)
$(error bulkmm does not build for this kernel: it lacks $(if $(CONFIG_ZONE_DEVICE),CONFIG_HUGETLB_PAGE,CONFIG_ZONE_DEVICE))
endif
# A call by pointer of what Clang has not seen would be a panic: arm64's static calls
# are such. Kernels before 6.18 call the option CFI_CLANG, and none has been tried.
ifneq ($(and $(CONFIG_CFI),$(CONFIG_ARM64))$(CONFIG_CFI_CLANG),)
ifeq ($(BMM_ANY_KERNEL),)
$(error bulkmm has not been proven on kernels that check indirect calls, as this one: $(if $(CONFIG_CFI_CLANG),CONFIG_CFI_CLANG,CONFIG_CFI on arm64) (BMM_ANY_KERNEL=1 builds all the same))
endif
endif
bmm-compiler := $(call bmm-kind,$(shell $(CC) --version 2>/dev/null))
ifeq ($(bmm-compiler),)
$(error $(bmm-built-by) built this kernel, but CC=$(CC) cannot be run: install it)
endif
ifneq ($(bmm-compiler),$(bmm-built-by))
$(error $(bmm-built-by) built this kernel, but CC is $(bmm-compiler): give make $(if $(CONFIG_CC_IS_CLANG),LLVM=1,CC=gcc))
endif
endif
