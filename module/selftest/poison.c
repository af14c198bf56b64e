// SPDX-License-Identifier: GPL-2.0-only
/*
 * debugfs bulkmm_lab/poison: a page of memory that is broken:
 * copy_mc_to_kernel() returns what is left from there on, as it does after a
 * machine check. "PFN" breaks it, "none" mends it.
 */
#include <linux/mm.h>

#include "lab.h"

static const char *poisoned; /* NULL: none */

struct copying {
	const char *from, *end;
};

static int entered(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	struct copying *copying = (void *)instance->data;

	copying->from = (const char *)regs_get_kernel_argument(regs, 1);
	copying->end = copying->from +
		       (unsigned int)regs_get_kernel_argument(regs, 2);
	return 0;
}

static int copied(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	const struct copying *copying = (void *)instance->data;
	const char *at = READ_ONCE(poisoned);

	if (at && at < copying->end && at + PAGE_SIZE > copying->from)
		regs_set_return_value(regs,
				      copying->end - max(at, copying->from));
	return 0;
}

static struct kretprobe probe = {
	.kp.symbol_name = "copy_mc_to_kernel",
	.entry_handler = entered,
	.handler = copied,
	.data_size = sizeof(struct copying),
	.maxactive = 64,
};

static int poison_write(char *text)
{
	unsigned long pfn;
	int err;

	if (!strcmp(text, "none")) {
		WRITE_ONCE(poisoned, NULL);
		return 0;
	}
	err = kstrtoul(text, 0, &pfn);
	if (err || !pfn_valid(pfn))
		return -EINVAL;
	WRITE_ONCE(poisoned, page_address(pfn_to_page(pfn)));
	return 0;
}

BMM_LAB_PART(poison, &probe, NULL, NULL, { "poison", .write = poison_write });
