// SPDX-License-Identifier: GPL-2.0-only
/*
 * Enters the functions under test once, by each public function that leads
 * there: the host compares the module's counters before and after.
 */
#include <linux/io.h>
#include <linux/percpu.h>

#include "vmap.h"

#define PAGES 1024
#define BYTES (PAGES * PAGE_SIZE)
#define RANGE (1UL << 20) /* too short for PMDs, which the kernel serves */
#define SHAPE "10x1p"	  /* of PAGES pages, contiguous */
#define PERCPU_BYTES 32768
#define PERCPU_MANY  256 /* more than any chunk can hold */

static int enter_vmap(struct bmm_pages *pages, phys_addr_t phys)
{
	void *mapped = vmap(pages->array, pages->nr, VM_MAP, PAGE_KERNEL);

	vunmap(mapped);
	return mapped ? 0 : -ENOMEM;
}

static int enter_map_ram(struct bmm_pages *pages, phys_addr_t phys)
{
	void *mapped = vm_map_ram(pages->array, pages->nr, NUMA_NO_NODE);

	if (!mapped)
		return -ENOMEM;
	vm_unmap_ram(mapped, pages->nr);
	return 0;
}

static int enter_vmalloc(struct bmm_pages *pages, phys_addr_t phys)
{
	void *memory = vmalloc(BYTES);

	vfree(memory);
	return memory ? 0 : -ENOMEM;
}

static int enter_vmalloc_huge(struct bmm_pages *pages, phys_addr_t phys)
{
	void *memory = vmalloc_huge(RANGE, GFP_KERNEL);

	vfree(memory);
	return memory ? 0 : -ENOMEM;
}

static int enter_sparse(struct bmm_pages *pages, phys_addr_t phys)
{
	struct vm_struct *area = bmm_get_vm_area(BYTES, BMM_TEST_SPARSE);
	unsigned long addr;
	int err;

	if (!area)
		return -ENOMEM;
	addr = (unsigned long)area->addr;
	err = bmm_vm_area_map_pages(area, addr, addr + BYTES, pages->array);
	bmm_vm_area_unmap_pages(area, addr, addr + BYTES);
	free_vm_area(area);
	return err;
}

static int enter_ioremap(struct bmm_pages *pages, phys_addr_t phys)
{
	void __iomem *mapped = ioremap(phys, RANGE);

	if (!mapped)
		return -ENOMEM;
	iounmap(mapped);
	return 0;
}

static int enter_percpu(struct bmm_pages *pages, phys_addr_t phys)
{
	static void __percpu *memory[PERCPU_MANY];
	unsigned int nr;

	for (nr = 0; nr < PERCPU_MANY; nr++) {
		memory[nr] = __alloc_percpu(PERCPU_BYTES, PAGE_SIZE);
		if (!memory[nr])
			break;
	}
	while (nr)
		free_percpu(memory[--nr]);
	return memory[0] ? 0 : -ENOMEM;
}

static const struct {
	const char *name;
	int (*enter)(struct bmm_pages *pages, phys_addr_t phys);
} entries[] = {
	{ "vmap", enter_vmap },
	{ "vm_map_ram", enter_map_ram },
	{ "vmalloc", enter_vmalloc },
	{ "vmalloc_huge", enter_vmalloc_huge },
	{ "vm_area_map_pages", enter_sparse },
	{ "ioremap", enter_ioremap },
	{ "percpu", enter_percpu },
};

/* enter NAME PHYSICAL ADDRESS */
int bmm_vmap_enter(char *words, struct seq_buf *out)
{
	unsigned long long phys;
	struct bmm_pages pages;
	char name[24];
	int i, err = bmm_pages_make(&pages, SHAPE);

	if (err)
		return err;
	err = sscanf(words, "%23s %llx", name, &phys) == 2 ? -ENOENT : -EINVAL;
	for (i = 0; i < ARRAY_SIZE(entries) && err != -EINVAL; i++)
		if (!strcmp(entries[i].name, name))
			err = entries[i].enter(&pages, phys);
	bmm_pages_free(&pages);
	return err;
}
