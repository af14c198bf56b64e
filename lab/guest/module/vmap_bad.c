// SPDX-License-Identifier: GPL-2.0-only
/*
 * Requests that the kernel refuses. Its errors, its warnings and what it leaves
 * mapped are not judged here: the host compares them between the modes, and
 * expects the warnings in the kernel's log.
 */
#include "vmap.h"

#define AT 600 /* index of the bad entry */

/* Maps the array; @there: a page in the middle is mapped already, and stays. */
static int with(struct bmm_vmap *v, const char *name, bool there)
{
	struct bmm_pages *pages = &v->pages;
	unsigned long size = pages->nr * PAGE_SIZE, addr, at;
	struct vm_struct *area = bmm_get_vm_area(size + PMD_SIZE,
						 BMM_TEST_SPARSE);
	struct page *page = pages->array[0];
	bool stays = true;
	void *mapped;
	long prefix;
	int err;

	if (!area)
		return -ENOMEM;
	addr = ALIGN((unsigned long)area->addr, PMD_SIZE);
	at = addr + AT * PAGE_SIZE;
	if (there)
		stays = !bmm_vm_area_map_pages(area, at, at + PAGE_SIZE, &page);
	err = bmm_vm_area_map_pages(area, addr, addr + size, pages->array);
	prefix = bmm_model_prefix(addr, pages->array, there ? AT : pages->nr);
	if (there)
		stays &= vmalloc_to_page((void *)at) == page &&
			 !bmm_leaf_at(at + PAGE_SIZE).size;
	bmm_vm_area_unmap_pages(area, addr, addr + size);
	free_vm_area(area);
	mapped = vmap(pages->array, pages->nr, VM_MAP, PAGE_KERNEL);
	vunmap(mapped);
	bmm_ktap(v, stays, "%s # err=%d mapped=%ld vmap=%s", name, err, prefix,
		 mapped ? "mapped" : "refused");
	return 0;
}

/* The first PFN after @page that has no struct page. */
static unsigned long end_of_memory(struct page *page)
{
	unsigned long pfn = page_to_pfn(page);

	while (pfn_valid(pfn))
		pfn = ALIGN_DOWN(pfn, PAGES_PER_SECTION) + PAGES_PER_SECTION;
	return pfn;
}

static int counted(struct bmm_vmap *v, const char *name, unsigned long count)
{
	void *mapped = vmap(v->pages.array, count, VM_MAP, PAGE_KERNEL);

	bmm_ktap(v, true, "%s # vmap=%s", name, mapped ? "mapped" : "refused");
	vunmap(mapped);
	return 0;
}

/* bad NAME */
int bmm_vmap_bad(struct bmm_vmap *v)
{
	const char *name = strim(v->words);
	struct page **array = v->pages.array;
	unsigned long end = end_of_memory(array[0]), i;

	if (!strcmp(name, "zero-count"))
		return counted(v, name, 0);
	if (!strcmp(name, "too-many"))
		return counted(v, name, totalram_pages() + 1);
	if (!strcmp(name, "null-first"))
		array[0] = NULL;
	else if (!strcmp(name, "null-middle"))
		array[AT] = NULL;
	else if (!strcmp(name, "null-last"))
		array[v->pages.nr - 1] = NULL;
	else if (!strcmp(name, "no-memory"))
		array[AT] = pfn_to_page(end);
	else if (!strcmp(name, "past-memory"))
		/* consecutive PFNs, but from entry AT on there is no memory */
		for (i = 0; i < v->pages.nr; i++)
			array[i] = pfn_to_page(end - AT + i);
	else if (strcmp(name, "present"))
		return -ENOENT;
	return with(v, name, !strcmp(name, "present"));
}
