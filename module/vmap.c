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

#include "control.h"
#include "pagetable.h"
#include "trace.h"
#include "vmap.h"
#include "vmap_map.h"

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

enum reason {
	REASON_OFF,    /* switched off after the trampoline's check */
	REASON_ODD,    /* already mapped; a page is NULL or has no PFN */
	REASON_PROT,   /* not present: entries would be misread */
	REASON_ALIGN,  /* not page-aligned, or empty */
	REASON_WALKER, /* the range walker is not hooked */
};

DEFINE_STATIC_CALL_NULL(bmm_vmap_pages, *(bmm_vmap_pages_fn *)NULL);
DEFINE_STATIC_CALL_NULL(bmm_vmap_range, *(bmm_vmap_range_fn *)NULL);
DEFINE_STATIC_CALL_NULL(bmm_vmap_area, *(bmm_vmap_area_fn *)NULL);

static_assert(__same_type(bmm_vmap_pages_handler, bmm_vmap_pages_fn));
static_assert(__same_type(bmm_vmap_range_handler, bmm_vmap_range_fn));
static_assert(__same_type(bmm_vmap_huge_handler, bmm_vmap_huge_fn));
static_assert(__same_type(bmm_vmap_area_handler, bmm_vmap_area_fn));

unsigned long bmm_vmap_pages_threshold = BMM_HOOK_PASS;
unsigned long bmm_vmap_range_threshold = BMM_HOOK_PASS;
unsigned long bmm_vmap_area_threshold = BMM_HOOK_PASS;

/*
 * From this size on, no array was measured to lose, not even with each page
 * from another section, or into tables that are missing or end in between; half
 * as many pages lost there. Measured on AMD Zen 5 (family 26 model 2) with the
 * code of the kernels 6.12 and 7.3; docs/vmap.md has the figures.
 */
#define SERVED_FROM (64 * PAGE_SIZE)

/* Smallest request that an entry larger than a page can serve. */
#define BLOCKS_FROM (BMM_GROUP > 1 ? BMM_GROUP_SIZE : PMD_SIZE)

enum counter {
	RUNS = BMM_OWN,
	SMALL,
	GROUPS,
	LEAVES
};

/* Returns a reason to fall back to the original, or -1. */
static int vmap_survey(int mode, unsigned long addr, unsigned long end,
		       pgprot_t prot)
{
	if (mode == BMM_OFF)
		return REASON_OFF;
	if (addr >= end || !PAGE_ALIGNED(addr | end))
		return REASON_ALIGN;
	if (!bmm_pagetable_present(prot))
		return REASON_PROT;
	return -1;
}

/* The same for a physical range. */
static int vmap_survey_range(phys_addr_t phys, unsigned long size)
{
	if (!PAGE_ALIGNED(phys) || !bmm_pagetable_linear(phys, size))
		return REASON_ALIGN;
	return -1;
}

/* The range walker, which writes PMD mappings, is known only if hooked. */
static bool vmap_have_walker(void)
{
	return bmm_hook_attached(&bmm_vmap.hooks[HOOK_RANGE]);
}

static void vmap_account(const struct bmm_mapping *map, unsigned long addr,
			 unsigned long end, u64 ns)
{
	if (map->odd)
		bmm_path_fallback(&bmm_vmap, REASON_ODD);
	bmm_path_served(&bmm_vmap, end - addr, ns);
	bmm_path_count(&bmm_vmap, RUNS, map->runs);
	bmm_path_count(&bmm_vmap, SMALL, map->small);
	bmm_path_count(&bmm_vmap, GROUPS, map->groups);
	bmm_path_count(&bmm_vmap, LEAVES, map->leaves);
	trace_vmap(map, addr, (end - addr) >> PAGE_SHIFT, ns);
}

/*
 * Reading the clock twice costs as much as some ten pages: of short requests,
 * one in 16 is timed. Returns how many requests its time stands for.
 */
static u64 vmap_timed(unsigned long addr, unsigned long end)
{
	if (end - addr >= PMD_SIZE || trace_vmap_enabled())
		return 1;
	return this_cpu_read(bmm_vmap.counters->n[BMM_HITS]) % 16 ? 0 : 16;
}

static u64 vmap_clock(u64 timed)
{
	return timed ? ktime_get_mono_fast_ns() : 0;
}

