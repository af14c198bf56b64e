// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Ours: the image of one page, stamped section by section as the module does
 * it, and drained; by a named backend, or by the core's own decision.
 */
#include "bench.h"
#include "page.h"

static void stamp(const struct bmm_backend *backend, void *page,
		  const struct bmm_image *image, size_t count)
{
	if (backend)
		backend->stamp(page, image, count);
	else
		bmm_stamp(page, image, count);
}

void stamp_run(const struct variant *self, void *base, size_t count)
{
	struct model_page first, *page = base;
	struct bmm_image image;
	size_t now;

	rebuild_page(&first, FIRST_PFN);
	bmm_image_init(&image, &first, NULL, sizeof(first));
	for (; count; count -= now, page += now) {
		now = count < SECTION_PAGES ? count : SECTION_PAGES;
		stamp(self->backend, page, &image, now);
	}
	if (self->backend)
		self->backend->drain();
	else
		bmm_drain();
}
