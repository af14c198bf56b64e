// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Stamping: any backend, record size, words, steps and count. */
#include "fuzz.h"

static uint8_t ours[AREA] __attribute__((__aligned__(64)));
static uint8_t reference[AREA] __attribute__((__aligned__(64)));

static void stamp_simply(uint8_t *to, const uint64_t *word,
			 const uint64_t *next, size_t words, size_t count)
{
	size_t n, w;

	for (n = 0; n < count; n++)
		for (w = 0; w < words; w++, to += 8) {
			uint64_t value = word[w] + n * (next[w] - word[w]);

			memcpy(to, &value, 8);
		}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, size };
	const struct bmm_backend *backend = take_backend(&in, BMM_STAMP);
	size_t record = (size_t)take(&in, 1);
	size_t how = (size_t)take(&in, 1);
	size_t offset = how % (SHIFT / 8) * 8;
	bool steps = !(how & 128);
	uint64_t word[20], next[20];
	struct bmm_image image;
	size_t count, w;
	bool fine;

	if (record >= 160)
		record = 64; /* the hot case, which would be too rare */
	fine = record >= 32 && record <= 128 && record % 8 == 0;
	for (w = 0; w < 20; w++)
		word[w] = take(&in, 8);
	for (w = 0; w < 20; w++)
		next[w] = word[w] + steps * take(&in, 8);
	must(!bmm_image_init(&image, word, next, record) == fine);
	if (!fine)
		return 0;
	count = (size_t)take(&in, 1) % ((AREA - 2 * SHIFT) / record);

	canaries(ours);
	canaries(reference);
	backend->stamp(ours + offset, &image, count);
	bmm_drain_stores();
	stamp_simply(reference + offset, word, next, record / 8, count);
	must(!memcmp(ours, reference, AREA));
	return 0;
}