static int vmap_serve_pages(unsigned long addr, unsigned long end,
			    pgprot_t prot, struct page **pages, bool blocks)
{
	struct bmm_mapping map = { .prot = prot };
	u64 timed = vmap_timed(addr, end), begun = vmap_clock(timed);
	int err;

	map.blocks = blocks && end - addr >= BLOCKS_FROM &&
		     vmap_have_walker() && bmm_vmap_blocks_allowed(addr);
	err = bmm_vmap_map_pages(&map, addr, end, pages);
	vmap_account(&map, addr, end, (vmap_clock(timed) - begun) * timed);
	return err;
}

/* Entered in place of vmap_small_pages_range_noflush(). */
int bmm_vmap_pages_handler(unsigned long addr, unsigned long end, pgprot_t prot,
			   struct page **pages)
{
	int mode = READ_ONCE(bmm_vmap.mode);
	int reason, err;

	bmm_path_enter(&bmm_vmap);
	reason = vmap_survey(mode, addr, end, prot);
	if (reason < 0) {
		err = vmap_serve_pages(addr, end, prot, pages,
				       mode == MODE_BLOCK);
	} else {
		bmm_path_fallback(&bmm_vmap, reason);
		err = static_call(bmm_vmap_pages)(addr, end, prot, pages);
	}
	bmm_path_leave(&bmm_vmap);
	return err;
}

static int vmap_serve_range(unsigned long addr, unsigned long end,
			    phys_addr_t phys, pgprot_t prot,
			    unsigned int max_page_shift)
{
	struct bmm_mapping map = { .prot = prot };
	u64 timed = vmap_timed(addr, end), begun = vmap_clock(timed);
	int err;

	err = bmm_vmap_map_range(&map, addr, end, phys, max_page_shift);
	vmap_account(&map, addr, end, (vmap_clock(timed) - begun) * timed);
	return err;
}

/* Entered in place of vmap_range_noflush(). */
int bmm_vmap_range_handler(unsigned long addr, unsigned long end,
			   phys_addr_t phys, pgprot_t prot,
			   unsigned int max_page_shift)
{
	int mode = READ_ONCE(bmm_vmap.mode);
	int reason, err;

	bmm_path_enter(&bmm_vmap);
	reason = vmap_survey(mode, addr, end, prot);
	if (reason < 0)
		reason = vmap_survey_range(phys, end - addr);
	if (reason < 0) {
		err = vmap_serve_range(addr, end, phys, prot, max_page_shift);
	} else {
		bmm_path_fallback(&bmm_vmap, reason);
		err = static_call(bmm_vmap_range)(addr, end, phys, prot,
						  max_page_shift);
	}
	bmm_path_leave(&bmm_vmap);
	return err;
}

#ifdef CONFIG_ARM64
DEFINE_STATIC_CALL_NULL(bmm_vmap_huge, *(bmm_vmap_huge_fn *)NULL);

unsigned long bmm_vmap_huge_threshold = BMM_HOOK_PASS;

static int vmap_serve_groups(unsigned long addr, unsigned long end,
			     pgprot_t prot, struct page **pages)
{
	struct bmm_mapping map = { .prot = prot };
	u64 timed = vmap_timed(addr, end), begun = vmap_clock(timed);
	int err;

	err = bmm_vmap_map_groups(&map, addr, end, pages);
	vmap_account(&map, addr, end, (vmap_clock(timed) - begun) * timed);
	return err;
}

/*
 * Entered in place of __vmap_pages_range_noflush() for vmalloc() with huge
 * pages of the size of a contpte group.
 */
int bmm_vmap_huge_handler(unsigned long addr, unsigned long end, pgprot_t prot,
			  struct page **pages, unsigned int page_shift)
{
	int mode = READ_ONCE(bmm_vmap.mode);
	int reason, err;

	bmm_path_enter(&bmm_vmap);
	reason = vmap_survey(mode, addr, end, prot);
	if (reason < 0 && !vmap_have_walker())
		reason = REASON_WALKER;
	if (reason < 0 && !IS_ALIGNED(addr | end, BMM_GROUP_SIZE))
		reason = REASON_ALIGN;
	if (reason < 0) {
		err = vmap_serve_groups(addr, end, prot, pages);
	} else {
		bmm_path_fallback(&bmm_vmap, reason);
		err = static_call(bmm_vmap_huge)(addr, end, prot, pages,
						 page_shift);
	}
	bmm_path_leave(&bmm_vmap);
	return err;
}

