// SPDX-License-Identifier: GPL-2.0-only
/*
 * vmap: maps arrays of pages and physical ranges into kernel space, a range at
 * a time.
 *
 * Everything that maps arrays of pages (vmap(), vm_map_ram(), vmalloc(),
 * vm_area_map_pages(), per-CPU memory) ends in one of two kernel functions, and
 * everything that maps physical ranges (ioremap()) in a third. The functions
 * above them are inlined in places: hooks on those would see some callers and
 * miss others.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/static_call.h>
#include <linux/vmalloc.h>

#include "pagetable.h"
#include "trace.h"
#include "vmap_map.h"

/* as in paths.def */
enum mode {
	MODE_PTE = 1,
	MODE_BLOCK
};

enum hook {
	HOOK_PAGES,
	HOOK_RANGE,
	HOOK_AREA,
	HOOK_HUGE /* where there are contpte groups */
};

enum {
	RUNS = BMM_OWN,
	SMALL,
	GROUPS,
	LEAVES,
	FALLBACK_OFF,	 /* switched off after the trampoline's check */
	FALLBACK_ODD,	 /* already mapped; a page is NULL or has no PFN */
	FALLBACK_PROT,	 /* not present: entries would be misread */
	FALLBACK_ALIGN,	 /* not page-aligned, or empty */
	FALLBACK_WALKER, /* the range walker is not hooked */
};

/*
 * From this size on, no array was measured to lose, not even with each page
 * from another section, or into tables that are missing or end in between; half
 * as many pages lost there. Measured on AMD Zen 5 (family 26 model 2) with the
 * code of the kernels 6.12 and 7.3; docs/vmap.md has the figures.
 */
#define SERVED_FROM (64 * PAGE_SIZE)

/* Smallest request that an entry larger than a page can serve. */
#define BLOCKS_FROM (BMM_GROUP > 1 ? BMM_GROUP_SIZE : PMD_SIZE)

/* The range walker, which writes PMD mappings, is known only if hooked. */
static bool vmap_have_walker(void)
{
	return bmm_hook_attached(&bmm_vmap_path.hooks[HOOK_RANGE]);
}

/* Returns a reason to fall back to the original, or -1. */
static int vmap_survey(const struct bmm_mapping *map, unsigned long end,
		       int mode)
{
	unsigned long addr = map->addr;

	if (mode == BMM_OFF)
		return FALLBACK_OFF;
	if (addr >= end || !PAGE_ALIGNED(addr | end))
		return FALLBACK_ALIGN;
	if (!bmm_pagetable_present(map->prot))
		return FALLBACK_PROT;
	if (map->kind == BMM_VMAP_RANGE &&
	    (!PAGE_ALIGNED(map->phys) ||
	     !bmm_pagetable_linear(map->phys, end - addr)))
		return FALLBACK_ALIGN;
	if (map->kind == BMM_VMAP_GROUPS && !vmap_have_walker())
		return FALLBACK_WALKER;
	if (map->kind == BMM_VMAP_GROUPS &&
	    !IS_ALIGNED(addr | end, BMM_GROUP_SIZE))
		return FALLBACK_ALIGN;
	return -1;
}

/* Whether entries larger than a page may be used. */
static bool vmap_may_block(const struct bmm_mapping *map, unsigned long end,
			   int mode)
{
	if (map->kind != BMM_VMAP_PAGES)
		return BIT(map->shift) >= BMM_GROUP_SIZE;
	return mode == MODE_BLOCK && end - map->addr >= BLOCKS_FROM &&
	       vmap_have_walker() && bmm_vmap_blocks_allowed(map->addr);
}

/*
 * Reading the clock twice costs as much as some ten pages: of short requests,
 * one in 16 is timed. Returns how many requests its time stands for.
 */
static unsigned int vmap_timed(unsigned long bytes)
{
	if (bytes >= PMD_SIZE || trace_vmap_enabled())
		return 1;
	return this_cpu_read(bmm_vmap_path.counters->n[BMM_HITS]) % 16 ? 0 : 16;
}

static int vmap_serve(struct bmm_mapping *map, unsigned long end, int mode)
{
	unsigned long addr = map->addr;
	unsigned int timed = vmap_timed(end - addr);
	u64 ns = timed ? ktime_get_mono_fast_ns() : 0;
	int err;

	map->blocks = vmap_may_block(map, end, mode);
	err = bmm_vmap_map(map, end);
	if (timed)
		ns = (ktime_get_mono_fast_ns() - ns) * timed;
	if (map->odd)
		bmm_path_count(&bmm_vmap_path, FALLBACK_ODD, 1);
	bmm_path_served(&bmm_vmap_path, end - addr, ns);
	bmm_path_count(&bmm_vmap_path, RUNS, map->runs);
	bmm_path_count(&bmm_vmap_path, SMALL, map->small);
	bmm_path_count(&bmm_vmap_path, GROUPS, map->groups);
	bmm_path_count(&bmm_vmap_path, LEAVES, map->leaves);
	trace_vmap(map, addr, (end - addr) >> PAGE_SHIFT, ns);
	return err;
}

/* Inlined, so that each handler counts its call first (path.h). */
static __always_inline int vmap_handle(struct bmm_mapping *map,
				       unsigned long end)
{
	int mode, reason, err;

	bmm_path_enter(&bmm_vmap_path);
	mode = READ_ONCE(bmm_vmap_path.mode);
	reason = vmap_survey(map, end, mode);
	if (reason < 0) {
		err = vmap_serve(map, end, mode);
	} else {
		bmm_path_count(&bmm_vmap_path, reason, 1);
		err = bmm_vmap_by_kernel(map, end);
	}
	bmm_path_leave(&bmm_vmap_path);
	return err;
}

