/* SPDX-License-Identifier: GPL-2.0-only */
/* prezero_known.h - one bit for each hugetlb page: is it known to be zero? */
#ifndef BMM_PREZERO_KNOWN_H
#define BMM_PREZERO_KNOWN_H

#include <linux/atomic.h>
#include <linux/mm_types.h>
#include <linux/pgtable.h>
#include <linux/xarray.h>

/**
 * struct bmm_known - the pages of one size
 * @chunks:  of the bitmap
 * @on_node: bits that are set, by node; there before the first chunk, or NULL
 */
struct bmm_known {
	struct xarray chunks;
	atomic_long_t *on_node;
};

/* By order: no huge page is larger. */
extern struct bmm_known bmm_known[PUD_SHIFT - PAGE_SHIFT + 1];

/*
 * Whether any page of a node is known, for a caller that holds hugetlb_lock:
 * pages become known under it, and this is cheap where none is.
 */
static inline bool bmm_known_any(unsigned int order, int nid)
{
	atomic_long_t *on_node = READ_ONCE(bmm_known[order].on_node);

	return on_node && atomic_long_read(&on_node[nid]);
}

void bmm_known_init(void);
void bmm_known_exit(void);
unsigned long bmm_known_open(void);
void bmm_known_close(void);
bool bmm_known_opened(void);
int bmm_known_prepare(struct folio *folio);
bool bmm_known_test(struct folio *folio, unsigned int order);
bool bmm_known_set(struct folio *folio, unsigned int order);
bool bmm_known_clear(struct folio *folio, unsigned int order);
ssize_t bmm_known_show(char *buf);

#endif
