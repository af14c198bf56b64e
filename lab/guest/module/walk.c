// SPDX-License-Identifier: GPL-2.0-only
/*
 * Makes the time wide in which ftrace's walk of its list uses what it has found
 * there: between the look at an ops's flags and the call of its function
 * (__ftrace_ops_list_func()), the walk compares the ops's filter in
 * hash_contains_ip(). A kprobe stays there, as a CPU does whose host takes it
 * away, until the function is gone or the time is up: what a walk uses must
 * outlive it, however long it takes.
 *
 * Only walks for one short function are held, that of vmap() which bulkmm
 * hooks, and only at an ops of bulkmm's. If somebody else has a kprobe on the
 * function too, its patch site stays as it is when bulkmm detaches, so that
 * patching text (for which x86 waits for all CPUs) does not wait for the walk.
 *
 * debugfs bulkmm_lab/hold_walk: writing N holds each such walk for N ms at
 * most, but for a tenth of it unless somebody takes the ops away; 0 stops;
 * reading returns how many were held. bulkmm_lab/map: writing N maps a page N
 * times.
 */
#include <linux/atomic.h>
#include <linux/delay.h>
#include <linux/ftrace.h>
#include <linux/kallsyms.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

#include "../../../module/path.h"
#include "../../../module/symbols.h"
#include "lab.h"

#define LONGEST 5000 /* ms: no soft lockup, no RCU stall */
#define WAIT	10   /* part of the time for which the ops is waited to go */
#define ENTRY	16   /* bytes of a function in which its patch site lies */

/* compilers may give it another name when they drop an argument */
static const char *const names[] = { "hash_contains_ip",
				     "hash_contains_ip.isra.0" };
static unsigned long hold_ms;
static unsigned long function;
static atomic_long_t held;

/* Whether it points to an ops of bulkmm's, that of the function itself. */
static bool walk_is_bulkmm(const struct ftrace_ops *ops)
{
	char symbol[KSYM_SYMBOL_LEN], wanted[32];

	snprintf(wanted, sizeof(wanted), "bmm_vmap_path+0x%zx/",
		 offsetof(struct bmm_path, hooks[0].ops));
	sprint_symbol(symbol, (unsigned long)ops);
	return strstarts(symbol, wanted) && strstr(symbol, "[bulkmm]");
}

/*
 * The walk has the ops in one of the registers that calls preserve. Others
 * point into it: on 6.12 the second argument may be &ops->local_hash.
 */
static const struct ftrace_ops *walk_at_bulkmm(const struct pt_regs *regs)
{
	const unsigned long *value = (const unsigned long *)regs;
	size_t i;

	for (i = 0; i < sizeof(*regs) / sizeof(*value); i++)
		if (walk_is_bulkmm((const struct ftrace_ops *)value[i]))
			return (const struct ftrace_ops *)value[i];
	return NULL;
}

/* Somebody has begun to take the ops away. */
static bool walk_leaving(const struct ftrace_ops *ops)
{
	unsigned long flags = READ_ONCE(ops->flags);

	return !(flags & FTRACE_OPS_FL_ENABLED) || flags & FTRACE_OPS_FL_STUB;
}

static int walk_hold(struct kprobe *kprobe, struct pt_regs *regs)
{
	unsigned long site = regs_get_kernel_argument(regs, 0);
	const struct ftrace_ops *ops;
	unsigned long ms, most;

	if (site - function >= ENTRY)
		return 0;
	ops = walk_at_bulkmm(regs);
	if (!ops)
		return 0;
	atomic_long_inc(&held);
	for (ms = 0; READ_ONCE(ops->func); ms++) {
		most = walk_leaving(ops) ? hold_ms : hold_ms / WAIT;
		if (ms >= most)
			break;
		mdelay(1);
	}
	return 0;
}

static struct kprobe probe;

static int walk_begin(void)
{
	long entry = bmm_symbol_entry("vmap_small_pages_range_noflush");
	int err = -ENOENT;
	size_t i;

	if (IS_ERR_VALUE(entry))
		return entry;
	function = entry;
	for (i = 0; err && i < ARRAY_SIZE(names); i++) {
		probe = (struct kprobe){
			.symbol_name = names[i],
			.pre_handler = walk_hold,
		};
		err = register_kprobe(&probe);
	}
	return err;
}

static void walk_end(void)
{
	if (hold_ms)
		unregister_kprobe(&probe);
	hold_ms = 0;
}

static int hold_walk_write(unsigned long ms)
{
	int err;

	if (ms > LONGEST)
		return -ERANGE;
	walk_end();
	err = ms ? walk_begin() : 0;
	if (!err)
		hold_ms = ms;
	return err;
}

static int hold_walk_show(struct seq_file *m)
{
	seq_printf(m, "%ld\n", atomic_long_read(&held));
	return 0;
}

static int map_write(unsigned long many)
{
	struct page *page = ZERO_PAGE(0);
	int err = 0;

	while (!err && many-- && !signal_pending(current)) {
		void *at = vmap(&page, 1, VM_MAP, PAGE_KERNEL_RO);

		if (!at)
			err = -ENOMEM;
		vunmap(at);
		cond_resched();
	}
	return err;
}

BMM_LAB_PART(walk, NULL, NULL, walk_end,
	     { "hold_walk", .number = hold_walk_write, .show = hold_walk_show },
	     { "map", .number = map_write, .parallel = true });
