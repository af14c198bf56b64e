// SPDX-License-Identifier: GPL-2.0-only
/*
 * The module loads only into kernels it was tested on. A kernel rejects a
 * module built for another one, but can be forced to accept it.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/kernel.h>
#include <linux/utsname.h>

#include "faults.h"
#include "supported.h"

/* In the form of compat/supported.mk: 6012 for 6.12. */
static unsigned int supported_number(const char *release)
{
	unsigned int version, patchlevel;

	if (sscanf(release, "%u.%u", &version, &patchlevel) != 2)
		return 0;
	return version * 1000 + patchlevel;
}

/**
 * bmm_supported() - whether the running kernel is supported
 *
 * Return: 0, or -EOPNOTSUPP after one line in the log.
 */
int bmm_supported(void)
{
	const char *release = bmm_fault_release(init_utsname()->release);
	unsigned int running = supported_number(release);

	if (IS_ENABLED(BMM_ANY_KERNEL) ||
	    (running >= BMM_OLDEST && running <= BMM_NEWEST))
		return 0;
	pr_err("Linux %s is not supported here: %u.%u to %u.%u only\n", release,
	       BMM_OLDEST / 1000, BMM_OLDEST % 1000, BMM_NEWEST / 1000,
	       BMM_NEWEST % 1000);
	return -EOPNOTSUPP;
}
