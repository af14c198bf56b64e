// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The header alone, twice, in strict and old dialects of C and C++. */
#include <bulkmm.h>
#include <bulkmm.h>

#if BMM_VERSION_NUMBER < 100
#error "no version"
#endif

#ifdef __cplusplus
static_assert(noexcept(bmm_drain()), "declared so");
#endif

int main(void)
{
	return !*bmm_version() || bmm_version_number() != BMM_VERSION_NUMBER ||
	       bmm_fill(0, "x", 1, 0);
}
