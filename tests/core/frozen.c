// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What is selected costs nothing more: no clock, no system call, no shared
 * write. Every operation is done once; then all data of the program is made
 * read-only, the time-stamp counter faults, and any system call but exit kills;
 * and it is done again.
 *
 *	frozen [break|old|first]
 *
 * "break" forgets one selection, so that the last part dies; "old" is a CPU
 * without any feature that backends ask for: stamping has a single candidate
 * there; "first" does it once, and the calls that calibrate may not make any
 * system call either.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/filter.h>
#include <linux/seccomp.h>

#include "../../bench/library/bench.h"

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

/* Any system call but exit kills; in the strict mode the clock would fault. */
static void seal(void)
{
	struct sock_filter only[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog filter = { sizeof(only) / sizeof(*only), only };

	bmm_host_clock(); /* the first one may load the vDSO's data */
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
		_exit(3);
}

static void call_all(char *to, const char *from)
{
	const uint64_t record[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
	struct bmm_image image;
	struct bmm_job job = { .dst = to, .image = &image };
	unsigned int op;
	size_t i;

	bmm_image_init(&image, record, NULL, 64);
	for (op = 0; op < BMM_OPS; op++)
		for (i = 0; i < LENGTHS; i++) {
			job.op = (enum bmm_op)op;
			job.src = from;
			job.len = lengths[i];
			job_call(&job);
			job.src = from + 13;
			job.len -= 13;
			job_call(&job);
			bmm_drain();
		}
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	char *to = aligned_alloc(4096, ROOM), *from = aligned_alloc(4096, ROOM);

	if (!to || !from)
		return 3;
	old = !strcmp(how, "old");
	memset(to, 1, ROOM);
	memset(from, 1, ROOM);
	if (!strcmp(how, "first")) {
		seal();
		call_all(to, from);
		syscall(SYS_exit, 0);
	}
	call_all(to, from);
	if (!strcmp(how, "break"))
		bmm_backend_select(BMM_COPY, "fastest", 7);
	freeze();
	call_all(to, from);
	syscall(SYS_exit, 0);
}
