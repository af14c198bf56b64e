// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fails page table allocations, one after the other. Debian's kernels have no
 * fault injection, so kprobes on the functions that allocate kernel page tables
 * make the n-th call of the task under test return -ENOMEM at once.
 *
 * Page tables stay once they exist, so each attempt takes a new window of
 * addresses, around the end of a P4D entry so that tables of all levels are
 * missing.
 */
#include <linux/cleanup.h>
#include <linux/kprobes.h>
#include <linux/mutex.h>

#include "vmap.h"
#include "vmap_arch.h"

#define WINDOWS 40  /* 20 TiB: ten windows for each of four modes */
#define BEFORE	700 /* pages before the boundary */
#define STEPS	16

BMM_ASM_FUNCTION(bmm_starve_return, BMM_ARCH_RETURN);

/* One command at a time, under the lock. */
static DEFINE_MUTEX(lock);
static struct task_struct *starved;
static unsigned int fail_at, calls;

static struct vm_struct *area;
static unsigned int windows_used;

static int refuse(struct kprobe *probe, struct pt_regs *regs)
{
	if (current != READ_ONCE(starved) || ++calls != fail_at)
		return 0;
	regs_set_return_value(regs, -ENOMEM);
	instruction_pointer_set(regs, (unsigned long)bmm_starve_return);
	return 1;
}

/* Its presence tells the kernel that the probe modifies the IP. */
static void after(struct kprobe *probe, struct pt_regs *regs,
		  unsigned long flags)
{
}

#define PROBE(symbol)                  \
	&(struct kprobe){              \
		.symbol_name = symbol, \
		.pre_handler = refuse, \
		.post_handler = after, \
	}

static struct kprobe *probe_list[] = { PROBE("__pud_alloc"),
				       PROBE("__pmd_alloc"),
				       PROBE("__pte_alloc_kernel") };

int bmm_vmap_starve_init(void)
{
	return register_kprobes(probe_list, ARRAY_SIZE(probe_list));
}

void bmm_vmap_starve_exit(void)
{
	unregister_kprobes(probe_list, ARRAY_SIZE(probe_list));
	/*
	 * Checking freed memory for live objects looks at each page of the area
	 * and takes minutes: in that case the addresses stay reserved.
	 */
	if (area && !IS_ENABLED(CONFIG_DEBUG_OBJECTS_FREE))
		free_vm_area(area);
}

/*
 * The next window that was never mapped; 0: none is left. None begins where the
 * areas below may have tables: those of a PUD entry.
 */
static unsigned long next_window(void)
{
	if (!area)
		area = bmm_get_vm_area((WINDOWS + 1) * P4D_SIZE,
				       BMM_TEST_SPARSE);
	if (!area || windows_used == WINDOWS)
		return 0;
	return ALIGN((unsigned long)area->addr + PUD_SIZE + BEFORE * PAGE_SIZE,
		     P4D_SIZE) +
	       windows_used++ * P4D_SIZE - BEFORE * PAGE_SIZE;
}

/* Maps, refusing the n-th table (0: none); returns how many were allocated. */
static unsigned int map(unsigned long addr, struct bmm_pages *pages,
			unsigned int n, int *err)
{
	calls = 0;
	fail_at = n;
	WRITE_ONCE(starved, current);
	*err = bmm_vm_area_map_pages(area, addr, addr + pages->nr * PAGE_SIZE,
				     pages->array);
	WRITE_ONCE(starved, NULL);
	return n && calls >= n ? n - 1 : calls;
}

/*
 * Maps with the n-th table refused, then again at the same place with none
 * refused: together they must allocate as many tables as are needed, or one was
 * leaked. Returns whether there was an n-th table.
 */
static bool attempt(struct bmm_vmap *v, unsigned int n)
{
	struct bmm_pages *pages = &v->pages;
	unsigned long addr = next_window(), prefix;
	struct bmm_verdict verdict = {};
	unsigned int made, rest;
	int err, again;
	bool failed;

	if (!addr) {
		bmm_ktap(v, false, "a place without page tables");
		return false;
	}
	made = map(addr, pages, n, &err);
	failed = calls >= n;
	prefix = bmm_model_prefix(addr, pages->array, pages->nr);
	bmm_vm_area_unmap_pages(area, addr, addr + pages->nr * PAGE_SIZE);
	bmm_model_gone(&verdict, addr, pages->array, pages->nr);
	rest = map(addr, pages, 0, &again);
	bmm_model_mapped(&verdict, addr, pages->array, pages->nr, PAGE_KERNEL,
			 BMM_LARGE_ANY);
	bmm_vm_area_unmap_pages(area, addr, addr + pages->nr * PAGE_SIZE);
	bmm_model_gone(&verdict, addr, pages->array, pages->nr);
	bmm_ktap(v,
		 !again && !verdict.wrong && prefix != -1 &&
			 (failed ? err == -ENOMEM && prefix < pages->nr :
				   !err && prefix == pages->nr),
		 "page table %u refused # err=%d mapped=%ld tables=%u first=%s",
		 n, err, prefix, made + rest,
		 verdict.wrong ? verdict.first : "none");
	return failed;
}

/* starve: every page table of a mapping refused in turn */
int bmm_vmap_starve(struct bmm_vmap *v)
{
	unsigned int n = 1;

	/* a shadow of the area takes 2.5 TiB */
	if (IS_ENABLED(CONFIG_KASAN_VMALLOC)) {
		bmm_ktap(v, true, "no page table refused, with KASAN");
		return 0;
	}
	guard(mutex)(&lock);
	while (n < STEPS && attempt(v, n))
		n++;
	return 0;
}
