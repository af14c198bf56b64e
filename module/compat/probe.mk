# SPDX-License-Identifier: GPL-2.0-only
#
# Probes the headers of the kernel being built against, never its version:
# distributions backport.

bmm-has = $(if $(shell grep -s $(2) $(srctree)/$(3)),-D$(1))

bmm-probes := \
	$(call bmm-has,BMM_HAVE_INIT_PAGEBLOCK,init_pageblock_migratetype,include/linux/page-isolation.h) \
	$(call bmm-has,BMM_HAVE_GET_DEV_PAGEMAP_PFN,"get_dev_pagemap(unsigned long pfn);",include/linux/memremap.h) \
	$(call bmm-has,BMM_HAVE_MOVE_ISOLATE,"bool isolate_pageblock",include/linux/memory_hotplug.h) \
	$(call bmm-has,BMM_HAVE_ALLOC_NOLOCK,"alloc_pages_nolock_noprof.gfp_t",include/linux/gfp.h) \
	$(call bmm-has,BMM_HAVE_DFL_WQ,"system_dfl_wq;",include/linux/workqueue.h) \
	$(call bmm-has,BMM_HAVE_FOLIO_FREE,"(\*folio_free)",include/linux/memremap.h) \
	$(call bmm-has,BMM_HAVE_FOLIO_ORDER,"_folio_order;",include/linux/mm_types.h) \
	$(call bmm-has,BMM_HAVE_FOLIO_ZERO_USER,folio_zero_user,include/linux/mm.h) \
	$(call bmm-has,BMM_HAVE_COPY_LARGE_FOLIO,copy_user_large_folio,include/linux/mm.h) \
	$(call bmm-has,BMM_HAVE_DIRECT_MULTI,register_ftrace_direct_multi,include/linux/ftrace.h) \
	$(call bmm-has,BMM_HAVE_ALTMAP_EXTERN,"^unsigned long vmem_altmap_offset",include/linux/memremap.h) \
	$(call bmm-has,BMM_HAVE_CPUINFO_TOPO,cpuinfo_topology,arch/x86/include/asm/processor.h) \
	$(call bmm-has,BMM_HAVE_ASSIGN_STR_ALONE,"define __assign_str(dst)",include/trace/stages/stage6_event_callback.h) \
	$(call bmm-has,BMM_HAVE_NR_HUGETLB,NR_HUGETLB,include/linux/mmzone.h) \
	$(call bmm-has,BMM_HAVE_HUGETLB_ALLOC,hugetlb_alloc_folio,include/linux/hugetlb.h) \
	$(call bmm-has,BMM_HAVE_VM_SPARSE,VM_SPARSE,include/linux/vmalloc.h) \
	$(call bmm-has,BMM_HAVE_NUMA_NEAREST,numa_nearest_node,include/linux/numa.h)
