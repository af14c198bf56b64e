// SPDX-License-Identifier: GPL-2.0-only
/*
 * Makes memory hotplug fail: "online N" refuses the N-th block from now on that
 * is to go online, as a driver may; "vmemmap N" has the N-th request for memory
 * that holds struct pages return -ENOMEM. Reading returns how many events are
 * left until then.
 */
#include <linux/atomic.h>
#include <linux/kprobes.h>
#include <linux/memory.h>

#include "lab.h"

static atomic_t online_left, vmemmap_left;

static bool now(atomic_t *left)
{
	return atomic_read(left) > 0 && !atomic_dec_return(left);
}

static int memory_event(struct notifier_block *block, unsigned long event,
			void *arg)
{
	bool refused = event == MEM_GOING_ONLINE && now(&online_left);

	return refused ? NOTIFY_BAD : NOTIFY_OK;
}

static struct notifier_block notifier = { .notifier_call = memory_event };

static int populated(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	if (now(&vmemmap_left))
		regs_set_return_value(regs, -ENOMEM);
	return 0;
}

static struct kretprobe probe = {
	.kp.symbol_name = "vmemmap_populate",
	.handler = populated,
};

static int refuse_show(struct seq_file *m)
{
	seq_printf(m, "%d\n",
		   atomic_read(&online_left) + atomic_read(&vmemmap_left));
	return 0;
}

static int refuse_write(char *text)
{
	int n;

	if (sscanf(text, "online %d", &n) == 1)
		atomic_set(&online_left, n);
	else if (sscanf(text, "vmemmap %d", &n) == 1)
		atomic_set(&vmemmap_left, n);
	else
		return -EINVAL;
	return 0;
}

static int refuse_init(void)
{
	int err = register_memory_notifier(&notifier);

	if (err)
		return err;
	err = register_kretprobe(&probe);
	if (err)
		unregister_memory_notifier(&notifier);
	return err;
}

static void refuse_exit(void)
{
	unregister_kretprobe(&probe);
	unregister_memory_notifier(&notifier);
}

const struct bmm_lab_part bmm_lab_refuse = {
	.files =
		(const struct bmm_lab_file[]){
			{ "refuse", refuse_write, refuse_show },
			{},
		},
	.init = refuse_init,
	.exit = refuse_exit,
};
