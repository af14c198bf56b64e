// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The backends with vector registers, compiled so that each of their basic
 * blocks calls a function (-fsanitize-coverage=trace-pc), here one that uses
 * every vector register, as any function may.
 */
#include <stdio.h>
#include <string.h>

#include "bmm.h"

#define ROOM 4096

static char to[ROOM] __attribute__((__aligned__(64))), from[ROOM];

void __sanitizer_cov_trace_pc(void);

void __sanitizer_cov_trace_pc(void)
{
	__asm__ volatile("vpcmpeqd %%ymm0, %%ymm0, %%ymm0\n\t"
			 "vmovaps %%ymm0, %%ymm1" ::
				 : "xmm0", "xmm1");
}

static size_t differs(const char *wanted)
{
	size_t i, wrong = 0;

	for (i = 0; i < ROOM; i++)
		wrong += to[i] != wanted[i];
	return wrong;
}

static size_t try(const struct bmm_backend *backend)
{
	static const char zeros[ROOM];
	size_t wrong = 0;

	memset(from, 'x', ROOM);
	memset(to, 1, ROOM);
	backend->clear(to, ROOM);
	wrong += differs(zeros);
	memset(to, 1, ROOM);
	backend->clear_streaming(to, ROOM);
	wrong += differs(zeros);
	backend->copy(to, from, ROOM);
	wrong += differs(from);
	memset(to, 1, ROOM);
	backend->copy_streaming(to, from, ROOM);
	return wrong + differs(from);
}

int main(void)
{
	if (bmm_host_has(BMM_CPU_AVX512))
		printf("avx512: %zu wrong\n", try(bmm_avx512));
	if (bmm_host_has(BMM_CPU_AVX2))
		printf("avx2: %zu wrong\n", try(bmm_avx2));
	return 0;
}
