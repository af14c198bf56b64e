# SPDX-License-Identifier: GPL-2.0-only
#
# Probes the headers of the kernel being built against, never its version:
# distributions backport.

bmm-has = $(if $(shell grep -s $(2) $(srctree)/include/linux/$(3)),-D$(1))

bmm-probes := \
	$(call bmm-has,BMM_HAVE_INIT_PAGEBLOCK,init_pageblock_migratetype,page-isolation.h) \
	$(call bmm-has,BMM_HAVE_GET_DEV_PAGEMAP_PFN,"get_dev_pagemap(unsigned long pfn);",memremap.h) \
	$(call bmm-has,BMM_HAVE_MOVE_ISOLATE,"bool isolate_pageblock",memory_hotplug.h) \
	$(call bmm-has,BMM_HAVE_ALLOC_NOLOCK,"alloc_pages_nolock_noprof.gfp_t",gfp.h) \
	$(call bmm-has,BMM_HAVE_DFL_WQ,"system_dfl_wq;",workqueue.h) \
	$(call bmm-has,BMM_HAVE_FOLIO_FREE,"(\*folio_free)",memremap.h)
