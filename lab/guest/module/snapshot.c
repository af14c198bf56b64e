// SPDX-License-Identifier: GPL-2.0-only
/*
 * debugfs bulkmm_lab/snapshot and compare: saves all struct pages and pageblock
 * bits of a device and compares them word by word. Between two bring-ups of the
 * same device, only the address of its dev_pagemap may differ: where the
 * snapshot has the old address, the new one is required.
 */
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "../../../module/compat/compat.h"
#include "lab.h"

#define PAGE_WORDS    (sizeof(struct page) / sizeof(u64))
#define SECTION_WORDS (SECTION_BLOCKFLAGS_BITS / BITS_PER_LONG)

/*
 * The device as saved: PFNs [start, end), their sections, struct pages,
 * pageblocks.
 */
static struct {
	unsigned long start, end, section, sections;
	u64 pgmap;
	u64 *pages;
	unsigned long *blocks; /* SECTION_WORDS per section */
} kept;

static struct {
	unsigned long pages, blocks, words_differ, blocks_differ;
	unsigned long pfn, word;
	u64 was, is;
} verdict;

static void forget(void)
{
	vfree(kept.pages);
	kvfree(kept.blocks);
	memset(&kept, 0, sizeof(kept));
}

static unsigned long *block_flags(unsigned long i)
{
	return __nr_to_section(kept.section + i)->usage->pageblock_flags;
}

