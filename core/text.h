/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* text.h - append text to a buffer that may be too small */
#ifndef BMM_TEXT_H
#define BMM_TEXT_H

#include "bmm_host.h"

/**
 * struct bmm_text - the text so far
 * @buf:  result, @size bytes of it; terminated by bmm_text_end()
 * @size: bytes of @buf; may be 0
 * @len:  length of the whole text, including what did not fit
 */
struct bmm_text {
	char *buf;
	size_t size, len;
};

static inline void bmm_text_add(struct bmm_text *text, const char *s)
{
	for (; *s; s++, text->len++)
		if (text->len + 1 < text->size)
			text->buf[text->len] = *s;
}

static inline void bmm_text_end(struct bmm_text *text)
{
	if (text->size)
		text->buf[text->len < text->size ? text->len : text->size - 1] = 0;
}

#endif
