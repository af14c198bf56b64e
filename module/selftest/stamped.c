// SPDX-License-Identifier: GPL-2.0-only
/*
 * Breaks a struct page between stamping and what comes after it, in any build
 * of bulkmm: debugfs bulkmm_lab/break_stamped takes "PFN WORD" and flips the
 * lowest bit of that word whenever bmm_memmap_stamp() returns; an empty line
 * ends it.
 */
#include <linux/cleanup.h>
#include <linux/kprobes.h>
#include <linux/mm.h>
#include <linux/mutex.h>

#include "lab.h"

static DEFINE_MUTEX(lock);
static struct kretprobe probe;
static unsigned long pfn, word;

static int stamped(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	((u64 *)pfn_to_page(pfn))[word] ^= 1;
	return 0;
}

/* Once unregistered, a probe cannot be registered again as it is. */
static void disarm(void)
{
	if (probe.handler)
		unregister_kretprobe(&probe);
	memset(&probe, 0, sizeof(probe));
}

static int arm(void)
{
	int err;

	probe.kp.symbol_name = "bulkmm:bmm_memmap_stamp";
	probe.handler = stamped;
	err = register_kretprobe(&probe);
	if (err)
		memset(&probe, 0, sizeof(probe));
	return err;
}

static int break_write(char *text)
{
	int words;

	guard(mutex)(&lock);
	disarm();
	words = sscanf(text, "%lu %lu", &pfn, &word);
	if (words <= 0)
		return 0;
	if (words != 2 || !pfn_valid(pfn) ||
	    word >= sizeof(struct page) / sizeof(u64))
		return -EINVAL;
	return arm();
}

const struct bmm_lab_part bmm_lab_stamped = {
	.files =
		(const struct bmm_lab_file[]){
			{ "break_stamped", break_write },
			{},
		},
	.exit = disarm,
};
