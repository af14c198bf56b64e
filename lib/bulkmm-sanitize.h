/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * bulkmm-sanitize.h - included by bulkmm.h, for programs built with a sanitizer
 *
 * Compilers do not instrument assembly. In such a program AddressSanitizer
 * would miss what lies outside an object, and MemorySanitizer would take what
 * was written for uninitialised. So the calls are replaced by inline functions
 * that check and mark; (bmm_clear)(dst, len) calls without.
 */
#ifndef BULKMM_SANITIZE_H
#define BULKMM_SANITIZE_H

#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define BMM_ASAN
#elif __has_feature(memory_sanitizer)
#define BMM_MSAN
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define BMM_ASAN
#endif

#ifdef BMM_ASAN
#include <sanitizer/asan_interface.h>

/* The compiler's own check reports the first bad byte. */
static inline void bmm_sanitize_read(const void *src, size_t len)
{
	const volatile char *bad = (char *)__asan_region_is_poisoned((void *)src,
								     len);

	if (bad)
		(void)*bad;
}

static inline void bmm_sanitize_write(void *dst, size_t len)
{
	volatile char *bad = (char *)__asan_region_is_poisoned(dst, len);

	if (bad)
		*bad = 0;
}

#define bmm_sanitize_wrote(dst, len)	   ((void)0)
#define bmm_sanitize_copied(dst, src, len) ((void)0)
#endif

#ifdef BMM_MSAN
#include <sanitizer/msan_interface.h>

#define bmm_sanitize_read(src, len)	   ((void)0)
#define bmm_sanitize_write(dst, len)	   ((void)0)
#define bmm_sanitize_wrote(dst, len)	   __msan_unpoison(dst, len)
#define bmm_sanitize_copied(dst, src, len) __msan_copy_shadow(dst, src, len)
#endif

#if defined(BMM_ASAN) || defined(BMM_MSAN)

#define BMM_SANITIZE_CLEAR(name)                                   \
	static inline void sanitized_##name(void *dst, size_t len) \
	{                                                          \
		bmm_sanitize_write(dst, len);                      \
		name(dst, len);                                    \
		bmm_sanitize_wrote(dst, len);                      \
	}

#define BMM_SANITIZE_COPY(name)                                         \
	static inline void sanitized_##name(void *dst, const void *src, \
					    size_t len)                 \
	{                                                               \
		bmm_sanitize_read(src, len);                            \
		bmm_sanitize_write(dst, len);                           \
		name(dst, src, len);                                    \
		bmm_sanitize_copied(dst, src, len);                     \
	}

#define BMM_SANITIZE_FILL(name)                                            \
	static inline int sanitized_##name(void *dst, const void *pattern, \
					   size_t size, size_t len)        \
	{                                                                  \
		int err;                                                   \
                                                                           \
		bmm_sanitize_read(pattern, size);                          \
		bmm_sanitize_write(dst, len);                              \
		err = name(dst, pattern, size, len);                       \
		if (!err)                                                  \
			bmm_sanitize_wrote(dst, len);                      \
		return err;                                                \
	}

/* Sanitizers know memmove(), and what it does where ranges overlap. */
static inline void sanitized_bmm_move(void *dst, const void *src, size_t len)
{
	if (len)
		__builtin_memmove(dst, src, len);
}

BMM_SANITIZE_CLEAR(bmm_clear)
BMM_SANITIZE_CLEAR(bmm_clear_streaming)
BMM_SANITIZE_COPY(bmm_copy)
BMM_SANITIZE_COPY(bmm_copy_streaming)
BMM_SANITIZE_FILL(bmm_fill)
BMM_SANITIZE_FILL(bmm_fill_cached)

static inline int sanitized_bmm_image_init(struct bmm_image *image,
					   const void *record, const void *next,
					   size_t size)
{
	int err = bmm_image_init(image, record, next, size);

	if (!err)
		bmm_sanitize_wrote(image, sizeof(*image));
	return err;
}

static inline int sanitized_bmm_stamp(void *dst, const struct bmm_image *image,
				      size_t count)
{
	size_t len = count ? count * image->size : 0;
	int err;

	bmm_sanitize_write(dst, len);
	err = bmm_stamp(dst, image, count);
	if (!err)
		bmm_sanitize_wrote(dst, len);
	return err;
}

static inline int sanitized_bmm_clear_parallel(void *dst, size_t len,
					       const struct bmm_options *options,
					       struct bmm_report *report)
{
	int err;

	bmm_sanitize_write(dst, len);
	err = bmm_clear_parallel(dst, len, options, report);
	if (!err)
		bmm_sanitize_wrote(dst, len);
	return err;
}

#define bmm_clear(dst, len)	      sanitized_bmm_clear(dst, len)
#define bmm_clear_streaming(dst, len) sanitized_bmm_clear_streaming(dst, len)
#define bmm_copy(dst, src, len)	      sanitized_bmm_copy(dst, src, len)
#define bmm_copy_streaming(dst, src, len) \
	sanitized_bmm_copy_streaming(dst, src, len)
#define bmm_move(dst, src, len)		  sanitized_bmm_move(dst, src, len)
#define bmm_move_streaming(dst, src, len) sanitized_bmm_move(dst, src, len)
#define bmm_image_init(image, record, next, size) \
	sanitized_bmm_image_init(image, record, next, size)
#define bmm_stamp(dst, image, count) sanitized_bmm_stamp(dst, image, count)
#define bmm_fill(dst, pattern, size, len) \
	sanitized_bmm_fill(dst, pattern, size, len)
#define bmm_fill_cached(dst, pattern, size, len) \
	sanitized_bmm_fill_cached(dst, pattern, size, len)
#define bmm_clear_parallel(dst, len, options, report) \
	sanitized_bmm_clear_parallel(dst, len, options, report)

#endif

#endif