static int vmap_pages(unsigned long addr, unsigned long end, pgprot_t prot,
		      struct page **pages)
{
	struct bmm_mapping map = {
		.kind = BMM_VMAP_PAGES,
		.addr = addr,
		.pages = pages,
		.prot = prot,
		.shift = PMD_SHIFT,
	};

	return vmap_handle(&map, end);
}

#ifdef CONFIG_CC_IS_GCC
/* Entered in place of vmap_small_pages_range_noflush(). */
int bmm_vmap_pages_handler(unsigned long addr, unsigned long end, pgprot_t prot,
			   struct page **pages)
{
	return vmap_pages(addr, end, prot, pages);
}
#else
/* Entered in place of its caller, which maps huge pages by vmap_range_noflush(). */
int bmm_vmap_pages_handler(unsigned long addr, unsigned long end, pgprot_t prot,
			   struct page **pages, unsigned int page_shift)
{
	int err;

	if (page_shift == PAGE_SHIFT)
		return vmap_pages(addr, end, prot, pages);
	bmm_path_enter(&bmm_vmap_path);
	err = static_call(bmm_vmap_pages_original)(addr, end, prot, pages,
						   page_shift);
	bmm_path_leave(&bmm_vmap_path);
	return err;
}
#endif

/* Entered in place of vmap_range_noflush(). */
int bmm_vmap_range_handler(unsigned long addr, unsigned long end,
			   phys_addr_t phys, pgprot_t prot,
			   unsigned int max_page_shift)
{
	struct bmm_mapping map = {
		.kind = BMM_VMAP_RANGE,
		.addr = addr,
		.phys = phys,
		.prot = prot,
		.shift = max_page_shift,
	};

	return vmap_handle(&map, end);
}

#ifdef CONFIG_ARM64
/*
 * Entered in place of __vmap_pages_range_noflush() for vmalloc() with huge
 * pages of the size of a contpte group.
 */
int bmm_vmap_huge_handler(unsigned long addr, unsigned long end, pgprot_t prot,
			  struct page **pages, unsigned int page_shift)
{
	struct bmm_mapping map = {
		.kind = BMM_VMAP_GROUPS,
		.addr = addr,
		.pages = pages,
		.prot = prot,
		.shift = page_shift,
	};

	return vmap_handle(&map, end);
}
#endif

/*
 * Entered in place of get_vm_area_caller(), which vmap() and ioremap() call.
 * The kernel aligns the areas of ioremap() itself.
 */
struct vm_struct *bmm_vmap_area_handler(unsigned long size, unsigned long flags,
					const void *caller)
{
	struct vm_struct *area = NULL;

	bmm_path_enter(&bmm_vmap_path);
	if (READ_ONCE(bmm_vmap_path.mode) == MODE_BLOCK && !(flags & VM_IOREMAP))
		area = bmm_vmap_aligned_area(size, flags, caller);
	if (!area)
		area = static_call(bmm_vmap_area_original)(size, flags, caller);
	bmm_path_leave(&bmm_vmap_path);
	return area;
}

/* Whether struct pages are as BMM_MEMMAP_BYTES has them. */
static bool vmap_memmap_fits(void)
{
	return !((uintptr_t)pfn_to_page(0) % BMM_MEMMAP_BYTES);
}

/*
 * With 16 or 64 KiB pages (arm64) a block is larger than a subsection, and its
 * PFNs may differ in validity from the first: not supported here.
 */
#define BLOCK_IS_SUBSECTION (PMD_SIZE == PAGES_PER_SUBSECTION * PAGE_SIZE)

static int vmap_prepare(void)
{
	if (!BLOCK_IS_SUBSECTION || !vmap_memmap_fits() ||
	    !bmm_pagetable_writable())
		return -EOPNOTSUPP;
	bmm_vmap_block_prepare();
	return 0;
}

struct bmm_path bmm_vmap_path = {
	BMM_PATH_NAMED(vmap),
	.prepare = vmap_prepare,
	.hooks = {
		[HOOK_PAGES] = {
			BMM_HOOK(vmap_pages),
			.on_from = SERVED_FROM,
		},
		[HOOK_RANGE] = {
			BMM_HOOK(vmap_range),
			.on_from = SERVED_FROM,
		},
		[HOOK_AREA] = {
			BMM_HOOK(vmap_area),
			.on_from = BLOCKS_FROM,
			.first_mode = MODE_BLOCK,
		},
#ifdef CONFIG_ARM64
		[HOOK_HUGE] = {
			BMM_HOOK(vmap_huge),
			.on_from = 2 * BMM_GROUP_SIZE,
		},
#endif
	},
	.names[BMM_NS] = "ns",
	.names[RUNS] = "runs",
	.names[SMALL] = "leaves_pte",
	.names[GROUPS] = BMM_GROUP > 1 ? "leaves_contpte" : NULL,
	.names[LEAVES] = "leaves_pmd",
	.names[FALLBACK_OFF] = "fallback_off",
	.names[FALLBACK_ODD] = "fallback_odd",
	.names[FALLBACK_PROT] = "fallback_prot",
	.names[FALLBACK_ALIGN] = "fallback_align",
	.names[FALLBACK_WALKER] = "fallback_walker",
};
