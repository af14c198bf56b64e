// SPDX-License-Identifier: GPL-2.0-only
/*
 * In the cache or around it. The paths that clear decide alike: the modes, and
 * what "auto" makes of a request.
 */
#include <linux/minmax.h>
#include <linux/pgtable.h>
#include <asm/processor.h>

#include "clear_decide.h"

enum mode {
	MODE_OFF = BMM_OFF,
	MODE_AUTO,
	MODE_CACHED,
	MODE_STREAMING,
};

const char *const bmm_clear_modes[] = {
	[MODE_OFF] = "off",
	[MODE_AUTO] = "auto",
	[MODE_CACHED] = "cached",
	[MODE_STREAMING] = "streaming",
	NULL,
};

/* The largest page that "auto" leaves in the cache, in bytes. */
unsigned long bmm_clear_cached_max;

/* Bytes of the last-level cache, or 0; arm64 does not tell modules. */
static unsigned long last_level(void)
{
#ifdef CONFIG_X86_64
	return boot_cpu_data.x86_cache_size * 1024UL;
#else
	return 0;
#endif
}

/*
 * A quarter of the last level: the rest is what the program works with. Not
 * known under some hypervisors: then what a fault brings in.
 */
void bmm_clear_decide_init(void)
{
	if (!bmm_clear_cached_max)
		bmm_clear_cached_max = max(last_level() / 4, PMD_SIZE);
}

/**
 * bmm_clear_decide() - how memory is cleared
 * @bytes:      how much
 * @mode:       index into bmm_clear_modes, not that of "off"
 * @populating: whether it is prepared ahead of use
 *
 * Return: BMM_CLEAR or BMM_CLEAR_STREAMING.
 */
enum bmm_op bmm_clear_decide(size_t bytes, int mode, bool populating)
{
	if (mode == MODE_CACHED)
		return BMM_CLEAR;
	if (mode == MODE_STREAMING || populating)
		return BMM_CLEAR_STREAMING;
	return bytes > READ_ONCE(bmm_clear_cached_max) ? BMM_CLEAR_STREAMING :
							 BMM_CLEAR;
}
