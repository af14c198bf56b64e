// SPDX-License-Identifier: GPL-2.0-only
/*
 * memmap_verify: holds what was stamped against the kernel's own function.
 *
 * After stamping, memmap.c keeps checksums of all struct pages, lets
 * memmap_init_zone_device() build the whole range again, and compares. Building
 * it again is safe: nobody can hold any of these pages before the function
 * returns, as memremap_pages() hands them out only then. What walks PFNs asks
 * pfn_to_online_page(), which denies device memory. Two go on without its
 * consent: page_owner, which only reads, and memory_failure(), which finds the
 * pgmap, but flags no page that belongs to no mapping yet (dax_lock_page(), 6.1,
 * dax_lock_folio(), 6.12 and 7.3). Every word is written again, by
 * __init_single_page() first.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/bitmap.h>
#include <linux/bitops.h>
#include <linux/hash.h>
#include <linux/memremap.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "control.h"
#include "faults.h"
#include "memmap.h"

/* Struct pages of a checksum: their sums take 1/4096 of what they take. */
#define GROUP 512

enum {
	VERIFY_OFF,
	VERIFY_ONCE,
	VERIFY_ALWAYS
};

static const char *const modes[] = { "off", "once", "always", NULL };

static int memmap_verify;

/* A request differed: the path serves none until memmap/verify is written. */
static bool verify_failed;

#define KINDS 1024 /* for orders up to 31 */

/* What "once" has verified. */
static DECLARE_BITMAP(verified_kinds, KINDS);

/* Device type and layout: what decides which words the kernel writes. */
static unsigned long memmap_kind(const struct memmap_request *req)
{
	unsigned long altmap = !!pgmap_altmap(req->pgmap);
	unsigned long is_whole = req->geometry.records == 1UL << req->order;

	BUILD_BUG_ON(MEMORY_DEVICE_PCI_P2PDMA >= 8);
	return ((req->order * 8UL + req->pgmap->type) * 4 + 2 * altmap +
		is_whole) %
	       KINDS;
}

bool bmm_memmap_verify_failed(void)
{
	return READ_ONCE(verify_failed);
}

bool bmm_memmap_verify_due(const struct memmap_request *req)
{
	int mode = READ_ONCE(memmap_verify);

	if (mode == VERIFY_ONCE)
		return !test_bit(memmap_kind(req), verified_kinds);
	return mode == VERIFY_ALWAYS;
}

/*
 * Every step is a bijection of the lane, so that a single word that differs
 * always shows. Four lanes, as one would wait for its multiplications.
 */
static u64 memmap_checksum(const u64 *word, size_t n)
{
	u64 a = n, req = 1, c = 2, d = 3;

	for (; n >= 4; n -= 4, word += 4) {
		a = rol64((a ^ word[0]) * GOLDEN_RATIO_64, 29);
		req = rol64((req ^ word[1]) * GOLDEN_RATIO_64, 29);
		c = rol64((c ^ word[2]) * GOLDEN_RATIO_64, 29);
		d = rol64((d ^ word[3]) * GOLDEN_RATIO_64, 29);
	}
	for (; n; n--, word++)
		a = rol64((a ^ *word) * GOLDEN_RATIO_64, 29);
	a = rol64((a ^ req) * GOLDEN_RATIO_64, 29);
	a = rol64((a ^ c) * GOLDEN_RATIO_64, 29);
	return (a ^ d) * GOLDEN_RATIO_64;
}

static unsigned long memmap_groups(const struct memmap_request *req)
{
	return DIV_ROUND_UP(req->end - req->pfn, GROUP);
}

/* Without an altmap, tails of a compound page may share memory: read again. */
static u64 memmap_group_sum(const struct memmap_request *req,
			    unsigned long group)
{
	unsigned long pfn = req->pfn + group * GROUP;
	size_t pages = min(req->end - pfn, (unsigned long)GROUP);

	if (!(group % (PAGES_PER_SECTION / GROUP)))
		cond_resched();
	return memmap_checksum((const u64 *)pfn_to_page(pfn),
			       pages * (sizeof(struct page) / sizeof(u64)));
}

/*
 * Checksums of all struct pages of a request, stamped and drained: for
 * bmm_memmap_differs() and kvfree(); NULL: no memory.
 */
u64 *bmm_memmap_sums(const struct memmap_request *req)
{
	unsigned long group, nr = memmap_groups(req);
	u64 *sums = NULL;

	if (!bmm_fault("nomem-verify"))
		sums = kvmalloc_array(nr, sizeof(*sums),
				      GFP_KERNEL | __GFP_NOWARN);
	for (group = 0; sums && group < nr; group++)
		sums[group] = memmap_group_sum(req, group);
	return sums;
}

/*
 * Whether the kernel's function, which has run, wrote something else than was
 * stamped: then @req->wrong says where, and the path is not trusted any more.
 */
bool bmm_memmap_differs(struct memmap_request *req, const u64 *sums)
{
	unsigned long group;

	for (group = 0; group < memmap_groups(req); group++) {
		if (memmap_group_sum(req, group) == sums[group])
			continue;
		req->wrong_pfn = req->pfn + group * GROUP;
		WRITE_ONCE(verify_failed, true);
		return true;
	}
	req->verified = true;
	bmm_path_count(&bmm_memmap_path, BMM_MEMMAP_VERIFIED, 1);
	set_bit(memmap_kind(req), verified_kinds);
	return false;
}

/* Any choice forgets what was verified, and trusts the path again. */
static int memmap_set_verify(const char *text, const struct kernel_param *param)
{
	int mode = bmm_choice_parse("memmap", "verify", modes, text);

	if (mode < 0)
		return mode;
	bitmap_zero(verified_kinds, KINDS);
	WRITE_ONCE(memmap_verify, mode);
	WRITE_ONCE(verify_failed, false);
	return 0;
}

static const struct kernel_param_ops verify_ops = { .set = memmap_set_verify };
module_param_cb(memmap_verify, &verify_ops, NULL, 0);
MODULE_PARM_DESC(
	memmap_verify,
	"memmap: whether the kernel's own function checks what was stamped: off, once (each kind of device) or always (default: off); later /sys/kernel/bulkmm/memmap/verify");

static ssize_t memmap_verify_show(struct kobject *kobj,
				  struct kobj_attribute *attr, char *buf)
{
	return bmm_choice_show(modes, READ_ONCE(memmap_verify), buf);
}

static ssize_t memmap_verify_store(struct kobject *kobj,
				   struct kobj_attribute *attr, const char *buf,
				   size_t len)
{
	return memmap_set_verify(buf, NULL) ?: len;
}

struct kobj_attribute bmm_memmap_verify_file = __ATTR(verify, 0644,
						      memmap_verify_show,
						      memmap_verify_store);
