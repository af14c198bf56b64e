/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * bulkmm-sanitize.h - included by bulkmm.h, for programs built with a sanitizer
 *
 * Compilers do not instrument assembly. In such a program AddressSanitizer
 * would miss what lies outside an object, MemorySanitizer would take what was
 * written for uninitialised, and ThreadSanitizer would see no race. So the
 * calls are replaced by inline functions that check and mark;
 * (bmm_clear)(dst, len) calls without.
 */
#ifndef BULKMM_SANITIZE_H
#define BULKMM_SANITIZE_H

#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define BMM_ASAN
#elif __has_feature(memory_sanitizer)
#define BMM_MSAN
#elif __has_feature(thread_sanitizer)
#define BMM_TSAN
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define BMM_ASAN
#elif defined(__SANITIZE_THREAD__)
#define BMM_TSAN
#endif

#ifdef BMM_ASAN
#include <sanitizer/asan_interface.h>

/* The compiler's own check reports the first bad byte. */
static inline void bmm_sanitize_read(const void *src, size_t len)
{
	const volatile char *bad = (const char *)
		__asan_region_is_poisoned((void *)(uintptr_t)src, len);

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

#ifdef BMM_TSAN
/* As the compiler calls them; no header of GCC or Clang declares them. */
#ifdef __cplusplus
extern "C" {
#endif
void __tsan_read_range(void *addr, long len);
void __tsan_write_range(void *addr, long len);
#ifdef __cplusplus
}
#endif

static inline void bmm_sanitize_read(const void *src, size_t len)
{
	if (len)
		__tsan_read_range((void *)(uintptr_t)src, (long)len);
}

static inline void bmm_sanitize_wrote(void *dst, size_t len)
{
	if (len)
		__tsan_write_range(dst, (long)len);
}

#define bmm_sanitize_write(dst, len)	   ((void)0)
#define bmm_sanitize_copied(dst, src, len) bmm_sanitize_wrote(dst, len)
#endif

#if defined(BMM_ASAN) || defined(BMM_MSAN) || defined(BMM_TSAN)

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

#define BMM_SANITIZE_TEXT(name, takes, gives)                         \
	static inline size_t sanitized_##name takes                   \
	{                                                             \
		size_t len;                                           \
                                                                      \
		bmm_sanitize_write(buf, size);                        \
		len = name gives;                                     \
		bmm_sanitize_wrote(buf, len < size ? len + 1 : size); \
		return len;                                           \
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
BMM_SANITIZE_TEXT(bmm_backend_selection,
		  (enum bmm_op op, char *buf, size_t size), (op, buf, size))
BMM_SANITIZE_TEXT(bmm_backend_list,
		  (enum bmm_op op, size_t extent, char *buf, size_t size),
		  (op, extent, buf, size))
BMM_SANITIZE_TEXT(bmm_environment_error, (char *buf, size_t size), (buf, size))
BMM_SANITIZE_TEXT(bmm_report_text,
		  (const struct bmm_report *report, char *buf, size_t size),
		  (report, buf, size))

static inline int sanitized_bmm_image_init(struct bmm_image *image,
					   const void *record, const void *next,
					   size_t size)
{
	int err = bmm_image_init(image, record, next, size);

	if (!err)
		bmm_sanitize_wrote(image, sizeof(*image));
	return err;
}

static inline void sanitized_bmm_image_at(struct bmm_image *out,
					  const struct bmm_image *image,
					  uint64_t n)
{
	bmm_sanitize_write(out, sizeof(*out));
	bmm_image_at(out, image, n);
	bmm_sanitize_wrote(out, sizeof(*out));
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

static inline void bmm_sanitize_report(struct bmm_report *report)
{
	if (report && report->size == sizeof(*report))
		bmm_sanitize_wrote(report, sizeof(*report));
}

static inline int sanitized_bmm_populate(void *addr, size_t len,
					 const struct bmm_options *options,
					 struct bmm_report *report)
{
	int err = bmm_populate(addr, len, options, report);

	bmm_sanitize_report(report);
	return err;
}

static inline int sanitized_bmm_clear_parallel(void *dst, size_t len,
					       const struct bmm_options *options,
					       struct bmm_report *report)
{
	int err;

	bmm_sanitize_write(dst, len);
	err = bmm_clear_parallel(dst, len, options, report);
	bmm_sanitize_report(report);
	if (!err)
		bmm_sanitize_wrote(dst, len);
	return err;
}

/* Of any number of arguments: a literal may have commas of its own. */
#define bmm_clear(...)		   sanitized_bmm_clear(__VA_ARGS__)
#define bmm_clear_streaming(...)   sanitized_bmm_clear_streaming(__VA_ARGS__)
#define bmm_copy(...)		   sanitized_bmm_copy(__VA_ARGS__)
#define bmm_copy_streaming(...)	   sanitized_bmm_copy_streaming(__VA_ARGS__)
#define bmm_fill(...)		   sanitized_bmm_fill(__VA_ARGS__)
#define bmm_fill_cached(...)	   sanitized_bmm_fill_cached(__VA_ARGS__)
#define bmm_image_init(...)	   sanitized_bmm_image_init(__VA_ARGS__)
#define bmm_image_at(...)	   sanitized_bmm_image_at(__VA_ARGS__)
#define bmm_stamp(...)		   sanitized_bmm_stamp(__VA_ARGS__)
#define bmm_backend_selection(...) sanitized_bmm_backend_selection(__VA_ARGS__)
#define bmm_backend_list(...)	   sanitized_bmm_backend_list(__VA_ARGS__)
#define bmm_environment_error(...) sanitized_bmm_environment_error(__VA_ARGS__)
#define bmm_report_text(...)	   sanitized_bmm_report_text(__VA_ARGS__)
#define bmm_populate(...)	   sanitized_bmm_populate(__VA_ARGS__)
#define bmm_clear_parallel(...)	   sanitized_bmm_clear_parallel(__VA_ARGS__)
#define bmm_move(...)		   sanitized_bmm_move(__VA_ARGS__)
#define bmm_move_streaming(...)	   sanitized_bmm_move(__VA_ARGS__)

#endif

#endif
