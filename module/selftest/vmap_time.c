// SPDX-License-Identifier: GPL-2.0-only
/*
 * Times mapping and unmapping by reading the clock around the call: a probe on
 * the function would add to a hook's own cost. Each sample is the mean of a
 * number of calls.
 */
#include <linux/cleanup.h>
#include <linux/io.h>
#include <linux/ktime.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "mark.h"
#include "vmap.h"

#define MOST_CALLS   4096
#define MOST_SAMPLES 64	   /* an answer is one page of text */
#define SHORT	     SZ_1M /* for PMDs, which the kernel serves */
#define PERCPU_BYTES 32768
#define PERCPU_MANY  256 /* more than any chunk can hold */

static DEFINE_MUTEX(lock);
static struct bmm_pages shaped;

struct timing {
	struct bmm_pages *pages;
	unsigned long size; /* bytes, if no page array is mapped */
	phys_addr_t phys;
	unsigned int calls;
	void **mapped; /* one per call */
	u64 map_ns, unmap_ns;
};

static unsigned long runs(void)
{
	unsigned long i, nr = 1;

	for (i = 1; i < shaped.nr; i++)
		nr += page_to_pfn(shaped.array[i]) !=
		      page_to_pfn(shaped.array[i - 1]) + 1;
	return nr;
}

/* shape WORD...: the page array to map from now on */
int bmm_vmap_shape(struct bmm_vmap *v)
{
	int err;

	guard(mutex)(&lock);
	bmm_pages_free(&shaped);
	err = bmm_pages_make(&shaped, v->words);
	if (!err)
		seq_buf_printf(v->out, "pages=%lu runs=%lu\n", shaped.nr,
			       runs());
	return err;
}

void bmm_vmap_time_exit(void)
{
	bmm_pages_free(&shaped);
}

static void unmap_sparse(const struct timing *t, struct vm_struct *area)
{
	unsigned long addr = (unsigned long)area->addr;

	bmm_vm_area_unmap_pages(area, addr, addr + t->pages->nr * PAGE_SIZE);
	free_vm_area(area);
}

static void *map_sparse(const struct timing *t)
{
	unsigned long size = t->pages->nr * PAGE_SIZE;
	struct vm_struct *area = bmm_get_vm_area(size, BMM_TEST_SPARSE);
	unsigned long addr = area ? (unsigned long)area->addr : 0;

	if (!area ||
	    !bmm_vm_area_map_pages(area, addr, addr + size, t->pages->array))
		return area;
	unmap_sparse(t, area);
	return NULL;
}

/*
 * Whole calls as users make them: map all, then unmap all. X(name, whether a
 * page array is mapped, the call, its reverse)
 */
#define WHOLES(X)                                                               \
	X(vmap, true, vmap(t->pages->array, t->pages->nr, VM_MAP, PAGE_KERNEL), \
	  vunmap(mapped))                                                       \
	X(vm_map_ram, true,                                                     \
	  vm_map_ram(t->pages->array, t->pages->nr, NUMA_NO_NODE),              \
	  vm_unmap_ram(mapped, t->pages->nr))                                   \
	X(vmalloc, false, vmalloc(t->size), vfree(mapped))                      \
	X(vmalloc_huge, false, vmalloc_huge(t->size, GFP_KERNEL),               \
	  vfree(mapped))                                                        \
	X(ioremap, false, (void __force *)ioremap(t->phys, t->size),            \
	  iounmap((void __iomem *)mapped))                                      \
	X(vm_area_map_pages, true, map_sparse(t), unmap_sparse(t, mapped))      \
	X(percpu, false,                                                        \
	  (void *)(uintptr_t)__alloc_percpu(PERCPU_BYTES, PAGE_SIZE),           \
	  free_percpu((void __percpu *)(uintptr_t)mapped))

