// SPDX-License-Identifier: GPL-2.0-only
/*
 * Saves all struct pages and pageblock bits of a device and compares them word
 * by word. Between two bring-ups of the same device, only the address of its
 * dev_pagemap may differ: where the snapshot has the old address, the new one
 * is required.
 */
#include <linux/cleanup.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/sched/signal.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "../compat/compat.h"
#include "lab.h"

#define PAGE_WORDS    (sizeof(struct page) / sizeof(u64))
#define SECTION_WORDS (SECTION_BLOCKFLAGS_BITS / BITS_PER_LONG)

static DEFINE_MUTEX(lock);

/* The device as saved: PFNs [start, end), struct pages, pageblocks. */
static struct {
	unsigned long start, end;
	u64 pgmap;
	u64 **chunks;	       /* one per section: its struct pages */
	unsigned long *blocks; /* SECTION_WORDS per section */
} kept;

static struct {
	unsigned long pages, blocks, words_differ, blocks_differ;
	unsigned long pfn, word;
	u64 was, is;
} verdict;

static unsigned long first_section(void)
{
	return pfn_to_section_nr(kept.start);
}

static unsigned long sections(void)
{
	return pfn_to_section_nr(kept.end - 1) - first_section() + 1;
}

static void forget(void)
{
	unsigned long i;

	for (i = 0; kept.chunks && i < sections(); i++)
		vfree(kept.chunks[i]);
	kvfree(kept.chunks);
	kvfree(kept.blocks);
	memset(&kept, 0, sizeof(kept));
}

/* PFNs of the device within its @i-th section. */
static void section_range(unsigned long i, unsigned long *from,
			  unsigned long *to)
{
	unsigned long pfn = section_nr_to_pfn(first_section() + i);

	*from = max(pfn, kept.start);
	*to = min(pfn + PAGES_PER_SECTION, kept.end);
}

static unsigned long *block_flags(unsigned long i)
{
	return __nr_to_section(first_section() + i)->usage->pageblock_flags;
}

/* REP MOVS is a byte loop under emulation: copy words. */
static void copy_words(u64 *to, const u64 *from, unsigned long n)
{
	while (n--) {
		WRITE_ONCE(*to, *from);
		to++;
		from++;
	}
}

static int keep_section(unsigned long i)
{
	unsigned long from, to, words;

	section_range(i, &from, &to);
	words = (to - from) * PAGE_WORDS;
	kept.chunks[i] = vmalloc(words * sizeof(u64));
	if (!kept.chunks[i])
		return -ENOMEM;
	copy_words(kept.chunks[i], (u64 *)pfn_to_page(from), words);
	memcpy(kept.blocks + i * SECTION_WORDS, block_flags(i),
	       SECTION_WORDS * sizeof(long));
	cond_resched();
	return fatal_signal_pending(current) ? -EINTR : 0;
}

static struct range *range_of(struct dev_pagemap *pgmap, unsigned long pfn)
{
	int i;

	for (i = 0; i < pgmap->nr_range; i++)
		if (PHYS_PFN(pgmap->ranges[i].start) <= pfn &&
		    pfn <= PHYS_PFN(pgmap->ranges[i].end))
			return &pgmap->ranges[i];
	return NULL;
}

/*
 * The first PFN of @range whose struct page the kernel initialises: with an
 * altmap it skips the reserved pages at the start (a superblock).
 */
static unsigned long first_pfn(struct dev_pagemap *pgmap, struct range *range)
{
	unsigned long pfn = PHYS_PFN(range->start);
	struct vmem_altmap *altmap = pgmap_altmap(pgmap);

	return altmap && altmap->base_pfn == pfn ? pfn + altmap->reserve : pfn;
}

static int keep(unsigned long pfn, struct dev_pagemap *pgmap)
{
	struct range *range = range_of(pgmap, pfn);
	unsigned long i;
	int err = 0;

	forget();
	if (!range)
		return -ENXIO;
	kept.start = first_pfn(pgmap, range);
	kept.end = PHYS_PFN(range->end) + 1;
	kept.pgmap = (u64)(uintptr_t)pgmap;
	kept.chunks = kvcalloc(sections(), sizeof(*kept.chunks), GFP_KERNEL);
	kept.blocks = kvcalloc(sections(), SECTION_WORDS * sizeof(long),
			       GFP_KERNEL);
	if (!kept.chunks || !kept.blocks)
		err = -ENOMEM;
	for (i = 0; !err && i < sections(); i++)
		err = keep_section(i);
	if (err)
		forget();
	return err;
}

static void note_word(unsigned long pfn, unsigned long word, u64 was, u64 is)
{
	if (!verdict.words_differ++) {
		verdict.pfn = pfn;
		verdict.word = word;
		verdict.was = was;
		verdict.is = is;
	}
}

