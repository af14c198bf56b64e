// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The header alone, twice, in strict and old dialects of C and C++. */
#include <bulkmm.h>
#include <bulkmm.h>

#if BMM_VERSION_NUMBER < 100
#error "no version"
#endif

#ifdef __cplusplus
static_assert(noexcept(bmm_drain()), "declared so");
#else
static const struct bmm_options options = BMM_OPTIONS_INIT(.threads = 2);
static const struct bmm_options none = BMM_OPTIONS_INIT();
static const struct bmm_report report = BMM_REPORT_INIT;
static const struct bmm_memory memory = BMM_MEMORY_INIT(.fd = -1);

static int initialisers_are_wrong(void)
{
	return options.size != sizeof(options) || options.threads != 2 ||
	       none.size != sizeof(none) || report.size != sizeof(report) ||
	       memory.size != sizeof(memory) || memory.fd != -1;
}
#endif

int main(void)
{
#ifndef __cplusplus
	if (initialisers_are_wrong())
		return 1;
#endif
	return !*bmm_version() || bmm_version_number() != BMM_VERSION_NUMBER ||
	       bmm_fill(0, "x", 1, 0);
}
