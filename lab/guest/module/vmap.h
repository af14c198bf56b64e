/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef BMM_VMAPTEST_H
#define BMM_VMAPTEST_H

#include <linux/io.h>
#include <linux/mm.h>
#include <linux/prandom.h>
#include <linux/seq_buf.h>
#include <linux/static_call.h>
#include <linux/vmalloc.h>

#include "compat.h"

/* vmap_pages.c: page arrays of a given shape */
struct bmm_block {
	struct page *page;
	unsigned int order;
};

struct bmm_pages {
	struct page **array;
	unsigned long nr;
	struct bmm_block *blocks;
	unsigned long nr_blocks;
};

int bmm_pages_make(struct bmm_pages *pages, const char *shape);
void bmm_pages_free(struct bmm_pages *pages);

u32 bmm_random_below(struct rnd_state *random, u32 limit);
unsigned long bmm_random_array(struct rnd_state *random,
			       const struct bmm_pages *from,
			       struct page **array, unsigned long most);

/* vmap_model.c: what the page tables hold */
struct bmm_leaf {
	unsigned long size; /* 0: nothing is mapped */
	u64 bits;
};

struct bmm_leaf bmm_leaf_at(unsigned long addr);
bool bmm_leaf_writable(struct bmm_leaf leaf);

/* vmap_model.c: compares a mapping with the page array it was made from */
enum bmm_large {
	BMM_LARGE_NEVER,
	BMM_LARGE_ALWAYS, /* wherever address, PFN and length allow */
	BMM_LARGE_MAY,	  /* there, as the kernel likes */
	BMM_LARGE_ANY,	  /* the mode changes meanwhile */
};

struct bmm_verdict {
	unsigned long arrays, pages, small, large, wrong;
	char first[96];
};

void bmm_model_wrong(struct bmm_verdict *verdict, const char *what,
		     unsigned long index, u64 is, u64 wanted);
void bmm_model_mapped(struct bmm_verdict *verdict, unsigned long addr,
		      struct page **array, unsigned long nr, pgprot_t prot,
		      enum bmm_large large);
void bmm_model_gone(struct bmm_verdict *verdict, unsigned long addr,
		    struct page **array, unsigned long nr);
unsigned long bmm_model_prefix(unsigned long addr, struct page **array,
			       unsigned long nr);

/* vmap_symbols.c: functions of the kernel that are not exported */
typedef int bmm_pages_range_fn(unsigned long addr, unsigned long end,
			       pgprot_t prot, struct page **pages,
			       unsigned int page_shift, gfp_t gfp);
typedef void bmm_vunmap_range_fn(unsigned long addr, unsigned long end);
typedef int bmm_set_memory_fn(unsigned long addr, int numpages);

#define BMM_VMAP_CALLS(DO)                                         \
	DO(get_vm_area, get_vm_area);                              \
	DO(vmap_pages_range_noflush, *(bmm_pages_range_fn *)NULL); \
	DO(vunmap_range, *(bmm_vunmap_range_fn *)NULL);            \
	DO(set_memory_ro, *(bmm_set_memory_fn *)NULL);             \
	DO(set_memory_rw, *(bmm_set_memory_fn *)NULL);             \
	BMM_TEST_CALLS(DO)
BMM_VMAP_CALLS(DECLARE_STATIC_CALL)

#define bmm_get_vm_area	  static_call(get_vm_area)
#define bmm_vunmap_range  static_call(vunmap_range)
#define bmm_set_memory_ro static_call(set_memory_ro)
#define bmm_set_memory_rw static_call(set_memory_rw)
/* before 7.0 without gfp, which is ignored there */
#define bmm_vmap_pages_range(...) \
	static_call(vmap_pages_range_noflush)(__VA_ARGS__, GFP_KERNEL)

int bmm_vmap_symbols(void);

/*
 * struct bmm_vmap - a command
 * @words:    its arguments
 * @out:      gets the answer
 * @pages:    of the shape that the command has, made before it runs
 * @verdicts: how many were printed
 */
struct bmm_vmap {
	char *words;
	struct seq_buf *out;
	struct bmm_pages pages;
	unsigned int verdicts;
};

typedef int bmm_vmap_fn(struct bmm_vmap *v);

/* Prints one verdict: its name, then after " # " what was seen. */
#define bmm_ktap(v, ok, fmt, ...)                                     \
	do {                                                          \
		if (!(v)->verdicts++)                                 \
			seq_buf_printf((v)->out, "KTAP version 1\n"); \
		seq_buf_printf((v)->out, "%sok %u " fmt "\n",         \
			       (ok) ? "" : "not ",                    \
			       (v)->verdicts, ##__VA_ARGS__);         \
	} while (0)

bmm_vmap_fn bmm_vmap_enter, bmm_vmap_check, bmm_vmap_soak, bmm_vmap_parts,
	bmm_vmap_attributes, bmm_vmap_starve, bmm_vmap_bad;

int bmm_vmap_starve_init(void);
void bmm_vmap_starve_exit(void);

#endif
