// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * FEAT_MOPS (Armv8.8): SETP, SETM, SETE fill memory and CPYFP, CPYFM, CPYFE
 * copy it forward, any length at any alignment, in chunks that the CPU chooses:
 * no edges to write separately. Ordered like ordinary stores.
 *
 * The three must be consecutive. After an interrupt they continue from the
 * registers and flags, which hold the progress and are therefore clobbered; on
 * a CPU that encodes it differently, the kernel restarts at the first of them.
 *
 * The N forms carry the hint of STNP, that the data is not used again soon;
 * CPYF..N gives it for the source too, as the other copies do.
 */
#include "../bmm.h"

static bool supported(void)
{
	return bmm_host_has(BMM_CPU_MOPS);
}

#define SET(hint)                          \
	".arch_extension mops\n\t"         \
	"setp" hint " [%0]!, %1!, xzr\n\t" \
	"setm" hint " [%0]!, %1!, xzr\n\t" \
	"sete" hint " [%0]!, %1!, xzr"

static void clear(void *dst, size_t len)
{
	__asm__ volatile(SET("") : "+r"(dst), "+r"(len) : : "memory", "cc");
}

static void clear_streaming(void *dst, size_t len)
{
	__asm__ volatile(SET("n") : "+r"(dst), "+r"(len) : : "memory", "cc");
}

#define COPY(hint)                            \
	".arch_extension mops\n\t"            \
	"cpyfp" hint " [%0]!, [%1]!, %2!\n\t" \
	"cpyfm" hint " [%0]!, [%1]!, %2!\n\t" \
	"cpyfe" hint " [%0]!, [%1]!, %2!"

static void copy(void *dst, const void *src, size_t len)
{
	__asm__ volatile(COPY("")
			 : "+r"(dst), "+r"(src), "+r"(len)
			 :
			 : "memory", "cc");
}

static void copy_streaming(void *dst, const void *src, size_t len)
{
	__asm__ volatile(COPY("n")
			 : "+r"(dst), "+r"(src), "+r"(len)
			 :
			 : "memory", "cc");
}

const struct bmm_backend bmm_mops[] = {
	{ .name = "mops",
	  .supported = supported,
	  .copy = BMM_COPY_FN(copy),
	  .copy_streaming = BMM_COPY_FN(copy_streaming),
	  .clear = clear,
	  .clear_streaming = clear_streaming },
	{ 0 },
};
