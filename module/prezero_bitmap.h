/* SPDX-License-Identifier: GPL-2.0-only */
/* prezero_bitmap.h - one bit for each hugetlb page: is it known to be zero? */
#ifndef BMM_PREZERO_BITMAP_H
#define BMM_PREZERO_BITMAP_H

#include <linux/atomic.h>
#include <linux/mm_types.h>
#include <linux/nodemask.h>

extern atomic_long_t *bmm_known_on_node;

/* How many pages of a size are known on a node. */
static inline atomic_long_t *bmm_known_count(unsigned int order, int nid)
{
	return &bmm_known_on_node[order * nr_node_ids + nid];
}

/*
 * Whether there are any, for a caller that has taken hugetlb_lock after whoever
 * returned the page in question last. Cheap where there are none.
 */
static inline bool bmm_known_any(unsigned int order, int nid)
{
	return atomic_long_read(bmm_known_count(order, nid));
}

int bmm_known_init(void);
void bmm_known_exit(void);
void bmm_known_open(void);
void bmm_known_stop(void);
unsigned long bmm_known_close(void);
bool bmm_known_opened(void);
int bmm_known_prepare(struct folio *folio);
bool bmm_known_test(struct folio *folio, unsigned int order);
bool bmm_known_set(struct folio *folio, unsigned int order);
bool bmm_known_clear(struct folio *folio, unsigned int order);
ssize_t bmm_known_show(char *buf);

#endif