static void compare_pages(unsigned long i, u64 pgmap)
{
	unsigned long from, to, n, words;
	const u64 *was = kept.chunks[i], *is;

	section_range(i, &from, &to);
	is = (u64 *)pfn_to_page(from);
	words = (to - from) * PAGE_WORDS;
	for (n = 0; n < words; n++) {
		u64 want = was[n] == kept.pgmap ? pgmap : was[n];

		if (unlikely(is[n] != want))
			note_word(from + n / PAGE_WORDS, n % PAGE_WORDS, want,
				  is[n]);
	}
	verdict.pages += to - from;
}

static void compare_blocks(unsigned long i)
{
	const unsigned long *was = kept.blocks + i * SECTION_WORDS;
	const unsigned long *is = block_flags(i);
	unsigned long bit;

	for (bit = 0; bit < SECTION_BLOCKFLAGS_BITS; bit++) {
		if (!(bit % NR_PAGEBLOCK_BITS))
			verdict.blocks++;
		if (test_bit(bit, was) != test_bit(bit, is))
			verdict.blocks_differ++;
	}
}

static int compare(unsigned long pfn, struct dev_pagemap *pgmap)
{
	struct range *range = range_of(pgmap, pfn);
	unsigned long i;

	memset(&verdict, 0, sizeof(verdict));
	if (!kept.chunks)
		return -ENODATA;
	if (!range || first_pfn(pgmap, range) != kept.start ||
	    PHYS_PFN(range->end) + 1 != kept.end)
		return -ERANGE;
	for (i = 0; i < sections(); i++) {
		compare_pages(i, (u64)(uintptr_t)pgmap);
		compare_blocks(i);
		cond_resched();
	}
	return 0;
}

/* Runs @work on the live device that holds the PFN written to the file. */
static ssize_t with_device(const char __user *buf, size_t len,
			   int (*work)(unsigned long pfn,
				       struct dev_pagemap *pgmap))
{
	struct dev_pagemap *pgmap;
	unsigned long pfn;
	int err;

	err = kstrtoul_from_user(buf, len, 0, &pfn);
	if (err)
		return err;
	pgmap = bmm_get_dev_pagemap(pfn);
	if (!pgmap)
		return -ENXIO;
	mutex_lock(&lock);
	err = work(pfn, pgmap);
	mutex_unlock(&lock);
	put_dev_pagemap(pgmap);
	return err ? err : len;
}

static ssize_t snapshot_write(struct file *file, const char __user *buf,
			      size_t len, loff_t *pos)
{
	return with_device(buf, len, keep);
}

static ssize_t compare_write(struct file *file, const char __user *buf,
			     size_t len, loff_t *pos)
{
	return with_device(buf, len, compare);
}

static int compare_show(struct seq_file *m, void *unused)
{
	guard(mutex)(&lock);
	seq_printf(
		m,
		"pages=%lu pageblocks=%lu words_differ=%lu pageblocks_differ=%lu first_pfn=%lu first_word=%lu was=%016llx is=%016llx\n",
		verdict.pages, verdict.blocks, verdict.words_differ,
		verdict.blocks_differ, verdict.pfn, verdict.word, verdict.was,
		verdict.is);
	return 0;
}

DEFINE_SHOW_STORE_ATTRIBUTE(compare);

/*
 * "PFN WORD" flips the lowest bit of one word of a live struct page; the same
 * write again restores it. Proves that compare can fail.
 */
static ssize_t flip_write(struct file *file, const char __user *buf, size_t len,
			  loff_t *pos)
{
	struct dev_pagemap *pgmap;
	unsigned long pfn, word;
	char text[64] = "";

	if (len >= sizeof(text) || copy_from_user(text, buf, len))
		return -EINVAL;
	if (sscanf(text, "%lu %lu", &pfn, &word) != 2 || word >= PAGE_WORDS)
		return -EINVAL;
	pgmap = bmm_get_dev_pagemap(pfn);
	if (!pgmap)
		return -ENXIO;
	/* the head page: tails may share memory, and one flip would be many */
	pfn = ALIGN_DOWN(pfn, pgmap_vmemmap_nr(pgmap));
	mutex_lock(&lock);
	((u64 *)pfn_to_page(pfn))[word] ^= 1;
	mutex_unlock(&lock);
	put_dev_pagemap(pgmap);
	return len;
}

static const struct file_operations snapshot_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = snapshot_write,
};

static const struct file_operations flip_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = flip_write,
};

void bmm_snapshot_init(struct dentry *dir)
{
	debugfs_create_file("snapshot", 0200, dir, NULL, &snapshot_fops);
	debugfs_create_file("compare", 0600, dir, NULL, &compare_fops);
	debugfs_create_file("flip", 0200, dir, NULL, &flip_fops);
}

void bmm_snapshot_exit(void)
{
	forget();
}
