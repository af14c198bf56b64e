/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef BMM_SUPPORTED_H
#define BMM_SUPPORTED_H

int bmm_supported(void);

#endif
