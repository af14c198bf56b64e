// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* AVX-512: a line is one register. */
#define VECTOR_LOAD(n)	    "vmovdqu64 64*" #n "(%[s]), %%zmm" #n "\n\t"
#define VECTOR_ZERO	    "vpxorq %%zmm0, %%zmm0, %%zmm0"
#define VECTOR_STORE(r, n)  "vmovdqu64 %%zmm" #r ", 64*" #n "(%[p])\n\t"
#define VECTOR_STREAM(r, n) "vmovntdq %%zmm" #r ", 64*" #n "(%[p])\n\t"
#include "vector.h"

static bool supported(void)
{
	return bmm_host_has(BMM_CPU_AVX512);
}

const struct bmm_backend bmm_avx512[] = VECTOR_BACKENDS("avx512");
