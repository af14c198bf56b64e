// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What each basic block of the backends with vector registers calls where they
 * are compiled so (-fsanitize-coverage=trace-pc): a function that uses every
 * vector register, as any may.
 */
void __sanitizer_cov_trace_pc(void);

void __sanitizer_cov_trace_pc(void)
{
	__asm__ volatile("vpcmpeqd %%ymm0, %%ymm0, %%ymm0\n\t"
			 "vmovaps %%ymm0, %%ymm1" ::
				 : "xmm0", "xmm1");
}
