// SPDX-License-Identifier: GPL-2.0-only
/*
 * Maps random page arrays, compares them with the model, unmaps them and
 * compares again: for a number of arrays, or for a time.
 */
#include <linux/ktime.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "vmap.h"

#define MOST_PAGES    4096
#define PLANTED_PAGES 16 /* no PMD mapping, so that just one page is wrong */
#define BLOCK_PAGES   PFN_DOWN(PMD_SIZE)

struct check {
	const struct bmm_pages *pages;
	struct page **array;
	struct rnd_state random;
	struct bmm_verdict verdict;
	enum bmm_large large;
	bool planted;
};

static pgprot_t prot_of(struct rnd_state *random)
{
	switch (bmm_random_below(random, 8)) {
	case 0:
		return PAGE_KERNEL_RO;
	case 1:
		return PAGE_KERNEL_EXEC; /* vmap() makes it NX */
	case 2:
		return pgprot_noncached(PAGE_KERNEL);
	case 3:
		return pgprot_writecombine(PAGE_KERNEL);
	default:
		return PAGE_KERNEL;
	}
}

/* Replace a page in the array, not in the mapping: the model must notice. */
static void plant(struct check *check, unsigned long nr)
{
	struct page *const *other = check->pages->array;

	check->array[nr - 1] = other[check->array[nr - 1] == other[0]];
}

static void judge(struct check *check, void *mapped, unsigned long nr,
		  pgprot_t prot, enum bmm_large large)
{
	unsigned long addr = (unsigned long)mapped;

	if (!mapped) {
		bmm_model_wrong(&check->verdict, "refused", nr, 0, 0);
		return;
	}
	if (check->planted)
		plant(check, nr);
	bmm_model_mapped(&check->verdict, addr, check->array, nr, prot, large);
}

static void check_vmap(struct check *check, unsigned long nr)
{
	pgprot_t prot = prot_of(&check->random);
	void *mapped = vmap(check->array, nr, VM_MAP, prot);
	unsigned long addr = (unsigned long)mapped;

	if (check->large == BMM_LARGE_ALWAYS && nr >= BLOCK_PAGES &&
	    !IS_ALIGNED(addr, PMD_SIZE))
		bmm_model_wrong(&check->verdict, "unaligned", nr, addr, 0);
	judge(check, mapped, nr, pgprot_nx(prot), check->large);
	vunmap(mapped);
	if (check->large != BMM_LARGE_ANY)
		bmm_model_gone(&check->verdict, addr, check->array, nr);
}

/*
 * Only mappings of vmap() are always unmapped as a whole, so that only they
 * may have PMD mappings unasked.
 */
static enum bmm_large without_blocks(const struct check *check)
{
	return check->large == BMM_LARGE_ANY ? BMM_LARGE_ANY : BMM_LARGE_NEVER;
}

static void check_map_ram(struct check *check, unsigned long nr)
{
	void *mapped = vm_map_ram(check->array, nr, NUMA_NO_NODE);
	unsigned long addr = (unsigned long)mapped;

	judge(check, mapped, nr, PAGE_KERNEL, without_blocks(check));
	if (!mapped)
		return;
	vm_unmap_ram(mapped, nr);
	if (check->large != BMM_LARGE_ANY)
		bmm_model_gone(&check->verdict, addr, check->array, nr);
}

static void check_sparse(struct check *check, unsigned long nr)
{
	unsigned long size = nr * PAGE_SIZE, addr;
	struct vm_struct *area = bmm_get_vm_area(size, BMM_TEST_SPARSE);
	int err;

	if (!area) {
		bmm_model_wrong(&check->verdict, "no-area", nr, 0, 0);
		return;
	}
	addr = (unsigned long)area->addr;
	err = bmm_vm_area_map_pages(area, addr, addr + size, check->array);
	judge(check, err ? NULL : area->addr, nr, PAGE_KERNEL,
	      check->large == BMM_LARGE_NEVER ? BMM_LARGE_NEVER : BMM_LARGE_ANY);
	bmm_vm_area_unmap_pages(area, addr, addr + size);
	bmm_model_gone(&check->verdict, addr, check->array, nr);
	free_vm_area(area);
}

static void check_one(struct check *check)
{
	unsigned long most = check->planted ? PLANTED_PAGES : MOST_PAGES;
	unsigned long nr = bmm_random_array(&check->random, check->pages,
					    check->array, most);

	switch (bmm_random_below(&check->random, 8)) {
	case 0:
		check_sparse(check, nr);
		break;
	case 1:
	case 2:
		check_map_ram(check, nr);
		break;
	default:
		check_vmap(check, nr);
	}
	check->verdict.arrays++;
	/* unloading the module waits for a quiescent state of every task */
	cond_resched_tasks_rcu_qs();
}

/* Checks arrays until their number or the time is up, and answers. */
static int check_all(struct check *check, struct bmm_vmap *v, u64 seed,
		     unsigned long arrays, unsigned int seconds)
{
	ktime_t until = ktime_add_ms(ktime_get(), 1000ULL * seconds);
	bool planted = check->planted;
	const struct bmm_verdict *verdict = &check->verdict;

	check->pages = &v->pages;
	prandom_seed_state(&check->random, seed);
	check->array = kvmalloc_array(MOST_PAGES, sizeof(*check->array),
				      GFP_KERNEL);
	if (!check->array)
		return -ENOMEM;
	while (!fatal_signal_pending(current) &&
	       (arrays ? verdict->arrays < arrays :
			 ktime_before(ktime_get(), until))) {
		check->planted = planted && verdict->arrays + 1 == arrays;
		check_one(check);
	}
	kvfree(check->array);
	seq_buf_printf(
		v->out,
		"arrays=%lu pages=%lu small=%lu large=%lu wrong=%lu first=%s\n",
		verdict->arrays, verdict->pages, verdict->small, verdict->large,
		verdict->wrong, verdict->wrong ? verdict->first : "none");
	return fatal_signal_pending(current) ? -EINTR : 0;
}

/* check never|may|always ARRAYS SEED [planted] */
int bmm_vmap_check(struct bmm_vmap *v)
{
	struct check check = {};
	char large[8], planted[8] = "";
	unsigned long arrays;
	u64 seed;

	if (sscanf(v->words, "%7s %lu %llu %7s", large, &arrays, &seed,
		   planted) < 3 ||
	    !arrays)
		return -EINVAL;
	if (!strcmp(large, "always"))
		check.large = BMM_LARGE_ALWAYS;
	else if (!strcmp(large, "may"))
		check.large = BMM_LARGE_MAY;
	check.planted = !strcmp(planted, "planted");
	return check_all(&check, v, seed, arrays, 0);
}

/* soak SECONDS SEED: for this long, while modes may change */
int bmm_vmap_soak(struct bmm_vmap *v)
{
	struct check check = { .large = BMM_LARGE_ANY };
	unsigned int seconds;
	u64 seed;

	if (sscanf(v->words, "%u %llu", &seconds, &seed) != 2)
		return -EINVAL;
	return check_all(&check, v, seed, 0, seconds);
}
