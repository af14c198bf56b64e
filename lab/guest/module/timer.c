// SPDX-License-Identifier: GPL-2.0-only
/*
 * debugfs bulkmm_lab/calls: times memmap_init_zone_device(), whoever serves it:
 * a kretprobe replaces the return address, so the kernel's own function and the
 * module's handler are timed by the same clock. A write forgets the calls.
 */
#include <linux/atomic.h>
#include <linux/ktime.h>
#include <linux/sched.h>
#include <linux/vmalloc.h>

#include "../../../core/drain.h"
#include "lab.h"

#define CALLS_MAX 1024

struct call {
	unsigned long start_pfn;
	unsigned long nr_pages;
	u64 ns;
};

static struct call calls[CALLS_MAX];
static atomic_t calls_nr; /* since the write; above CALLS_MAX, none is kept */

static int entry(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	struct call *call = (struct call *)instance->data;

	call->start_pfn = regs_get_kernel_argument(regs, 1);
	call->nr_pages = regs_get_kernel_argument(regs, 2);
	call->ns = ktime_get_ns();
	return 0;
}

static int leave(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	struct call *call = (struct call *)instance->data;
	int i;

	call->ns = ktime_get_ns() - call->ns;
	i = atomic_fetch_inc(&calls_nr);
	if (i < CALLS_MAX)
		calls[i] = *call;
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
	int i;

	for (i = 0; i < min(atomic_read(&calls_nr), CALLS_MAX); i++)
		seq_printf(m, "%lu %lu %llu\n", calls[i].start_pfn,
			   calls[i].nr_pages, calls[i].ns);
	return 0;
}

static int calls_write(char *text)
{
	atomic_set(&calls_nr, 0);
	return 0;
}

BMM_LAB_PART(timer, &probe, NULL, NULL,
	     { "calls", .write = calls_write, .show = calls_show });

/*
 * debugfs bulkmm_lab/limit: how fast the machine can store at all, a bound on
 * every way of writing struct pages. Stores one register throughout a buffer
 * larger than the caches, mapped as the memmap is: virtually, by huge pages if
 * there are any. Under emulation the bound is the lookup that each store costs.
 */
#define BUFFER_BYTES (64UL << 20)

static u64 last_ns;

#ifdef CONFIG_ARM64
#define STORE(at) \
	"stnp %1, %1, [%0, " #at "]\n\tstnp %1, %1, [%0, " #at " + 16]\n\t"
#else
#define STORE(at)                                                  \
	"movnti %1, " #at "(%0)\n\tmovnti %1, " #at " + 8(%0)\n\t" \
	"movnti %1, " #at " + 16(%0)\n\tmovnti %1, " #at " + 24(%0)\n\t"
#endif

static void store_all(char *p, unsigned long bytes)
{
	char *end = p + bytes;

	for (; p < end; p += 256)
		asm volatile(STORE(0) STORE(32) STORE(64) STORE(96) STORE(128)
				     STORE(160) STORE(192) STORE(224)
			     :
			     : "r"(p), "r"(1UL)
			     : "memory");
	bmm_drain_stores();
}

/* Times @bytes (rounded up to 256) stored from one register. */
static int limit(unsigned long bytes)
{
	unsigned long done;
	char *buffer;
	u64 begin;

	buffer = vmalloc_huge(BUFFER_BYTES, GFP_KERNEL);
	if (!buffer)
		return -ENOMEM;
	migrate_disable();
	begin = ktime_get_ns();
	for (done = 0; done < bytes; done += BUFFER_BYTES) {
		store_all(buffer, min(BUFFER_BYTES, bytes - done));
		cond_resched();
	}
	last_ns = ktime_get_ns() - begin;
	migrate_enable();
	vfree(buffer);
	return 0;
}

static int limit_show(struct seq_file *m)
{
	seq_printf(m, "%llu\n", last_ns);
	return 0;
}

BMM_LAB_PART(limit, NULL, NULL, NULL,
	     { "limit", .number = limit, .show = limit_show });
