/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * All that the core needs of its host: fixed-width types and an ordinary
 * memory copy. Nothing else in core/ includes a header from outside core/.
 */
#ifndef BMM_HOST_H
#define BMM_HOST_H

#ifdef __KERNEL__
#include <linux/string.h>
#include <linux/types.h>
#define bmm_memcpy(dst, src, len) memcpy(dst, src, len)
#else
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#define bmm_memcpy(dst, src, len) __builtin_memcpy(dst, src, len)
#endif

/* Records are foreign objects (struct page): words of them may alias. */
typedef uint64_t __attribute__((__may_alias__)) bmm_word;

#define BMM_EINVAL  22 /* a value or geometry out of its documented range */
#define BMM_EUNLIKE 61 /* learned records do not follow one layout */

#endif
