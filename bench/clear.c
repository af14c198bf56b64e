// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The subject "clear": ways to zero memory extent by extent, each extent used
 * at once or not. The two of the core stand beside what the kernel does (REP
 * STOSB, over the extent or page by page) and what programs do (memset).
 */
#include <stdio.h>
#include <string.h>

#include "bench.h"

#define BASE_PAGE ((size_t)4096)
/* What one sample clears, unless the extent is larger: well beyond caches. */
#define SAMPLE ((size_t)256 << 20)

struct method {
	const char *name;
	void (*clear)(void *dst, size_t len);
};

static void glibc(void *dst, size_t len)
{
	memset(dst, 0, len);
}

#ifdef __x86_64__
static void rep_stosb(void *dst, size_t len)
{
	__asm__ volatile("rep stosb"
			 : "+D"(dst), "+c"(len)
			 : "a"(0)
			 : "memory");
}

static void rep_stosb_4k(void *dst, size_t len)
{
	char *page = dst, *end = page + len;

	for (; page < end; page += BASE_PAGE)
		rep_stosb(page, BASE_PAGE);
}
#endif

static const struct method methods[] = {
#ifdef __x86_64__
	{ "rep-stosb", rep_stosb },
	{ "rep-stosb-4k", rep_stosb_4k },
#endif
	{ "glibc", glibc },
	{ "bulkmm-cached", bmm_clear },
	{ "bulkmm-streaming", bmm_clear_streaming },
};

#define METHODS_NR (sizeof(methods) / sizeof(methods[0]))

_Static_assert(EXTENTS_MAX * USES * METHODS_NR <= VARIANTS_MAX,
	       "every method for every extent and use");

static const char *const then[USES] = {
	[USE_NONE] = "",
	[USE_READ] = "-then-read",
	[USE_WRITE] = "-then-write",
	[USE_RANDOM] = "-then-random",
};

static size_t sample_bytes(size_t extent, size_t size)
{
	size_t bytes = extent > SAMPLE ? extent : SAMPLE;

	return bytes < size ? bytes : size;
}

static void run(const struct variant *self, void *base, size_t count)
{
	char *extent = base;
	char *end = extent + sample_bytes(self->extent, count);

	for (; extent < end; extent += self->extent) {
		self->clear(extent, self->extent);
		use_extent(self->use, extent, self->extent);
	}
}

/* Such as "clear-2m-then-read". */
static void name_scenario(char *name, size_t room, uint64_t extent, enum use use)
{
	unsigned int power = (unsigned int)__builtin_ctzll(extent) / 10;

	snprintf(name, room, "clear-%llu%c%s",
		 (unsigned long long)(extent >> (10 * power)), "bkmgt"[power],
		 then[use]);
}

static size_t add_scenario(struct variant *variants, const char *scenario,
			   size_t extent, enum use use)
{
	size_t i;

	for (i = 0; i < METHODS_NR; i++)
		variants[i] = (struct variant){ .scenario = scenario,
						.name = methods[i].name,
						.run = run,
						.clear = methods[i].clear,
						.extent = extent,
						.use = use };
	return METHODS_NR;
}

static size_t init(struct variant *variants, const struct options *options)
{
	static char names[EXTENTS_MAX][USES][40];
	size_t n = 0, i;
	int use;

	for (i = 0; i < options->extents_nr; i++)
		for (use = USE_NONE; use < USES; use++) {
			char *name = names[i][use];
			uint64_t extent = options->extents[i];

			name_scenario(name, sizeof(names[i][use]), extent,
				      (enum use)use);
			n += add_scenario(&variants[n], name, (size_t)extent,
					  (enum use)use);
		}
	return n;
}

static void describe(size_t count)
{
	(void)count;
	printf("\"cached\": \"%s\", \"streaming\": \"%s\"",
	       bmm_backend_default(BMM_CLEAR)->name,
	       bmm_backend_default(BMM_CLEAR_STREAMING)->name);
}

static size_t bytes_of(const struct variant *variant, size_t count)
{
	return sample_bytes(variant->extent, count);
}

/* All bytes are zero if the first is and each equals the one before it. */
static bool cleared(const struct variant *variant, void *base, size_t count)
{
	size_t bytes = sample_bytes(variant->extent, count);
	const char *byte = base;

	memset(base, 0xff, bytes);
	variant->run(variant, base, count);
	return !*byte && !memcmp(byte, byte + 1, bytes - 1);
}

const struct subject clear_subject = {
	.name = "clear",
	.per_unit = 1,
	.unit = 1,
	.init = init,
	.describe = describe,
	.verify = cleared,
	.bytes = bytes_of,
};
