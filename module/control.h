/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef BMM_CONTROL_H
#define BMM_CONTROL_H

#include "path.h"

int bmm_control_init(void);
void bmm_control_exit(void);
int bmm_control_add(struct bmm_path *path);
void bmm_control_remove(struct bmm_path *path);
int bmm_choice_parse(const char *path, const char *what,
		     const char *const *names, const char *text);
ssize_t bmm_choice_show(const char *const *names, int chosen, char *buf);
int bmm_parse_mode(const struct bmm_path *path, const char *text);
int bmm_parse_number(const char *path, const char *text, unsigned long most,
		     unsigned long *value);

#endif
