/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A model of struct page on x86-64 with a virtual memmap, limited to what the
 * initialisation of device memory writes: same size, offsets and store widths.
 */
#ifndef BENCH_PAGE_H
#define BENCH_PAGE_H

#include <stdint.h>

struct links {
	struct links *next, *prev;
};

struct pagemap {
	uint64_t pad[13];
	uint32_t type;
};

struct model_page {
	uint64_t flags;
	union {
		struct links lru;
		struct {
			struct pagemap *pgmap;
			void *zone_device_data;
		};
	};
	void *mapping;
	uint64_t index;
	uint64_t private;
	int32_t mapcount;
	int32_t refcount;
	uint64_t memcg_data;
} __attribute__((__aligned__(16)));

_Static_assert(sizeof(struct model_page) == 64, "struct page has 64 bytes");

#define PAGE_NODE_SHIFT 54
#define PAGE_ZONE_SHIFT 51
#define PAGE_CPUPID	0x7ffffc0000000ULL /* "no CPU and task yet" */
#define PAGE_RESERVED	13		   /* bit number */

#define ZONE_DEVICE_NR 4ULL

enum pagemap_type {
	TYPE_PRIVATE = 1,
	TYPE_COHERENT,
	TYPE_FS_DAX
};

extern struct pagemap model_pagemap;

#define FIRST_PFN 0x100000ULL /* the device lies at 4 GiB */
#define barrier() __asm__ volatile("" ::: "memory")

#endif
