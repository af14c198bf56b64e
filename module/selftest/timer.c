// SPDX-License-Identifier: GPL-2.0-only
/*
 * Times memmap_init_zone_device(), whoever serves it: a kretprobe replaces the
 * return address, so the kernel's own function and the module's handler are
 * timed by the same clock.
 */
#include <linux/cleanup.h>
#include <linux/kprobes.h>
#include <linux/ktime.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/vmalloc.h>

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

BMM_LAB_PART(timer, timer_init, timer_exit,
	     { "calls", calls_write, calls_show });

/*
 * How fast the machine can store at all: a bound on every way of writing struct
 * pages. Stores one register throughout a buffer larger than the caches, mapped
 * as the memmap is: virtually, by huge pages if there are any.
 * Under emulation the bound is the lookup that each store costs.
 */
#define BUFFER_BYTES (64UL << 20)

static DEFINE_MUTEX(lock);
static u64 last_ns;

#ifdef CONFIG_ARM64
static void store_line(void *p, u64 value)
{
	asm volatile("stnp %1, %1, [%0]\n\t"
		     "stnp %1, %1, [%0, 16]\n\t"
		     "stnp %1, %1, [%0, 32]\n\t"
		     "stnp %1, %1, [%0, 48]"
		     :
		     : "r"(p), "r"(value)
		     : "memory");
}

static void drain(void)
{
	asm volatile("dmb ishst" ::: "memory");
}
#else
static void store_line(void *p, u64 value)
{
	asm volatile("movnti %1, 0(%0)\n\t"
		     "movnti %1, 8(%0)\n\t"
		     "movnti %1, 16(%0)\n\t"
		     "movnti %1, 24(%0)\n\t"
		     "movnti %1, 32(%0)\n\t"
		     "movnti %1, 40(%0)\n\t"
		     "movnti %1, 48(%0)\n\t"
		     "movnti %1, 56(%0)"
		     :
		     : "r"(p), "r"(value)
		     : "memory");
}

static void drain(void)
{
	asm volatile("sfence" ::: "memory");
}
#endif

static void store_all(char *p, unsigned long bytes)
{
	char *end = p + bytes;

	for (; p < end; p += 256) {
		store_line(p, 1);
		store_line(p + 64, 1);
		store_line(p + 128, 1);
		store_line(p + 192, 1);
	}
	drain();
}

/* Times @bytes (rounded up to 256) stored from one register. */
static int measure(unsigned long bytes)
{
	unsigned long done;
	char *buffer;
	u64 begin;

	buffer = vmalloc_huge(BUFFER_BYTES, GFP_KERNEL);
	if (!buffer)
		return -ENOMEM;
	migrate_disable();
	bmm_mark(BMM_MARK_RECORD);
	begin = ktime_get_ns();
	bmm_mark(BMM_MARK_BEGIN(0));
	for (done = 0; done < bytes; done += BUFFER_BYTES) {
		store_all(buffer, min(BUFFER_BYTES, bytes - done));
		cond_resched();
	}
	bmm_mark(BMM_MARK_END(0));
	last_ns = ktime_get_ns() - begin;
	migrate_enable();
	vfree(buffer);
	return 0;
}

static int limit_write(char *text)
{
	unsigned long bytes;
	int err = kstrtoul(text, 0, &bytes);

	guard(mutex)(&lock);
	return err ?: measure(bytes);
}

static int limit_show(struct seq_file *m)
{
	seq_printf(m, "%llu\n", last_ns);
	return 0;
}

BMM_LAB_PART(limit, NULL, NULL, { "limit", limit_write, limit_show });