#define WHOLE_FUNCTIONS(name, of_array, map, unmap)                    \
	static void *map_##name(const struct timing *t)                \
	{                                                              \
		return map;                                            \
	}                                                              \
	static void unmap_##name(const struct timing *t, void *mapped) \
	{                                                              \
		unmap;                                                 \
	}
WHOLES(WHOLE_FUNCTIONS)

static const struct whole {
	const char *name;
	void *(*map)(const struct timing *t);
	void (*unmap)(const struct timing *t, void *mapped);
	bool of_array;
} wholes[] = {
#define WHOLE(name, of_array, ...) \
	{ #name, map_##name, unmap_##name, of_array },
	WHOLES(WHOLE)
};

static const struct whole *find_whole(const char *name)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(wholes); i++)
		if (!strcmp(name, wholes[i].name))
			return &wholes[i];
	return NULL;
}

static int time_whole(const struct whole *whole, struct timing *t)
{
	unsigned int i, nr;
	u64 begun = ktime_get_ns(), mapped, unmapped;

	bmm_mark(BMM_MARK_BEGIN(0));
	for (nr = 0; nr < t->calls; nr++) {
		t->mapped[nr] = whole->map(t);
		if (!t->mapped[nr])
			break;
	}
	bmm_mark(BMM_MARK_END(0));
	mapped = ktime_get_ns();
	bmm_mark(BMM_MARK_BEGIN(1));
	for (i = 0; i < nr; i++)
		whole->unmap(t, t->mapped[i]);
	bmm_mark(BMM_MARK_END(1));
	unmapped = ktime_get_ns();
	t->map_ns = mapped - begun;
	t->unmap_ns = unmapped - mapped;
	return nr == t->calls ? 0 : -ENOMEM;
}

/* Mapping alone, at an address whose page tables exist already. */
static int map_alone(struct timing *t, unsigned long addr, struct page **pages,
		     unsigned int shift)
{
	unsigned long end = addr + t->size;
	u64 begun, mapped;
	int err;

	begun = ktime_get_ns();
	bmm_mark(BMM_MARK_BEGIN(0));
	if (pages)
		err = bmm_vmap_pages_range(addr, end, PAGE_KERNEL, pages, shift);
	else
		err = bmm_vmap_page_range(addr, end, t->phys,
					  pgprot_noncached(PAGE_KERNEL));
	bmm_mark(BMM_MARK_END(0));
	mapped = ktime_get_ns();
	bmm_mark(BMM_MARK_BEGIN(1));
	bmm_vunmap_range(addr, end);
	bmm_mark(BMM_MARK_END(1));
	t->map_ns += mapped - begun;
	t->unmap_ns += ktime_get_ns() - mapped;
	return err;
}

static int time_alone(struct timing *t, unsigned long flags,
		      struct page **pages, unsigned int shift)
{
	unsigned long align = roundup_pow_of_two(t->size);
	struct vm_struct *area = bmm_get_vm_area(t->size + align, flags);
	unsigned long addr;
	unsigned int i;
	int err;

	if (!area)
		return -ENOMEM;
	addr = ALIGN((unsigned long)area->addr, align);
	err = map_alone(t, addr, pages, shift); /* makes the page tables */
	t->map_ns = t->unmap_ns = 0;
	bmm_mark(BMM_MARK_CLEAR);
	for (i = 0; i < t->calls && !err; i++)
		err = map_alone(t, addr, pages, shift);
	free_vm_area(area);
	return err;
}

/* Pages that vmalloc_huge() allocated, mapped as it maps them. */
static int time_vmalloc_map(struct timing *t)
{
	void *memory = vmalloc_huge(t->size, GFP_KERNEL);
	struct vm_struct *from = bmm_find_vm_area(memory);
	int err;

	if (!from)
		return -ENOMEM;
	err = time_alone(t, VM_MAP, from->pages, from->page_order + PAGE_SHIFT);
	vfree(memory);
	return err;
}

