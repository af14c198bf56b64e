// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copies that survive a machine check in the source, and which of them is the
 * fastest on this CPU.
 *
 * Bypassing the cache saves reading the destination first: 1.6 times the rate
 * of REP MOVSB on Zen 3. It has its price: who uses all of the copy soon has to
 * fetch it from memory. So it must gain MARGIN.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": copy: " fmt

#include <linux/kernel.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "../core/calibrate.h"
#include "../core/drain.h"
#include "../core/evict.h"
#include "copy_lines.h"
#include "faults.h"

#define MARGIN 115 /* percent */
#define ROUNDS 7

/* x86/copy.S */
unsigned long bmm_copy_movnti(void *dst, const void *src, size_t len);
unsigned long bmm_copy_movnti_t0(void *dst, const void *src, size_t len);
unsigned long bmm_copy_movnti_nta(void *dst, const void *src, size_t len);

static const char *const names[BMM_COPY_BYS] = {
	"kernel",
	"movnti",
	"movnti-t0",
	"movnti-nta",
};

/**
 * bmm_copy_lines() - copy whole cache lines
 * @by:  what copies
 * @dst: the destination, aligned to a cache line
 * @src: the source, likewise
 * @len: bytes, a multiple of it, not 0
 *
 * Whatever copies, later stores become visible after these.
 *
 * Return: how many bytes are left because of a machine check.
 */
unsigned long bmm_copy_lines(enum bmm_copy_by by, void *dst, const void *src,
			     size_t len)
{
	switch (by) {
#ifdef CONFIG_X86_64
	case BMM_COPY_BY_MOVNTI:
		return bmm_copy_movnti(dst, src, len);
	case BMM_COPY_BY_MOVNTI_T0:
		return bmm_copy_movnti_t0(dst, src, len);
	case BMM_COPY_BY_MOVNTI_NTA:
		return bmm_copy_movnti_nta(dst, src, len);
#endif
	default:
		return copy_mc_to_kernel(dst, src, len);
	}
}

/* ns of a copy of cold memory. */
static u64 sample(enum bmm_copy_by by, char *buffer)
{
	char *src = buffer + BMM_CALIBRATE_EXTENT;
	u64 begun;

	bmm_evict(buffer, 2 * BMM_CALIBRATE_EXTENT);
	begun = bmm_host_clock();
	bmm_copy_lines(by, buffer, src, BMM_CALIBRATE_EXTENT);
	bmm_finish_stores();
	return bmm_host_clock() - begun + 1;
}

/* As in core/calibrate.c: a disturbance only makes a sample longer. */
static void measure(char *buffer, u64 ns[])
{
	unsigned int round, by;

	for (by = 0; by < BMM_COPY_BYS; by++)
		ns[by] = U64_MAX / MARGIN;
	for (round = 0; round < ROUNDS; round++)
		for (by = 0; by < BMM_COPY_BYS; by++) {
			cond_resched();
			ns[by] = min(ns[by], sample(by, buffer));
		}
}

/**
 * bmm_copy_measure() - find the fastest on cold memory
 * @fastest:           result: of all
 * @fastest_streaming: result: of those that bypass the cache
 *
 * Takes a few ms. Without memory for a buffer, the first of each.
 */
void bmm_copy_measure(enum bmm_copy_by *fastest,
		      enum bmm_copy_by *fastest_streaming)
{
	char *buffer = NULL;
	u64 ns[BMM_COPY_BYS];
	unsigned int by;

	*fastest = BMM_COPY_BY_KERNEL;
	*fastest_streaming = BMM_COPY_BY_MOVNTI;
	if (!bmm_fault("nomem"))
		buffer = kvmalloc(2 * BMM_CALIBRATE_EXTENT,
				  GFP_KERNEL | __GFP_NOWARN);
	if (!buffer) {
		pr_warn("no memory to measure with, %s serves\n",
			names[*fastest]);
		return;
	}
	measure(buffer, ns);
	kvfree(buffer);
	for (by = BMM_COPY_BY_MOVNTI; by < BMM_COPY_BYS; by++)
		if (ns[by] < ns[*fastest_streaming])
			*fastest_streaming = by;
	if (ns[*fastest_streaming] * MARGIN < ns[BMM_COPY_BY_KERNEL] * 100)
		*fastest = *fastest_streaming;
	for (by = 0; by < BMM_COPY_BYS; by++)
		ns[by] = BMM_CALIBRATE_EXTENT * 1000 / ns[by];
	pr_info("kernel %llu, movnti %llu, -t0 %llu, -nta %llu MB/s: %s serves\n",
		ns[0], ns[1], ns[2], ns[3], names[*fastest]);
}