/* REP MOVS is a byte loop under emulation: copy words. */
static int keep_pages(void)
{
	const u64 *from = (u64 *)pfn_to_page(kept.start);
	u64 *to = kept.pages;
	unsigned long pfn, n;

	for (pfn = kept.start; pfn < kept.end; pfn++) {
		for (n = 0; n < PAGE_WORDS; n++)
			WRITE_ONCE(*to++, *from++);
		if (!IS_ALIGNED(pfn, PAGES_PER_SECTION))
			continue;
		cond_resched();
		if (fatal_signal_pending(current))
			return -EINTR;
	}
	return 0;
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
	kept.section = pfn_to_section_nr(kept.start);
	kept.sections = pfn_to_section_nr(kept.end - 1) - kept.section + 1;
	kept.pgmap = (u64)(uintptr_t)pgmap;
	kept.pages = vmalloc((kept.end - kept.start) * sizeof(struct page));
	kept.blocks = kvcalloc(kept.sections, SECTION_WORDS * sizeof(long),
			       GFP_KERNEL);
	if (!kept.pages || !kept.blocks)
		err = -ENOMEM;
	for (i = 0; !err && i < kept.sections; i++)
		memcpy(kept.blocks + i * SECTION_WORDS, block_flags(i),
		       SECTION_WORDS * sizeof(long));
	if (!err)
		err = keep_pages();
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

static void compare_pages(u64 pgmap)
{
	const u64 *was = kept.pages, *is = (u64 *)pfn_to_page(kept.start);
	unsigned long pfn, n;

	for (pfn = kept.start; pfn < kept.end; pfn++) {
		for (n = 0; n < PAGE_WORDS; n++, was++, is++) {
			u64 want = *was == kept.pgmap ? pgmap : *was;

			if (unlikely(*is != want))
				note_word(pfn, n, want, *is);
		}
		if (IS_ALIGNED(pfn, PAGES_PER_SECTION))
			cond_resched();
	}
	verdict.pages = kept.end - kept.start;
}

static void compare_blocks(unsigned long i)
{
	const unsigned long *was = kept.blocks + i * SECTION_WORDS;
	const unsigned long *is = block_flags(i);
	unsigned long n;

	for (n = 0; n < SECTION_WORDS; n++)
		verdict.blocks_differ += hweight_long(was[n] ^ is[n]);
	verdict.blocks += SECTION_BLOCKFLAGS_BITS / NR_PAGEBLOCK_BITS;
}

static int compare(unsigned long pfn, struct dev_pagemap *pgmap)
{
	struct range *range = range_of(pgmap, pfn);
	unsigned long i;

	memset(&verdict, 0, sizeof(verdict));
	if (!kept.pages)
		return -ENODATA;
	if (!range || first_pfn(pgmap, range) != kept.start ||
	    PHYS_PFN(range->end) + 1 != kept.end)
		return -ERANGE;
	compare_pages((u64)(uintptr_t)pgmap);
	for (i = 0; i < kept.sections; i++)
		compare_blocks(i);
	return 0;
}

/* Runs @work on the live device that holds a PFN. */
static int with_device(unsigned long pfn,
		       int (*work)(unsigned long pfn, struct dev_pagemap *pgmap))
{
	struct dev_pagemap *pgmap = bmm_get_dev_pagemap(pfn);
	int err;

	if (!pgmap)
		return -ENXIO;
	err = work(pfn, pgmap);
	put_dev_pagemap(pgmap);
	return err;
}

static int snapshot_write(unsigned long pfn)
{
	return with_device(pfn, keep);
}

static int compare_write(unsigned long pfn)
{
	return with_device(pfn, compare);
}

static int compare_show(struct seq_file *m)
{
	seq_printf(
		m,
		"pages=%lu pageblocks=%lu words_differ=%lu pageblocks_differ=%lu first_pfn=%lu first_word=%lu was=%016llx is=%016llx\n",
		verdict.pages, verdict.blocks, verdict.words_differ,
		verdict.blocks_differ, verdict.pfn, verdict.word, verdict.was,
		verdict.is);
	return 0;
}

/* "PFN WORD" */
static int parse(const char *text, unsigned long *pfn, unsigned long *word)
{
	bool two = sscanf(text, "%lu %lu", pfn, word) == 2;

	return two && *word < PAGE_WORDS && pfn_valid(*pfn) ? 0 : -EINVAL;
}

/*
 * debugfs bulkmm_lab/flip: "PFN WORD" flips the lowest bit of one word of a live
 * struct page; the same write again restores it. Proves that compare can fail.
 */
static unsigned long flip_word;

/* The head page: tails may share memory, and one flip would be many. */
static int flip(unsigned long pfn, struct dev_pagemap *pgmap)
{
	pfn = ALIGN_DOWN(pfn, pgmap_vmemmap_nr(pgmap));
	((u64 *)pfn_to_page(pfn))[flip_word] ^= 1;
	return 0;
}

static int flip_write(char *text)
{
	unsigned long pfn;

	return parse(text, &pfn, &flip_word) ?: with_device(pfn, flip);
}

BMM_LAB_PART(snapshot, NULL, NULL, forget,
	     { "snapshot", .number = snapshot_write },
	     { "compare", .number = compare_write, .show = compare_show },
	     { "flip", .write = flip_write });

/*
 * debugfs bulkmm_lab/break_stamped breaks a struct page between stamping and
 * what comes after it, in any build of bulkmm: "PFN WORD" flips the lowest bit
 * of that word whenever bmm_memmap_stamp() returns; an empty line ends it.
 */
static struct kretprobe probe;
static bool armed;
static unsigned long stamped_pfn, stamped_word;

static int stamped(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	((u64 *)pfn_to_page(stamped_pfn))[stamped_word] ^= 1;
	return 0;
}

static void disarm(void)
{
	if (armed)
		unregister_kretprobe(&probe);
	armed = false;
}

static int break_write(char *text)
{
	int err;

	disarm();
	if (!*text)
		return 0;
	err = parse(text, &stamped_pfn, &stamped_word);
	if (err)
		return err;
	/* once unregistered, it cannot be registered again as it is */
	probe = (struct kretprobe){
		.kp.symbol_name = "bulkmm:bmm_memmap_stamp",
		.handler = stamped,
	};
	err = register_kretprobe(&probe);
	armed = !err;
	return err;
}

BMM_LAB_PART(stamped, NULL, NULL, disarm,
	     { "break_stamped", .write = break_write });
