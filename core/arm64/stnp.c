// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * STNP: stores a pair of general registers with the hint that the data is not
 * used again soon. What the hint does is up to the CPU: some bypass the cache,
 * some treat it as STP. DMB orders them like any other store.
 */

#define BMM_PAIR "stnp"
#include "pair.h"

static inline void store_pair(char *p, uint64_t first, uint64_t second)
{
	__asm__ volatile(PAIR_AT(w0, w1, 0)
			 :
			 : [p] "r"(p), [w0] "rZ"(first), [w1] "rZ"(second)
			 : "memory");
}

/* 64 bytes, all records equal: the image never leaves registers. */
static void stamp64(char *p, const uint64_t *word, size_t count)
{
	const struct line line = load_line((const char *)word);

	for (; count >= 4; count -= 4, p += 256)
		__asm__ volatile(LINE_AT(0) LINE_AT(64) LINE_AT(128) LINE_AT(192)
				 :
				 : [p] "r"(p), WORDS(&line)
				 : "memory");
	for (; count; count--, p += 64)
		store_line(p, &line);
}

/* 64 bytes, stepping: eight words and their steps all fit the registers. */
static void step64(char *p, const struct bmm_image *image, size_t count)
{
	const struct line step = load_line((const char *)image->step);
	struct line line = load_line((const char *)image->word);

	for (; count; count--, p += 64) {
		store_line(p, &line);
		line.w0 += step.w0;
		line.w1 += step.w1;
		line.w2 += step.w2;
		line.w3 += step.w3;
		line.w4 += step.w4;
		line.w5 += step.w5;
		line.w6 += step.w6;
		line.w7 += step.w7;
	}
}

static inline uint64_t word_at(const struct bmm_image *image, size_t i, size_t n)
{
	return image->word[i] + n * image->step[i];
}

/* Any other size: too many words for the registers. */
static void stamp_any(char *p, const struct bmm_image *image, size_t count)
{
	size_t words = image->size / 8, n, i;

	for (n = 0; n < count; n++) {
		for (i = 0; i + 1 < words; i += 2, p += 16)
			store_pair(p, word_at(image, i, n),
				   word_at(image, i + 1, n));
		if (i < words) {
			store_word(p, word_at(image, i, n));
			p += 8;
		}
	}
}

static void stamp(void *dst, const struct bmm_image *image, size_t count)
{
	if (image->size != 64)
		stamp_any(dst, image, count);
	else if (image->stepping && count > 1)
		step64(dst, image, count);
	else
		stamp64(dst, image->word, count);
}

const struct bmm_backend bmm_stnp[] = {
	{ .name = "stnp",
	  .stamp = stamp,
	  .copy_streaming = BMM_COPY_FN(copy),
	  .clear_streaming = clear },
	{ 0 },
};
