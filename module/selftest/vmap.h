/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef BMM_VMAPTEST_H
#define BMM_VMAPTEST_H

#include <linux/mm.h>
#include <linux/seq_buf.h>
#include <linux/vmalloc.h>

/* vmap_pages.c: page arrays of a given shape */
struct bmm_block {
	struct page *page;
	unsigned int order;
	bool split; /* order-0 pages that happen to be contiguous */
};

struct bmm_pages {
	struct page **array;
	unsigned long nr;
	struct bmm_block *blocks;
	unsigned long nr_blocks;
};

int bmm_pages_make(struct bmm_pages *pages, const char *shape);
void bmm_pages_free(struct bmm_pages *pages);

/* vmap_random.c */
struct bmm_random {
	u64 state;
};

u32 bmm_random_below(struct bmm_random *random, u32 limit);
unsigned long bmm_random_array(struct bmm_random *random,
			       const struct bmm_pages *from,
			       struct page **array, unsigned long most);

/* vmap_leaf.c: what the page tables hold */
struct bmm_leaf {
	unsigned long size; /* 0: nothing is mapped */
	u64 bits;
};

struct bmm_leaf bmm_leaf_at(unsigned long addr);
struct bmm_leaf bmm_leaf_wanted(unsigned long pfn, unsigned long size,
				pgprot_t prot);
unsigned long bmm_leaf_pfn(struct bmm_leaf leaf, unsigned long addr);
bool bmm_leaf_writable(struct bmm_leaf leaf);

/* vmap_model.c: compares a mapping with the page array it was made from */
enum bmm_large {
	BMM_LARGE_NEVER,
	BMM_LARGE_ALWAYS, /* wherever address, PFN and length allow */
	BMM_LARGE_ANY,
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
int bmm_vmap_symbols(void);
struct vm_struct *bmm_get_vm_area(unsigned long size, unsigned long flags);
struct vm_struct *bmm_find_vm_area(const void *addr);
int bmm_vm_area_map_pages(struct vm_struct *area, unsigned long start,
			  unsigned long end, struct page **pages);
void bmm_vm_area_unmap_pages(struct vm_struct *area, unsigned long start,
			     unsigned long end);
int bmm_vmap_pages_range(unsigned long addr, unsigned long end, pgprot_t prot,
			 struct page **pages, unsigned int page_shift);
int bmm_vmap_page_range(unsigned long addr, unsigned long end,
			phys_addr_t phys_addr, pgprot_t prot);
void bmm_vunmap_range(unsigned long addr, unsigned long end);
int bmm_set_memory_ro(unsigned long addr, int numpages);
int bmm_set_memory_rw(unsigned long addr, int numpages);

/* Commands: @words are the arguments, @out gets the answer. */
struct bmm_ktap {
	struct seq_buf *out;
	unsigned int nr;
};

__printf(3, 4) void bmm_ktap(struct bmm_ktap *ktap, bool ok, const char *fmt,
			     ...);

int bmm_vmap_shape(char *words, struct seq_buf *out);
int bmm_vmap_time(char *words, struct seq_buf *out);
int bmm_vmap_enter(char *words, struct seq_buf *out);
int bmm_vmap_check(char *words, struct seq_buf *out);
int bmm_vmap_soak(char *words, struct seq_buf *out);
int bmm_vmap_parts(char *words, struct seq_buf *out);
int bmm_vmap_attributes(char *words, struct seq_buf *out);
int bmm_vmap_starve(char *words, struct seq_buf *out);
int bmm_vmap_bad(char *words, struct seq_buf *out);

void bmm_vmap_time_exit(void);
int bmm_vmap_starve_init(void);
void bmm_vmap_starve_exit(void);

#endif
