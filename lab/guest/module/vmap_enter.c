// SPDX-License-Identifier: GPL-2.0-only
/*
 * Enters the functions under test by the public functions that lead there. The
 * host compares the module's counters before and after: the number of calls
 * that the path served.
 */
#include <linux/percpu.h>
#include <linux/slab.h>

#include "vmap.h"

#define MOST_CALLS 4096

/* What a call maps: a page array, or @size bytes. */
struct request {
	struct page **pages;
	unsigned long nr;
	unsigned long size;
	phys_addr_t phys;
};

static void unmap_sparse(const struct request *r, struct vm_struct *area)
{
	unsigned long addr = (unsigned long)area->addr;

	bmm_vm_area_unmap_pages(area, addr, addr + r->size);
	free_vm_area(area);
}

static void *map_sparse(const struct request *r)
{
	struct vm_struct *area = bmm_get_vm_area(r->size, BMM_TEST_SPARSE);
	unsigned long addr = area ? (unsigned long)area->addr : 0;

	if (!area ||
	    !bmm_vm_area_map_pages(area, addr, addr + r->size, r->pages))
		return area;
	unmap_sparse(r, area);
	return NULL;
}

/* X(name, the call, its reverse) */
#define ENTRIES(X)                                                          \
	X(vmap, vmap(r->pages, r->nr, VM_MAP, PAGE_KERNEL), vunmap(mapped)) \
	X(vm_map_ram, vm_map_ram(r->pages, r->nr, NUMA_NO_NODE),            \
	  vm_unmap_ram(mapped, r->nr))                                      \
	X(vmalloc, vmalloc(r->size), vfree(mapped))                         \
	X(vmalloc_huge, vmalloc_huge(r->size, GFP_KERNEL), vfree(mapped))   \
	X(ioremap, (void __force *)ioremap(r->phys, r->size),               \
	  iounmap((void __iomem *)mapped))                                  \
	X(vm_area_map_pages, map_sparse(r), unmap_sparse(r, mapped))        \
	X(percpu, (void *)(uintptr_t)__alloc_percpu(r->size, PAGE_SIZE),    \
	  free_percpu((void __percpu *)(uintptr_t)mapped))

#define ENTRY_FUNCTIONS(name, map, unmap)                               \
	static void *map_##name(const struct request *r)                \
	{                                                               \
		return map;                                             \
	}                                                               \
	static void unmap_##name(const struct request *r, void *mapped) \
	{                                                               \
		unmap;                                                  \
	}
ENTRIES(ENTRY_FUNCTIONS)

static const struct entry {
	const char *name;
	void *(*map)(const struct request *r);
	void (*unmap)(const struct request *r, void *mapped);
} entries[] = {
#define ENTRY(name, ...) { #name, map_##name, unmap_##name },
	ENTRIES(ENTRY)
};

static const struct entry *find_entry(const char *name)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(entries); i++)
		if (!strcmp(name, entries[i].name))
			return &entries[i];
	return NULL;
}

/* All are mapped before the first is unmapped. */
static int call_entry(const struct entry *entry, const struct request *r,
		      void **mapped, unsigned int calls)
{
	unsigned int i, nr;

	for (nr = 0; nr < calls; nr++) {
		mapped[nr] = entry->map(r);
		if (!mapped[nr])
			break;
	}
	for (i = 0; i < nr; i++)
		entry->unmap(r, mapped[i]);
	return nr == calls ? 0 : -ENOMEM;
}

/* enter PHYSICAL ADDRESS NAME PAGES CALLS */
int bmm_vmap_enter(struct bmm_vmap *v)
{
	struct request r = { .pages = v->pages.array };
	const struct entry *entry;
	unsigned long long phys;
	unsigned int calls;
	void **mapped;
	char name[24];
	int err;

	if (sscanf(v->words, "%llx %23s %lu %u", &phys, name, &r.nr, &calls) !=
	    4)
		return -EINVAL;
	entry = find_entry(name);
	if (!entry || !r.nr || r.nr > v->pages.nr || !calls ||
	    calls > MOST_CALLS)
		return -EINVAL;
	r.size = r.nr * PAGE_SIZE;
	r.phys = phys;
	mapped = kvmalloc_array(calls, sizeof(*mapped), GFP_KERNEL);
	if (!mapped)
		return -ENOMEM;
	err = call_entry(entry, &r, mapped, calls);
	kvfree(mapped);
	return err;
}
