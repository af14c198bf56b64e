/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* The public function of each operation. */
#ifndef CALL_H
#define CALL_H

#include "bmm.h"

/* @len: bytes; stamping takes the whole images of 64 bytes among them */
static void call(enum bmm_op op, char *to, const char *from, size_t len,
		 const struct bmm_image *image)
{
	switch (op) {
	case BMM_STAMP:
		bmm_stamp(to, image, len / 64);
		break;
	case BMM_COPY:
		bmm_copy(to, from, len);
		break;
	case BMM_COPY_STREAMING:
		bmm_copy_streaming(to, from, len);
		break;
	case BMM_CLEAR:
		bmm_clear(to, len);
		break;
	default:
		bmm_clear_streaming(to, len);
		break;
	}
}

#endif
