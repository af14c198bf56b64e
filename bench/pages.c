// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The expected struct pages. The reference comes from the core's generic
 * backend; every byte is compared.
 */
#include <string.h>

#include "bench.h"
#include "page.h"

#define BLOCK_PAGES 64U

/**
 * pages_image() - the struct page that all pages of the device have
 *
 * Return: its image.
 */
const struct bmm_image *pages_image(void)
{
	static struct bmm_image image;
	struct model_page page;

	if (image.size)
		return &image;
	rebuild_page(&page);
	bmm_image_init(&image, &page, NULL, sizeof(page));
	return &image;
}

/**
 * pages_right() - compare struct pages
 * @base:  the first
 * @bytes: of all
 *
 * Return: whether every byte matches the reference.
 */
bool pages_right(const void *base, size_t bytes)
{
	struct model_page block[BLOCK_PAGES];
	const char *p = base;
	size_t now;

	bmm_generic.stamp(block, pages_image(), BLOCK_PAGES);
	for (; bytes; bytes -= now, p += now) {
		now = bytes < sizeof(block) ? bytes : sizeof(block);
		if (memcmp(p, block, now))
			return false;
	}
	return true;
}
