/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef BMM_CONTROL_H
#define BMM_CONTROL_H

#include "path.h"

int bmm_control_init(void);
void bmm_control_exit(void);
int bmm_control_add(struct bmm_path *path);
void bmm_control_remove(struct bmm_path *path);
int bmm_parse_mode(const struct bmm_path *path, const char *text);
int bmm_parse_number(const struct bmm_path *path, const char *text,
		     unsigned long most, unsigned long *value);
ssize_t bmm_counter_show(struct bmm_path *path, unsigned int index, char *buf);

#endif
