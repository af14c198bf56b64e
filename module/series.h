/* SPDX-License-Identifier: GPL-2.0-only */
/* The series of a kernel, from its release. Compiled in user space by tests, too. */
#ifndef BMM_SERIES_H
#define BMM_SERIES_H

#define BMM_SERIES(major, minor) ((major) << 8 | (minor))

/* BMM_SERIES() of "7.3.4+deb13-amd64", or 0. */
static inline unsigned int bmm_series(const char *release)
{
	unsigned int major, minor;

	if (sscanf(release, "%u.%u", &major, &minor) != 2 || minor > 255)
		return 0;
	return BMM_SERIES(major, minor);
}

#endif