static unsigned long scanned; /* keeps the compiler from dropping the reads */

/* Reading the array alone: what would be left if nothing were written. */
static int time_scan(struct timing *t)
{
	u64 begun = ktime_get_ns();
	unsigned int i;

	bmm_mark(BMM_MARK_BEGIN(0));
	for (i = 0; i < t->calls; i++)
		WRITE_ONCE(scanned, runs());
	bmm_mark(BMM_MARK_END(0));
	t->map_ns = ktime_get_ns() - begun;
	return shaped.nr ? 0 : -ENODATA;
}

static int time_sample(const char *name, struct timing *t)
{
	const struct whole *whole = find_whole(name);

	t->map_ns = t->unmap_ns = 0;
	if (!strcmp(name, "vmalloc-map"))
		return time_vmalloc_map(t);
	if (!strcmp(name, "ioremap-map"))
		return time_alone(t, VM_IOREMAP, NULL, 0);
	if (!strcmp(name, "scan"))
		return time_scan(t);
	if (!whole)
		return -EINVAL;
	return whole->of_array && !shaped.nr ? -ENODATA : time_whole(whole, t);
}

static void list(struct seq_buf *out, const char *name, const u64 *ns,
		 unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < nr; i++)
		seq_buf_printf(out, "%s%llu", i ? "," : name, ns[i]);
	seq_buf_printf(out, " ");
}

static int time_samples(const char *name, struct timing *t, unsigned int nr,
			struct seq_buf *out)
{
	u64 map[MOST_SAMPLES], unmap[MOST_SAMPLES];
	unsigned int i;
	int err = 0;

	for (i = 0; i < nr && !err; i++) {
		/* this sample must not pay for earlier lazy unmaps */
		vm_unmap_aliases();
		migrate_disable();
		bmm_mark(BMM_MARK_RECORD);
		err = time_sample(name, t);
		migrate_enable();
		map[i] = t->map_ns / t->calls;
		unmap[i] = t->unmap_ns / t->calls;
		cond_resched();
	}
	if (err)
		return err;
	list(out, "map=", map, nr);
	list(out, "unmap=", unmap, nr);
	return 0;
}

/* time WHAT CALLS SAMPLES [BYTES [PHYSICAL ADDRESS]] */
int bmm_vmap_time(struct bmm_vmap *v)
{
	struct timing t = { .pages = &shaped };
	unsigned int samples;
	unsigned long long phys = 0;
	char name[24];
	int err;

	guard(mutex)(&lock);
	if (sscanf(v->words, "%23s %u %u %lu %llx", name, &t.calls, &samples,
		   &t.size, &phys) < 3)
		return -EINVAL;
	if (!t.calls || t.calls > MOST_CALLS || !samples ||
	    samples > MOST_SAMPLES)
		return -EINVAL;
	t.phys = phys;
	t.mapped = kvmalloc_array(t.calls, sizeof(*t.mapped), GFP_KERNEL);
	if (!t.mapped)
		return -ENOMEM;
	err = time_samples(name, &t, samples, v->out);
	kvfree(t.mapped);
	return err;
}

/*
 * enter NAME PHYSICAL ADDRESS: enters the functions under test by a public one
 * that leads there: the host compares the module's counters before and after
 */
int bmm_vmap_enter(struct bmm_vmap *v)
{
	static void *mapped[PERCPU_MANY];
	struct timing t = { .pages = &v->pages,
			    .size = SHORT,
			    .mapped = mapped };
	unsigned long long phys;
	const struct whole *whole;
	char name[24];

	if (sscanf(v->words, "%23s %llx", name, &phys) != 2)
		return -EINVAL;
	whole = find_whole(name);
	if (!whole)
		return -ENOENT;
	t.phys = phys;
	t.calls = strcmp(name, "percpu") ? 1 : PERCPU_MANY;
	guard(mutex)(&lock);
	return time_whole(whole, &t);
}
