// SPDX-License-Identifier: GPL-2.0-only
/*
 * bulkmm_vmaptest: maps page arrays and physical ranges, and judges the result;
 * independent of the module under test.
 *
 * debugfs bulkmm_vmap takes one command per open: write it, then read the
 * answer. Verdicts are KTAP, everything else is NAME=VALUE.
 */
#include <linux/debugfs.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "vmap.h"

#define LARGE "10x1" /* 4 MiB, contiguous: two PMD mappings */
/* 47 MiB: compound and plain blocks, single pages */
#define MIXED "10x6 10x2c 9x2c 9x2 8x4 4x32s 0x256s"

static const struct {
	const char *name;
	bmm_vmap_fn *run;
	const char *shape;
} commands[] = {
	{ "enter", bmm_vmap_enter, LARGE },
	{ "check", bmm_vmap_check, MIXED },
	{ "soak", bmm_vmap_soak, MIXED },
	{ "parts", bmm_vmap_parts, LARGE },
	/* runs that cross page tables, and scattered pages */
	{ "starve", bmm_vmap_starve, "10x1 0x300s 9x1" },
	{ "bad", bmm_vmap_bad, LARGE },
	{ "attributes", bmm_vmap_attributes, LARGE },
};

static struct dentry *file;

static int obey(char *text, struct seq_buf *out)
{
	char *name = strsep(&text, " \n");
	struct bmm_vmap v = { .words = text ?: "", .out = out };
	int i, err;

	for (i = 0; i < ARRAY_SIZE(commands); i++)
		if (!strcmp(commands[i].name, name))
			break;
	if (i == ARRAY_SIZE(commands))
		return -ENOENT;
	err = bmm_pages_make(&v.pages, commands[i].shape);
	if (!err)
		err = commands[i].run(&v);
	/* a bad request has one verdict, and no plan */
	if (v.verdicts && commands[i].run != bmm_vmap_bad)
		seq_buf_printf(out, "1..%u\n", v.verdicts);
	bmm_pages_free(&v.pages);
	return err;
}

static ssize_t command_write(struct file *file, const char __user *buf,
			     size_t len, loff_t *pos)
{
	char *answer = simple_transaction_get(file, buf, len), *text;
	struct seq_buf out;
	int err;

	if (IS_ERR(answer))
		return PTR_ERR(answer);
	text = kstrdup(answer, GFP_KERNEL);
	if (!text)
		return -ENOMEM;
	seq_buf_init(&out, answer, SIMPLE_TRANSACTION_LIMIT);
	err = obey(text, &out);
	kfree(text);
	if (!err && seq_buf_has_overflowed(&out))
		err = -E2BIG;
	if (err)
		return err;
	simple_transaction_set(file, seq_buf_used(&out));
	return len;
}

static const struct file_operations command_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = command_write,
	.read = simple_transaction_read,
	.release = simple_transaction_release,
};

static int __init bmm_vmaptest_init(void)
{
	int err = bmm_vmap_symbols();

	if (err)
		return err;
	err = bmm_vmap_starve_init();
	if (err)
		return err;
	file = debugfs_create_file("bulkmm_vmap", 0600, NULL, NULL,
				   &command_fops);
	return 0;
}

static void __exit bmm_vmaptest_exit(void)
{
	debugfs_remove(file);
	bmm_vmap_starve_exit();
}

module_init(bmm_vmaptest_init);
module_exit(bmm_vmaptest_exit);

MODULE_DESCRIPTION("bulkmm lab: mapping of page arrays, judged");
MODULE_LICENSE("GPL");
