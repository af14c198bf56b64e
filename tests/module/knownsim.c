// SPDX-License-Identifier: GPL-2.0-only
/*
 * module/prezero_bitmap.c (TESTED), for real, on all pages of 2 MiB of 16 TiB:
 * prints how many bytes its bits took, and how many of its answers were wrong.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#define PAGE_SHIFT    12
#define PAGE_SIZE     (1UL << PAGE_SHIFT)
#define PUD_SHIFT     30
#define BITS_PER_BYTE 8
#define BITS_PER_LONG 64
#define GFP_KERNEL    0
#define CHUNKS	      512 /* more than are needed */

#define READ_ONCE(x)		   (x)
#define WRITE_ONCE(x, value)	   ((x) = (value))
#define smp_load_acquire(at)	   (*(at))
#define smp_store_release(at, set) (*(at) = (set))
#define rcu_read_lock()
#define rcu_read_unlock()
#define synchronize_rcu()

struct folio {
	unsigned long pfn;
	int nid;
};

#define ORDER		   9
#define folio_order(folio) (ORDER)
#define folio_pfn(folio)   ((folio)->pfn)
#define folio_nid(folio)   ((folio)->nid)

#define nr_node_ids		 2
#define for_each_online_node(id) for ((id) = 0; (id) < nr_node_ids; (id)++)
#define sysfs_emit_at(buf, at, ...) \
	snprintf((buf) + (at), PAGE_SIZE, __VA_ARGS__)

typedef struct {
	long n;
} atomic_long_t;

#define atomic_long_read(at)	 ((at)->n)
#define atomic_long_set(at, set) ((at)->n = (set))
#define atomic_long_inc(at)	 ((at)->n++)
#define atomic_long_dec(at)	 ((at)->n--)

static unsigned long chunks, wrong;

static unsigned long get_zeroed_page(int flags)
{
	(void)flags;
	chunks++;
	return (unsigned long)calloc(1, PAGE_SIZE);
}

static void free_page(unsigned long at)
{
	chunks--;
	free((void *)at);
}

#define kcalloc(n, size, flags) calloc(n, size)
#define kfree(at)		free(at)

static bool test_bit(unsigned long bit, const unsigned long *at)
{
	return at[bit / BITS_PER_LONG] >> bit % BITS_PER_LONG & 1;
}

static bool test_and_change(unsigned long bit, unsigned long *at, bool set)
{
	bool was = test_bit(bit, at);

	if (was != set)
		at[bit / BITS_PER_LONG] ^= 1UL << bit % BITS_PER_LONG;
	return was;
}

#define test_and_set_bit(bit, at)   test_and_change(bit, at, true)
#define test_and_clear_bit(bit, at) test_and_change(bit, at, false)

static unsigned long bitmap_weight(const unsigned long *at, unsigned long bits)
{
	unsigned long bit, set = 0;

	for (bit = 0; bit < bits; bit++)
		set += test_bit(bit, at);
	return set;
}

struct xarray {
	void *at[CHUNKS];
};

#define xa_init(xa)
#define xa_err(entry)	    ((void)(entry), 0)
#define xa_load(xa, index)  ((xa)->at[index])
#define xa_erase(xa, index) ((xa)->at[index] = NULL)
#define xa_cmpxchg(xa, index, old, new, flags) \
	((xa)->at[index] = (new), (void *)(old))
#define xa_for_each(xa, index, entry)                  \
	for ((index) = 0; (index) < CHUNKS; (index)++) \
		if (((entry) = (xa)->at[index]))

#include TESTED

#define PAGES (16UL << 40 >> 21)

static struct folio page(unsigned long number)
{
	return (struct folio){ number << ORDER, (int)(number % nr_node_ids) };
}

static void expect(bool holds)
{
	wrong += !holds;
}

int main(void)
{
	unsigned long i, left[nr_node_ids] = {};
	char text[PAGE_SIZE], wanted[PAGE_SIZE];
	struct folio one;

	expect(!bmm_known_init());
	bmm_known_open();
	for (i = 0; i < PAGES; i++) {
		one = page(i);
		expect(!bmm_known_test(&one, ORDER));
		expect(!bmm_known_prepare(&one) && bmm_known_set(&one, ORDER));
	}
	printf("%lu ", chunks * PAGE_SIZE);
	for (i = 0; i < PAGES; i += 3) {
		one = page(i);
		expect(bmm_known_clear(&one, ORDER));
		expect(!bmm_known_clear(&one, ORDER));
	}
	for (i = 0; i < PAGES; i++) {
		one = page(i);
		expect(bmm_known_test(&one, ORDER) == !!(i % 3));
		left[one.nid] += !!(i % 3);
	}
	bmm_known_show(text);
	sprintf(wanted, "2048 0 %lu\n2048 1 %lu\n", left[0], left[1]);
	expect(!strcmp(text, wanted));
	expect(bmm_known_close() == left[0] + left[1]);
	expect(!chunks && !bmm_known_any(ORDER, 0) && !bmm_known_any(ORDER, 1));
	expect(!bmm_known_prepare(&one) && !bmm_known_set(&one, ORDER));
	expect(!bmm_known_test(&one, ORDER));
	bmm_known_exit();
	expect(!chunks);
	printf("%lu\n", wrong);
	return 0;
}
