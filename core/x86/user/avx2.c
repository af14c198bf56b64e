// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* AVX2: a line is two registers; for CPUs without AVX-512. */
#define VECTOR_LOAD                  \
	"vmovdqu (%[s]), %%ymm0\n\t" \
	"vmovdqu 32(%[s]), %%ymm1\n\t"
#define VECTOR_ZERO \
	"vpxor %%ymm0, %%ymm0, %%ymm0\n\tvpxor %%ymm1, %%ymm1, %%ymm1"
#define VECTOR_STORE                 \
	"vmovdqa %%ymm0, (%[p])\n\t" \
	"vmovdqa %%ymm1, 32(%[p])\n\t"
#define VECTOR_STREAM                 \
	"vmovntdq %%ymm0, (%[p])\n\t" \
	"vmovntdq %%ymm1, 32(%[p])\n\t"
#include "vector.h"

static bool supported(void)
{
	return bmm_host_has(BMM_CPU_AVX2) && !bmm_host_has(BMM_CPU_AVX512);
}

const struct bmm_backend bmm_avx2[] = {
	{ .name = "avx2",
	  .supported = supported,
	  .copy = copy,
	  .copy_streaming = copy_streaming,
	  .clear = clear,
	  .clear_streaming = clear_streaming },
	{ 0 },
};
