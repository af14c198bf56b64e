// SPDX-License-Identifier: GPL-2.0-only
/*
 * Unexported functions of the kernel, reached by static calls: a call through a
 * pointer would trap where IBT has sealed their landing pads. The call lands on
 * the patch site, so hooks see it like any other.
 */
#include <linux/io.h>
#include <linux/static_call.h>

#include "../symbols.h"
#include "vmap.h"

/* mm/internal.h; before 7.0 without @gfp, which is ignored there. */
typedef int pages_range_fn(unsigned long addr, unsigned long end, pgprot_t prot,
			   struct page **pages, unsigned int page_shift,
			   gfp_t gfp);
typedef void vunmap_range_fn(unsigned long addr, unsigned long end);
typedef int set_memory_fn(unsigned long addr, int numpages);

DEFINE_STATIC_CALL_NULL(get_area, get_vm_area);
DEFINE_STATIC_CALL_NULL(find_area, find_vm_area);
DEFINE_STATIC_CALL_NULL(map_pages, vm_area_map_pages);
DEFINE_STATIC_CALL_NULL(unmap_pages, vm_area_unmap_pages);
DEFINE_STATIC_CALL_NULL(pages_range, *(pages_range_fn *)NULL);
DEFINE_STATIC_CALL_NULL(page_range, vmap_page_range);
DEFINE_STATIC_CALL_NULL(unmap_range, *(vunmap_range_fn *)NULL);
DEFINE_STATIC_CALL_NULL(make_ro, *(set_memory_fn *)NULL);
DEFINE_STATIC_CALL_NULL(make_rw, *(set_memory_fn *)NULL);

#define RESOLVE(call, symbol)                                            \
	do {                                                             \
		long entry = bmm_symbol_entry(symbol);                   \
                                                                         \
		if (IS_ERR_VALUE(entry)) {                               \
			pr_err("bulkmm_vmaptest: no %s (%ld)\n", symbol, \
			       entry);                                   \
			return entry;                                    \
		}                                                        \
		static_call_update(call, (void *)entry);                 \
	} while (0)

/* Return: 0, or a negative errno and a line in the log. */
int bmm_vmap_symbols(void)
{
	RESOLVE(get_area, "get_vm_area");
	RESOLVE(find_area, "find_vm_area");
	RESOLVE(map_pages, "vm_area_map_pages");
	RESOLVE(unmap_pages, "vm_area_unmap_pages");
	RESOLVE(pages_range, "vmap_pages_range_noflush");
	RESOLVE(page_range, "vmap_page_range");
	RESOLVE(unmap_range, "vunmap_range");
	RESOLVE(make_ro, "set_memory_ro");
	RESOLVE(make_rw, "set_memory_rw");
	return 0;
}

struct vm_struct *bmm_get_vm_area(unsigned long size, unsigned long flags)
{
	return static_call(get_area)(size, flags);
}

struct vm_struct *bmm_find_vm_area(const void *addr)
{
	return static_call(find_area)(addr);
}

int bmm_vm_area_map_pages(struct vm_struct *area, unsigned long start,
			  unsigned long end, struct page **pages)
{
	return static_call(map_pages)(area, start, end, pages);
}

void bmm_vm_area_unmap_pages(struct vm_struct *area, unsigned long start,
			     unsigned long end)
{
	static_call(unmap_pages)(area, start, end);
}

int bmm_vmap_pages_range(unsigned long addr, unsigned long end, pgprot_t prot,
			 struct page **pages, unsigned int page_shift)
{
	return static_call(pages_range)(addr, end, prot, pages, page_shift,
					GFP_KERNEL);
}

int bmm_vmap_page_range(unsigned long addr, unsigned long end,
			phys_addr_t phys_addr, pgprot_t prot)
{
	return static_call(page_range)(addr, end, phys_addr, prot);
}

void bmm_vunmap_range(unsigned long addr, unsigned long end)
{
	static_call(unmap_range)(addr, end);
}

int bmm_set_memory_ro(unsigned long addr, int numpages)
{
	return static_call(make_ro)(addr, numpages);
}

int bmm_set_memory_rw(unsigned long addr, int numpages)
{
	return static_call(make_rw)(addr, numpages);
}
