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
#include <linux/seq_file.h>

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

static bool registered;

static int refuse_show(struct seq_file *m, void *unused)
{
	seq_printf(m, "%d\n",
		   atomic_read(&online_left) + atomic_read(&vmemmap_left));
	return 0;
}

static ssize_t refuse_write(struct file *file, const char __user *buf,
			    size_t len, loff_t *pos)
{
	char text[32] = "";
	int n;

	if (len >= sizeof(text) || copy_from_user(text, buf, len))
		return -EINVAL;
	if (sscanf(text, "online %d", &n) == 1)
		atomic_set(&online_left, n);
	else if (sscanf(text, "vmemmap %d", &n) == 1)
		atomic_set(&vmemmap_left, n);
	else
		return -EINVAL;
	return len;
}

DEFINE_SHOW_STORE_ATTRIBUTE(refuse);

/* A kernel that lacks the notifier or the function has no such file. */
void bmm_refuse_init(struct dentry *dir)
{
	if (register_memory_notifier(&notifier))
		return;
	registered = !register_kretprobe(&probe);
	if (registered)
		debugfs_create_file("refuse", 0600, dir, NULL, &refuse_fops);
	else
		unregister_memory_notifier(&notifier);
}

void bmm_refuse_exit(void)
{
	if (!registered)
		return;
	unregister_kretprobe(&probe);
	unregister_memory_notifier(&notifier);
}
