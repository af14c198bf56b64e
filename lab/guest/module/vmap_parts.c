// SPDX-License-Identifier: GPL-2.0-only
/*
 * Parts of a mapping are unmapped, or get other attributes: the rest must not
 * change.
 */
#include "vmap.h"
#include "vmap_arch.h"

#define PAGES 1024
#define BYTES (PAGES * PAGE_SIZE)
#define FROM  100 /* the part: pages inside the first PMD mapping */
#define PART  4
#define RAM   64 /* pages: largest vm_map_ram() that shares a vmap block */

static unsigned long at(unsigned long addr, unsigned long page)
{
	return addr + page * PAGE_SIZE;
}

/* Compares pages [from, to) of a mapping with the array. */
static void rest(struct bmm_verdict *verdict, unsigned long addr,
		 struct bmm_pages *pages, unsigned long from, unsigned long to)
{
	bmm_model_mapped(verdict, at(addr, from), pages->array + from,
			 to - from, PAGE_KERNEL, BMM_LARGE_ANY);
}

static void gone(struct bmm_verdict *verdict, unsigned long addr,
		 struct bmm_pages *pages, unsigned long from, unsigned long to)
{
	bmm_model_gone(verdict, at(addr, from), pages->array + from, to - from);
}

static void say(struct bmm_vmap *v, const char *name,
		const struct bmm_verdict *verdict)
{
	bmm_ktap(v, !verdict->wrong && verdict->pages,
		 "%s # pages=%lu wrong=%lu first=%s", name, verdict->pages,
		 verdict->wrong, verdict->wrong ? verdict->first : "none");
}

/* An area that its owner fills and empties page by page, as BPF arenas do. */
static void sparse(struct bmm_vmap *v)
{
	struct bmm_pages *pages = &v->pages;
	struct vm_struct *area = bmm_get_vm_area(BYTES + PMD_SIZE,
						 BMM_TEST_SPARSE);
	struct bmm_verdict verdict = {};
	unsigned long addr;

	if (!area)
		return;
	addr = ALIGN((unsigned long)area->addr, PMD_SIZE);
	if (bmm_vm_area_map_pages(area, addr, addr + BYTES, pages->array))
		bmm_model_wrong(&verdict, "refused", 0, 0, 0);
	bmm_vm_area_unmap_pages(area, at(addr, FROM), at(addr, FROM + PART));
	rest(&verdict, addr, pages, 0, FROM);
	gone(&verdict, addr, pages, FROM, FROM + PART);
	rest(&verdict, addr, pages, FROM + PART, PAGES);
	say(v, "part of a sparse area unmapped", &verdict);
	if (bmm_vm_area_map_pages(area, at(addr, FROM), at(addr, FROM + PART),
				  pages->array + FROM))
		bmm_model_wrong(&verdict, "refused", 0, 0, 0);
	rest(&verdict, addr, pages, 0, PAGES);
	say(v, "part of a sparse area mapped again", &verdict);
	bmm_vm_area_unmap_pages(area, addr, addr + BYTES);
	gone(&verdict, addr, pages, 0, PAGES);
	say(v, "sparse area empty", &verdict);
	free_vm_area(area);
}

/* Two mappings share a vmap block; one is unmapped in two parts. */
static void map_ram(struct bmm_vmap *v)
{
	struct bmm_pages *pages = &v->pages;
	void *mapped = vm_map_ram(pages->array, RAM, NUMA_NO_NODE);
	void *other = vm_map_ram(pages->array, RAM / 2, NUMA_NO_NODE);
	unsigned long addr = (unsigned long)mapped;
	struct bmm_verdict verdict = {};

	if (!mapped || !other)
		bmm_model_wrong(&verdict, "refused", 0, 0, 0);
	if (mapped) {
		vm_unmap_ram((void *)at(addr, RAM / 2), RAM / 2);
		rest(&verdict, addr, pages, 0, RAM / 2);
		gone(&verdict, addr, pages, RAM / 2, RAM);
		vm_unmap_ram(mapped, RAM / 2);
		gone(&verdict, addr, pages, 0, RAM / 2);
	}
	if (other) {
		rest(&verdict, (unsigned long)other, pages, 0, RAM / 2);
		vm_unmap_ram(other, RAM / 2);
		gone(&verdict, (unsigned long)other, pages, 0, RAM / 2);
	}
	say(v, "part of vm_map_ram() unmapped", &verdict);
}

/* parts: mappings unmapped in parts */
int bmm_vmap_parts(struct bmm_vmap *v)
{
	sparse(v);
	map_ram(v);
	return 0;
}

/* Every page of the mapping is right, and writable except in the part. */
static void writable_but(struct bmm_verdict *verdict, unsigned long addr,
			 struct bmm_pages *pages, unsigned long from,
			 unsigned long to)
{
	unsigned long i;

	for (i = 0; i < pages->nr; i++) {
		struct bmm_leaf leaf = bmm_leaf_at(at(addr, i));
		bool wanted = i < from || i >= to;

		if (vmalloc_to_page((void *)at(addr, i)) != pages->array[i])
			bmm_model_wrong(verdict, "page", i, leaf.bits, 0);
		if (!leaf.size || bmm_leaf_writable(leaf) != wanted)
			bmm_model_wrong(verdict, "writable", i, leaf.bits,
					wanted);
	}
	verdict->pages += pages->nr;
}

/* Where the architecture refuses, nothing may change. */
static void change(struct bmm_vmap *v, unsigned long addr)
{
	struct bmm_pages *pages = &v->pages;
	unsigned long part = BMM_ARCH_SET_MEMORY ? 0 : PART;
	unsigned long large = bmm_leaf_at(addr).size;
	struct bmm_verdict verdict = {};
	int err;

	err = bmm_set_memory_ro(at(addr, FROM), PART);
	if (err != BMM_ARCH_SET_MEMORY)
		bmm_model_wrong(&verdict, "ro", 0, err, BMM_ARCH_SET_MEMORY);
	writable_but(&verdict, addr, pages, FROM, FROM + part);
	say(v, "set_memory_ro() on a part", &verdict);
	bmm_ktap(v,
		 bmm_leaf_at(at(addr, FROM)).size == (part ? PAGE_SIZE : large),
		 "the block of the part is %s", part ? "split" : "left whole");
	bmm_ktap(v, bmm_leaf_at(at(addr, PAGES / 2)).size == large,
		 "the other block is whole");
	err = bmm_set_memory_rw(at(addr, FROM), PART);
	if (err != BMM_ARCH_SET_MEMORY)
		bmm_model_wrong(&verdict, "rw", 0, err, BMM_ARCH_SET_MEMORY);
	writable_but(&verdict, addr, pages, 0, 0);
	say(v, "set_memory_rw() on the part", &verdict);
}

/* attributes never|may|always: set_memory_*() on a part of what vmap() made */
int bmm_vmap_attributes(struct bmm_vmap *v)
{
	void *mapped = vmap(v->pages.array, v->pages.nr, VM_MAP, PAGE_KERNEL);
	struct bmm_verdict verdict = { .pages = v->pages.nr };
	unsigned long addr = (unsigned long)mapped, size;
	const char *large = strim(v->words);
	bool may = !strcmp(large, "may");

	if (!mapped)
		return -ENOMEM;
	size = bmm_leaf_at(addr).size;
	bmm_ktap(v, may || (size == PMD_SIZE) == !strcmp(large, "always"),
		 "entries are as large as the mode has them # size=%lu", size);
	change(v, addr);
	vunmap(mapped);
	gone(&verdict, addr, &v->pages, 0, PAGES);
	say(v, "nothing left of it", &verdict);
	return 0;
}
