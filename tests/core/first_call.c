// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The first calls of every operation, which calibrate: any system call kills. */
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/filter.h>
#include <linux/seccomp.h>

#include "call.h"

/* Not the strict mode: the time-stamp counter faults there. */
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

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
		_exit(3);
}

int main(void)
{
	static char to[8192], from[8192];
	const uint64_t record[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
	struct bmm_image image;
	int op;

	bmm_image_init(&image, record, NULL, 64);
	bmm_host_clock(); /* the first one may load the vDSO's data */
	seal();
	for (op = 0; op < BMM_OPS; op++)
		call((enum bmm_op)op, to, from + 13, sizeof(from) - 13, &image);
	syscall(SYS_exit, 0);
}
