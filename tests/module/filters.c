// SPDX-License-Identifier: GPL-2.0-only
/*
 * The module's trampolines between a function and its caller: whether they
 * turn to the handler for the requests that they are meant to, and whether
 * either way finds the arguments as they were. Prints what went wrong.
 */
#include <stdio.h>

#define BLOCK	    0x200000UL /* PMD_SIZE */
#define GROUP_SHIFT 16	       /* CONT_PTE_SHIFT */
#define EACH	    20000
#define TIMES_SHOWN 5

enum way {
	BODY = 1,
	HANDLER,
	CORRUPTED
};

typedef unsigned long words[5];
typedef enum way function(unsigned long, unsigned long, unsigned long,
			  unsigned long, unsigned long);

static const unsigned long *passed;

static enum way arrived(enum way way, const unsigned long *got)
{
	int i;

	for (i = 0; i < 5; i++)
		if (got[i] != passed[i])
			return CORRUPTED;
	return way;
}

#define ENDS_IN(name, which)                                             \
	enum way name(unsigned long a, unsigned long b, unsigned long c, \
		      unsigned long d, unsigned long e);                 \
	enum way name(unsigned long a, unsigned long b, unsigned long c, \
		      unsigned long d, unsigned long e)                  \
	{                                                                \
		return arrived(which, (const words){ a, b, c, d, e });   \
	}

ENDS_IN(body, BODY)

/* The functions that are hooked, and by which requests. */
#ifdef __aarch64__
#define HOOKS_OF_ARM(HOOK) \
	HOOK(vmap_huge,    \
	     (unsigned int)arg[4] == GROUP_SHIFT && arg[1] - arg[0] >= least)
#define ENTER(trampoline) "mov x9, x30; bl " trampoline "; b body"
#else
#define HOOKS_OF_ARM(HOOK)
#define ENTER(trampoline) "call " trampoline "; jmp body"
#endif
#define HOOKS(HOOK)                                                          \
	HOOK(memmap, arg[2] >= least)                                        \
	HOOK(clear, arg[1] >= least)                                         \
	HOOK(prezero, arg[1] >= least)                                       \
	HOOK(prezero_remove, arg[1] >= least)                                \
	HOOK(copy, arg[2] >= least)                                          \
	HOOK(alloc, (unsigned int)arg[1] >= (unsigned int)least)             \
	HOOK(alloc_add, arg[2] >= least)                                     \
	HOOK(vmap_pages, arg[1] - arg[0] >= least)                           \
	HOOK(vmap_range,                                                     \
	     (arg[0] | arg[1] | arg[2]) % BLOCK && arg[1] - arg[0] >= least) \
	HOOK(vmap_area, arg[0] >= least)                                     \
	HOOK(hotplug, arg[0] >= least)                                       \
	HOOK(hotplug_grow, arg[0] >= least)                                  \
	HOOK(hotplug_shrink, arg[0] >= least)                                \
	HOOKS_OF_ARM(HOOK)

/* Each has a patched ftrace site, and one body. */
#define TAKEN_OVER(name, condition)                           \
	extern unsigned long bmm_##name##_threshold;          \
	unsigned long bmm_##name##_threshold;                 \
	__asm__(".text; .balign 8; site_" #name               \
		": " ENTER("bmm_" #name "_trampoline"));      \
	function site_##name;                                 \
	ENDS_IN(bmm_##name##_handler, HANDLER)                \
	static int wants_##name(const unsigned long *arg)     \
	{                                                     \
		unsigned long least = bmm_##name##_threshold; \
                                                              \
		return condition;                             \
	}
HOOKS(TAKEN_OVER)

static const struct {
	const char *name;
	function *site;
	int (*wants)(const unsigned long *arg);
	unsigned long *threshold;
} table[] = {
#define ROW(name, condition) \
	{ #name, site_##name, wants_##name, &bmm_##name##_threshold },
	HOOKS(ROW)
};

static unsigned long random_word(void)
{
	static unsigned long x = 88172645463325252UL;

	x ^= x << 13;
	x ^= x >> 7;
	return x ^= x << 17;
}

/* What lies on an edge of some filter more often than not. */
static unsigned long argument(unsigned long threshold)
{
	unsigned long near = random_word() % 3 - 1;

	switch (random_word() % 7) {
	case 0:
		return threshold + near;
	case 1:
		return random_word() % 64 * BLOCK;
	case 2:
		return random_word() % 64 * BLOCK + near;
	case 3:
		return GROUP_SHIFT + near;
	case 4:
		return near << 31;
	case 5:
		return random_word() << 32 | GROUP_SHIFT;
	default:
		return random_word();
	}
}

static int wrong(size_t which, const unsigned long *arg)
{
	enum way wanted = table[which].wants(arg) ? HANDLER : BODY, got;

	passed = arg;
	got = table[which].site(arg[0], arg[1], arg[2], arg[3], arg[4]);
	if (got == wanted)
		return 0;
	printf("%s: %d instead of %d for %#lx, %#lx, %#lx, %#lx, %#lx from %#lx on\n",
	       table[which].name, got, wanted, arg[0], arg[1], arg[2], arg[3],
	       arg[4], *table[which].threshold);
	return 1;
}

static unsigned long threshold(void)
{
	static const unsigned long some[] = { 0, 1, 4096, BLOCK, ~0UL };

	return some[random_word() % (sizeof(some) / sizeof(some[0]))];
}

int main(void)
{
	int left = TIMES_SHOWN, seen[2], n, i;
	size_t which;
	words arg;

	for (which = 0; which < sizeof(table) / sizeof(table[0]); which++) {
		seen[0] = seen[1] = 0;
		for (n = 0; n < EACH && left; n++) {
			*table[which].threshold = threshold();
			for (i = 0; i < 5; i++)
				arg[i] = argument(*table[which].threshold);
			left -= wrong(which, arg);
			seen[table[which].wants(arg)]++;
		}
		printf("%s: %d to the body, %d to the handler\n",
		       table[which].name, seen[0], seen[1]);
	}
	return left < TIMES_SHOWN;
}
