/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Included first in every file of the library. From glibc 2.38 on, <stdlib.h>
 * and <stdio.h> turn strtoul() and sscanf() into functions that also read C23's
 * binary numbers, and that no older glibc has. Nothing here needs them: what is
 * built on a newer Debian runs on Debian 12.
 */
#ifndef BMM_OLDLIBC_H
#define BMM_OLDLIBC_H

#include <features.h>

#undef __GLIBC_USE_C2X_STRTOL
#undef __GLIBC_USE_C23_STRTOL
#define __GLIBC_USE_C2X_STRTOL 0
#define __GLIBC_USE_C23_STRTOL 0

#endif
