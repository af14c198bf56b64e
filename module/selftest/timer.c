// SPDX-License-Identifier: GPL-2.0-only
/*
 * Times memmap_init_zone_device(), whoever serves it: a kretprobe replaces the
 * return address, so the kernel's own function and the module's handler are
 * timed by the same clock.
 */
#include <linux/kprobes.h>
#include <linux/ktime.h>
#include <linux/spinlock.h>

#include "lab.h"
#include "mark.h"

#define CALLS_MAX 1024

struct call {
	unsigned long start_pfn;
	unsigned long nr_pages;
	u64 ns;
};

static struct call calls[CALLS_MAX];
static unsigned int calls_nr;
static DEFINE_RAW_SPINLOCK(calls_lock);

static int entry(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	struct call *call = (struct call *)instance->data;

	call->start_pfn = regs_get_kernel_argument(regs, 1);
	call->nr_pages = regs_get_kernel_argument(regs, 2);
	call->ns = ktime_get_ns();
	bmm_mark(BMM_MARK_BEGIN(0));
	return 0;
}

static int leave(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	struct call *call = (struct call *)instance->data;
	unsigned long flags;

	bmm_mark(BMM_MARK_END(0));
	call->ns = ktime_get_ns() - call->ns;
	raw_spin_lock_irqsave(&calls_lock, flags);
	if (calls_nr < CALLS_MAX)
		calls[calls_nr++] = *call;
	raw_spin_unlock_irqrestore(&calls_lock, flags);
	return 0;
}

static struct kretprobe probe = {
	.kp.symbol_name = "memmap_init_zone_device",
	.entry_handler = entry,
	.handler = leave,
	.data_size = sizeof(struct call),
	.maxactive = 16,
};

static int calls_show(struct seq_file *m)
{
	unsigned int i;

	for (i = 0; i < READ_ONCE(calls_nr); i++)
		seq_printf(m, "%lu %lu %llu\n", calls[i].start_pfn,
			   calls[i].nr_pages, calls[i].ns);
	return 0;
}

static int calls_write(char *text)
{
	WRITE_ONCE(calls_nr, 0);
	bmm_mark(BMM_MARK_RECORD);
	return 0;
}

static int timer_init(void)
{
	return register_kretprobe(&probe);
}

static void timer_exit(void)
{
	unregister_kretprobe(&probe);
}

const struct bmm_lab_part bmm_lab_timer = {
	.files =
		(const struct bmm_lab_file[]){
			{ "calls", calls_write, calls_show },
			{},
		},
	.init = timer_init,
	.exit = timer_exit,
};
