// SPDX-License-Identifier: GPL-2.0-only
/*
 * Requests that the kernel refuses. Its errors, its warnings and what it leaves
 * mapped are not judged here: the host compares them between the modes, and
 * expects the warnings in the kernel's log.
 */
#include "vmap.h"

#define SHAPE "10x1p"
#define AT    600 /* index of the bad entry */

static int with(struct bmm_ktap *ktap, const char *name, struct bmm_pages *pages)
{
	unsigned long size = pages->nr * PAGE_SIZE, addr;
	struct vm_struct *area = bmm_get_vm_area(size + PMD_SIZE, VM_SPARSE);
	void *mapped;
	long prefix;
	int err;

	if (!area)
		return -ENOMEM;
	addr = ALIGN((unsigned long)area->addr, PMD_SIZE);
	err = bmm_vm_area_map_pages(area, addr, addr + size, pages->array);
	prefix = bmm_model_prefix(addr, pages->array, pages->nr);
	bmm_vm_area_unmap_pages(area, addr, addr + size);
	free_vm_area(area);
	mapped = vmap(pages->array, pages->nr, VM_MAP, PAGE_KERNEL);
	vunmap(mapped);
	bmm_ktap(ktap, true, "%s # err=%d mapped=%ld vmap=%s", name, err,
		 prefix, mapped ? "mapped" : "refused");
	return 0;
}

static int null_first(struct bmm_ktap *ktap, struct bmm_pages *pages)
{
	pages->array[0] = NULL;
	return with(ktap, "null-first", pages);
}

static int null_middle(struct bmm_ktap *ktap, struct bmm_pages *pages)
{
	pages->array[AT] = NULL;
	return with(ktap, "null-middle", pages);
}

static int null_last(struct bmm_ktap *ktap, struct bmm_pages *pages)
{
	pages->array[pages->nr - 1] = NULL;
	return with(ktap, "null-last", pages);
}

static int zero_count(struct bmm_ktap *ktap, struct bmm_pages *pages)
{
	void *mapped = vmap(pages->array, 0, VM_MAP, PAGE_KERNEL);

	bmm_ktap(ktap, true, "zero-count # vmap=%s",
		 mapped ? "mapped" : "refused");
	vunmap(mapped);
	return 0;
}

static int too_many(struct bmm_ktap *ktap, struct bmm_pages *pages)
{
	void *mapped = vmap(pages->array, totalram_pages() + 1, VM_MAP,
			    PAGE_KERNEL);

	bmm_ktap(ktap, true, "too-many # vmap=%s",
		 mapped ? "mapped" : "refused");
	vunmap(mapped);
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

/* Consecutive PFNs, but from entry AT on there is no memory. */
static int past_memory(struct bmm_ktap *ktap, struct bmm_pages *pages)
{
	unsigned long end = end_of_memory(pages->array[0]), i;

	for (i = 0; i < pages->nr; i++)
		pages->array[i] = pfn_to_page(end - AT + i);
	return with(ktap, "past-memory", pages);
}

static int no_memory(struct bmm_ktap *ktap, struct bmm_pages *pages)
{
	pages->array[AT] = pfn_to_page(end_of_memory(pages->array[0]));
	return with(ktap, "no-memory", pages);
}

/* A page in the middle is mapped already, and has to stay. */
static int present(struct bmm_ktap *ktap, struct bmm_pages *pages)
{
	unsigned long size = pages->nr * PAGE_SIZE, addr, there;
	struct vm_struct *area = bmm_get_vm_area(size + PMD_SIZE, VM_SPARSE);
	struct page *page = pages->array[0];
	int err, first;
	long prefix;

	if (!area)
		return -ENOMEM;
	addr = ALIGN((unsigned long)area->addr, PMD_SIZE);
	there = addr + AT * PAGE_SIZE;
	first = bmm_vm_area_map_pages(area, there, there + PAGE_SIZE, &page);
	err = bmm_vm_area_map_pages(area, addr, addr + size, pages->array);
	prefix = bmm_model_prefix(addr, pages->array, AT);
	bmm_ktap(ktap,
		 !first && vmalloc_to_page((void *)there) == page &&
			 !bmm_leaf_at(there + PAGE_SIZE).size,
		 "present # err=%d mapped=%ld", err, prefix);
	bmm_vm_area_unmap_pages(area, addr, addr + size);
	free_vm_area(area);
	return 0;
}

static const struct {
	const char *name;
	int (*run)(struct bmm_ktap *ktap, struct bmm_pages *pages);
} cases[] = {
	{ "null-first", null_first }, { "null-middle", null_middle },
	{ "null-last", null_last },   { "zero-count", zero_count },
	{ "too-many", too_many },     { "past-memory", past_memory },
	{ "no-memory", no_memory },   { "present", present },
};

/* bad NAME */
int bmm_vmap_bad(char *words, struct seq_buf *out)
{
	struct bmm_ktap ktap = { out };
	struct bmm_pages pages;
	int i, err = bmm_pages_make(&pages, SHAPE);

	if (err)
		return err;
	words[strcspn(words, " \n")] = '\0';
	err = -ENOENT;
	for (i = 0; i < ARRAY_SIZE(cases); i++)
		if (!strcmp(cases[i].name, words))
			err = cases[i].run(&ktap, &pages);
	bmm_pages_free(&pages);
	return err;
}
