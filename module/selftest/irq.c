// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory that is allocated zeroed where nobody may sleep.
 *
 * debugfs bulkmm_lab/zero_irq: written, allocates so many huge pages in an
 * interrupt, one after the other, each dirtied just before; read: how many it
 * got, and how many words of them were not zero.
 */
#include <linux/cleanup.h>
#include <linux/gfp.h>
#include <linux/irq_work.h>
#include <linux/kstrtox.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/pgtable.h>
#include <linux/preempt.h>

#include "lab.h"

#define ORDER (PMD_SHIFT - PAGE_SHIFT)
#define DIRT  0xa5
#define GFP   (GFP_ATOMIC | __GFP_NOWARN | __GFP_NORETRY | __GFP_ZERO)

static DEFINE_MUTEX(lock);
static unsigned long got, wrong;
static bool irq_seen;

/* What was freed last is what is given next. */
static void irq_dirty(void)
{
	struct page *page = alloc_pages(GFP, ORDER);

	if (!page)
		return;
	memset(page_address(page), DIRT, PMD_SIZE);
	__free_pages(page, ORDER);
}

static void irq_take(struct irq_work *work)
{
	struct page *page;
	const u64 *word;
	size_t i;

	irq_seen = in_hardirq();
	irq_dirty();
	page = alloc_pages(GFP, ORDER);
	if (!page)
		return;
	got++;
	word = page_address(page);
	for (i = 0; i < PMD_SIZE / sizeof(*word); i++)
		wrong += !!word[i];
	__free_pages(page, ORDER);
}

/* Of the kind that a thread does on PREEMPT_RT: others may not allocate. */
static struct irq_work work = IRQ_WORK_INIT(irq_take);

static ssize_t zero_irq_write(struct file *file, const char __user *buf,
			      size_t len, loff_t *pos)
{
	unsigned long many;
	int err = kstrtoul_from_user(buf, len, 0, &many);

	if (err)
		return err;
	guard(mutex)(&lock);
	got = 0;
	wrong = 0;
	irq_seen = false;
	while (many--) {
		irq_work_queue(&work);
		irq_work_sync(&work);
	}
	return len;
}

static ssize_t zero_irq_read(struct file *file, char __user *buf, size_t len,
			     loff_t *pos)
{
	char said[64];
	int n = scnprintf(said, sizeof(said), "irq=%d got=%lu wrong=%lu\n",
			  irq_seen, got, wrong);

	return simple_read_from_buffer(buf, len, pos, said, n);
}

static const struct file_operations zero_irq_fops = {
	.owner = THIS_MODULE,
	.read = zero_irq_read,
	.write = zero_irq_write,
};

void bmm_irq_init(struct dentry *dir)
{
	debugfs_create_file("zero_irq", 0600, dir, NULL, &zero_irq_fops);
}
