// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Ours: the image of one page, stamped section by section as the module does
 * it, and drained.
 */
#include "bench.h"
#include "page.h"

void stamp_run(const struct variant *self, void *base, size_t count)
{
	const struct bmm_backend *backend = self->backend;
	struct model_page first, *page = base;
	struct bmm_image image;
	size_t now;

	rebuild_page(&first, FIRST_PFN);
	bmm_image_init(&image, &first, NULL, sizeof(first));
	for (; count; count -= now, page += now) {
		now = count < SECTION_PAGES ? count : SECTION_PAGES;
		backend->stamp(page, &image, now);
	}
	backend->drain();
}
