// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What is selected costs nothing more: no clock, no system call, no shared
 * write. Every operation is done once; then all data of the program is made
 * read-only, the time-stamp counter faults, and any system call but exit kills;
 * and it is done again.
 *
 *	frozen [break|old]
 *
 * "break" forgets one selection, so that the last part dies; "old" is a CPU
 * without any feature that backends ask for: stamping has a single candidate
 * there.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/seccomp.h>

#include "call.h"

#define ROOM ((size_t)1 << 20)

static const size_t lengths[] = { 64, 4096, 65536, 300001, ROOM };

#define LENGTHS (sizeof(lengths) / sizeof(lengths[0]))

static bool old;

/* The linker calls this instead of lib/cpu.c (--wrap). */
bool __real_bmm_host_has(enum bmm_cpu feature);
bool __wrap_bmm_host_has(enum bmm_cpu feature);

bool __wrap_bmm_host_has(enum bmm_cpu feature)
{
	return !old && __real_bmm_host_has(feature);
}

/* From the first page of its own data to the last. */
static void freeze(void)
{
	extern char __data_start, end;
	uintptr_t from = ((uintptr_t)&__data_start + 4095) & -4096UL;
	uintptr_t to = (uintptr_t)&end & -4096UL;

	if (mprotect((void *)from, to - from, PROT_READ) ||
#ifdef __x86_64__
	    prctl(PR_SET_TSC, PR_TSC_SIGSEGV) ||
#endif
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT))
		_exit(3);
}

int main(int argc, char **argv)
{
	char *to = aligned_alloc(4096, ROOM), *from = aligned_alloc(4096, ROOM);
	const uint64_t record[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
	struct bmm_image image;
	int op, pass;
	size_t i;

	if (!to || !from)
		return 3;
	old = argc > 1 && !strcmp(argv[1], "old");
	memset(to, 1, ROOM);
	memset(from, 1, ROOM);
	bmm_image_init(&image, record, NULL, 64);
	for (pass = 0; pass < 2; pass++) {
		for (op = 0; op < BMM_OPS; op++)
			for (i = 0; i < LENGTHS; i++) {
				call((enum bmm_op)op, to, from, lengths[i],
				     &image);
				bmm_drain();
			}
		if (!pass && argc > 1 && !strcmp(argv[1], "break"))
			bmm_backend_select(BMM_COPY, "fastest", 7);
		if (!pass)
			freeze();
	}
	syscall(SYS_exit, 0);
}
