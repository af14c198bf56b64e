/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef BMM_CMDLINE_H
#define BMM_CMDLINE_H

int bmm_cmdline_has(const char *word);

#endif
