// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * MOVNTI, a word of eight records at a time, for emulators: they keep the
 * guest's registers in memory and load one before each store of it, unless it
 * was stored just before. Here it is loaded once for eight stores.
 *
 * On hardware it is bad: eight lines are open at once, and where that is more
 * than there are write-combining buffers, they go to memory in parts (Zen 3:
 * 2.7 times slower than movnti). Only the chooser takes it, by measurement; it
 * stands before movnti in the table, so that nothing begins with it.
 */
#include "../backends.h"
#include "drain.h"
#include "record.h"

static bool supported(void)
{
	return true;
}

BMM_X86_STAMP("movnti")

#define RECORDS 8U

/* clang-format off: the columns of the macros are their structure */
#define EIGHT(w, off)                            \
	"movnti %[" w "], 0+" off "(%[p])\n\t"   \
	"movnti %[" w "], 64+" off "(%[p])\n\t"  \
	"movnti %[" w "], 128+" off "(%[p])\n\t" \
	"movnti %[" w "], 192+" off "(%[p])\n\t" \
	"movnti %[" w "], 256+" off "(%[p])\n\t" \
	"movnti %[" w "], 320+" off "(%[p])\n\t" \
	"movnti %[" w "], 384+" off "(%[p])\n\t" \
	"movnti %[" w "], 448+" off "(%[p])\n\t"
#define BY_WORD           \
	EIGHT("w0", "0")  \
	EIGHT("w1", "8")  \
	EIGHT("w2", "16") \
	EIGHT("w3", "24") \
	EIGHT("w4", "32") \
	EIGHT("w5", "40") \
	EIGHT("w6", "48") \
	EIGHT("w7", "56")
/* clang-format on */

static void stamp64_by_word(char *p, const uint64_t *w, size_t count)
{
	for (; count; count -= RECORDS, p += RECORDS * 64)
		__asm__ volatile(BY_WORD
				 :
				 : [p] "r"(p), BMM_WORDS8(w)
				 : "memory");
}

/* What is stepping, or of another size, or left over goes as with movnti. */
static void stamp8(void *dst, const struct bmm_image *image, size_t count)
{
	size_t whole = count / RECORDS * RECORDS;

	if (image->size != 64 || image->stepping)
		whole = 0;
	stamp64_by_word(dst, image->word, whole);
	stamp((char *)dst + whole * 64, image, count - whole);
}

const struct bmm_backend bmm_x86_movnti8 = {
	.name = "movnti8",
	.flags = 0,
	.supported = supported,
	.stamp = stamp8,
	.drain = bmm_x86_drain,
};
