/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef BMM_CALLERS_H
#define BMM_CALLERS_H

int bmm_callers_check(const char *function, const char **err_subject);
void bmm_callers_done(void);

#endif
