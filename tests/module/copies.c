// SPDX-License-Identifier: GPL-2.0-only
/*
 * The copies of module/x86/copy.S, in a program: each is right for many
 * lengths, and where a page of the source cannot be read, as a broken one, it
 * ends by its exception table, says that something is left, and has written
 * nothing beside. Prints how many answers were wrong.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#define PAGE  4096UL
#define LINE  64UL
#define PAGES 13UL /* three times four, and one */

typedef unsigned long copy_fn(void *dst, const void *src, size_t len);

copy_fn bmm_copy_movnti, bmm_copy_movnti_t0, bmm_copy_movnti_nta,
	bmm_copy_movnti_pages;

static copy_fn *const copies[] = {
	bmm_copy_movnti,
	bmm_copy_movnti_t0,
	bmm_copy_movnti_nta,
	bmm_copy_movnti_pages,
};

#define COPIES (sizeof(copies) / sizeof(*copies))

/* tests/module/kernelstub.py; the linker script of test_copies.py names both */
extern const uint64_t extable[], extable_end[];

static unsigned long wrong, failures;

/* As the kernel's fixup: a load that has no entry ends the program. */
static void failed(int number, siginfo_t *info, void *context)
{
	greg_t *rip = &((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
	const uint64_t *entry;

	(void)number, (void)info;
	for (entry = extable; entry < extable_end; entry += 2)
		if (entry[0] == (uint64_t)*rip) {
			*rip = (greg_t)entry[1];
			failures++;
			return;
		}
	_Exit(2);
}

static unsigned char *pages_of(size_t pages)
{
	void *at = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		exit(3);
	return at;
}

static void check_length(copy_fn *copy, unsigned char *dst,
			 const unsigned char *src, size_t len)
{
	memset(dst, 0xee, (PAGES + 1) * PAGE);
	wrong += copy(dst + LINE, src, len) != 0;
	wrong += memcmp(dst + LINE, src, len) != 0;
	for (size_t i = 0; i < LINE; i++)
		wrong += dst[i] != 0xee || dst[LINE + len + i] != 0xee;
}

/* @skew: so that another word of a line is the first of the page */
static void check_broken(copy_fn *copy, unsigned char *dst, unsigned char *src,
			 size_t page, size_t skew)
{
	unsigned long before = failures, left;

	memset(dst, 0xee, (PAGES + 1) * PAGE);
	mprotect(src + page * PAGE, PAGE, PROT_NONE);
	left = copy(dst, src + skew, PAGES * PAGE);
	mprotect(src + page * PAGE, PAGE, PROT_READ | PROT_WRITE);
	wrong += !left || left > PAGES * PAGE || failures != before + 1;
	for (size_t i = 0; i < PAGE - skew; i++)
		wrong += dst[page * PAGE + i] != 0xee ||
			 dst[PAGES * PAGE + i] != 0xee;
}

int main(void)
{
	struct sigaction action = { .sa_sigaction = failed,
				    .sa_flags = SA_SIGINFO };
	unsigned char *src = pages_of(PAGES + 1), *dst = pages_of(PAGES + 1);

	sigaction(SIGSEGV, &action, NULL);
	for (size_t i = 0; i < PAGES * PAGE; i++)
		src[i] = (unsigned char)(i * 7 + i / PAGE);
	for (size_t n = 0; n < COPIES; n++) {
		for (size_t len = LINE; len <= PAGES * PAGE - LINE;
		     len += 5 * LINE)
			check_length(copies[n], dst, src, len);
		for (size_t page = 0; page < PAGES; page++)
			for (size_t skew = 0; skew < LINE; skew += 8)
				check_broken(copies[n], dst, src, page, skew);
	}
	printf("%lu %lu\n", failures, wrong);
	return 0;
}
