// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* AVX2: a line is two registers, n and 1n; for CPUs without AVX-512. */
#define VECTOR_LOAD(n)                             \
	"vmovdqu 64*" #n "(%[s]), %%ymm" #n "\n\t" \
	"vmovdqu 64*" #n "+32(%[s]), %%ymm1" #n "\n\t"
#define VECTOR_ZERO \
	"vpxor %%ymm0, %%ymm0, %%ymm0\n\tvpxor %%ymm10, %%ymm10, %%ymm10"
#define VECTOR_STORE(r, n)                         \
	"vmovdqu %%ymm" #r ", 64*" #n "(%[p])\n\t" \
	"vmovdqu %%ymm1" #r ", 64*" #n "+32(%[p])\n\t"
#define VECTOR_STREAM(r, n)                         \
	"vmovntdq %%ymm" #r ", 64*" #n "(%[p])\n\t" \
	"vmovntdq %%ymm1" #r ", 64*" #n "+32(%[p])\n\t"
#include "vector.h"

static bool supported(void)
{
	return bmm_host_has(BMM_CPU_AVX2) && !bmm_host_has(BMM_CPU_AVX512);
}

const struct bmm_backend bmm_avx2[] = VECTOR_BACKENDS("avx2");