static void vmap_set_huge(unsigned long address)
{
	static_call_update(bmm_vmap_huge, (void *)address);
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

	bmm_path_enter(&bmm_vmap);
	if (READ_ONCE(bmm_vmap.mode) == MODE_BLOCK && !(flags & VM_IOREMAP))
		area = bmm_vmap_aligned_area(size, flags, caller);
	if (!area)
		area = static_call(bmm_vmap_area)(size, flags, caller);
	bmm_path_leave(&bmm_vmap);
	return area;
}

#define COUNTER(_name, _index)                            \
	static struct bmm_attribute _name##_attr = {      \
		.attr = { .name = #_name, .mode = 0444 }, \
		.show = bmm_counter_show,                 \
		.index = (_index),                        \
	}

COUNTER(runs, RUNS);
COUNTER(leaves_pte, SMALL);
COUNTER(leaves_contpte, GROUPS);
COUNTER(leaves_pmd, LEAVES);

static void vmap_set_pages(unsigned long address)
{
	static_call_update(bmm_vmap_pages, (void *)address);
}

static void vmap_set_range(unsigned long address)
{
	static_call_update(bmm_vmap_range, (void *)address);
}

static void vmap_set_area(unsigned long address)
{
	static_call_update(bmm_vmap_area, (void *)address);
}

/*
 * With 16 or 64 KiB pages (arm64) a block is larger than a subsection, and its
 * PFNs may differ in validity from the first: not supported here.
 */
#define BLOCK_IS_SUBSECTION (PMD_SIZE == PAGES_PER_SUBSECTION * PAGE_SIZE)

static int vmap_prepare(const char **symbol)
{
	*symbol = BMM_NAME_IF_SET(CONFIG_KMSAN);
	if (*symbol || !BLOCK_IS_SUBSECTION || !bmm_pagetable_writable())
		return -EOPNOTSUPP;
	return bmm_vmap_block_prepare(symbol);
}

static const char *const modes[] = { "off", [MODE_PTE] = "pte",
				     [MODE_BLOCK] = "block", NULL };

struct bmm_path bmm_vmap = {
	.name = "vmap",
	.modes = modes,
	.prepare = vmap_prepare,
	.extras = { &runs_attr, &leaves_pte_attr, &leaves_pmd_attr,
		    BMM_GROUP > 1 ? &leaves_contpte_attr : NULL },
	.hooks = {
		[HOOK_PAGES] = {
			.symbol = "vmap_small_pages_range_noflush",
			.prototype = bmm_vmap_pages_prototype,
			.trampoline = bmm_vmap_pages_trampoline,
			.threshold = &bmm_vmap_pages_threshold,
			.on_from = SERVED_FROM,
			.set_original = vmap_set_pages,
		},
		[HOOK_RANGE] = {
			.symbol = "vmap_range_noflush",
			.prototype = bmm_vmap_range_prototype,
			.trampoline = bmm_vmap_range_trampoline,
			.threshold = &bmm_vmap_range_threshold,
			.on_from = SERVED_FROM,
			.set_original = vmap_set_range,
		},
		[HOOK_AREA] = {
			.symbol = "get_vm_area_caller",
			.prototype = bmm_vmap_area_prototype,
			.trampoline = bmm_vmap_area_trampoline,
			.threshold = &bmm_vmap_area_threshold,
			.on_from = BLOCKS_FROM,
			.first_mode = MODE_BLOCK,
			.set_original = vmap_set_area,
		},
#ifdef CONFIG_ARM64
		[HOOK_HUGE] = {
			.symbol = "__vmap_pages_range_noflush",
			.prototype = bmm_vmap_huge_prototype,
			.trampoline = bmm_vmap_huge_trampoline,
			.threshold = &bmm_vmap_huge_threshold,
			.on_from = 2 * BMM_GROUP_SIZE,
			.set_original = vmap_set_huge,
		},
#endif
	},
	.reasons = {
		[REASON_OFF] = "off",
		[REASON_ODD] = "odd",
		[REASON_PROT] = "prot",
		[REASON_ALIGN] = "align",
		[REASON_WALKER] = "walker",
	},
};
