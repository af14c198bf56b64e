// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What struct pages have to look like. The reference comes from the core's
 * generic backend; every byte is compared.
 */
#include <string.h>

#include "bench.h"
#include "page.h"

#define BLOCK_PAGES 64U

static void reference(const struct variant *variant, struct model_page *block)
{
	struct model_page one;
	struct bmm_image image;

	if (variant->word) {
		for (size_t w = 0; w < sizeof(one) / 8; w++)
			((bmm_word *)&one)[w] = LIMIT_WORD;
	} else {
		rebuild_page(&one, FIRST_PFN);
	}
	bmm_image_init(&image, &one, NULL, sizeof(one));
	bmm_backend_find(BMM_STAMP, "generic", 7)
		->stamp(block, &image, BLOCK_PAGES);
}

/**
 * pages_right() - compare struct pages
 * @variant: that wrote them
 * @base:    the first
 * @count:   how many
 *
 * Return: whether every byte is as the reference has it.
 */
bool pages_right(const struct variant *variant, const void *base, size_t count)
{
	struct model_page block[BLOCK_PAGES];
	const struct model_page *page = base;
	size_t now;

	reference(variant, block);
	for (; count; count -= now, page += now) {
		now = count < BLOCK_PAGES ? count : BLOCK_PAGES;
		if (memcmp(page, block, now * sizeof(*page)))
			return false;
	}
	return true;
}
