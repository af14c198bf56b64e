/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef BMM_CONTROL_H
#define BMM_CONTROL_H

#include "path.h"

int bmm_control_init(void);
void bmm_control_exit(void);
int bmm_control_add(struct bmm_path *path);
void bmm_control_remove(struct bmm_path *path);
int bmm_choice_parse(const char *path, const char *setting,
		     const char *const *names, const char *text);
ssize_t bmm_choice_show(const char *const *names, int selected, char *buf);
int bmm_parse_mode(const struct bmm_path *path, const char *text);

/**
 * struct bmm_tunable - a file of a path that holds a number
 * @file:  the file
 * @value: the number, read and written once
 * @max:  its largest valid value
 */
struct bmm_tunable {
	struct kobj_attribute file;
	unsigned long *value, max;
};

ssize_t bmm_tunable_show(struct kobject *kobj, struct kobj_attribute *attr,
			 char *buf);
ssize_t bmm_tunable_store(struct kobject *kobj, struct kobj_attribute *attr,
			  const char *buf, size_t len);

#define BMM_TUNABLE(_name, _value, _most)                                 \
	{                                                                 \
		__ATTR(_name, 0644, bmm_tunable_show, bmm_tunable_store), \
		&(_value),                                                \
		_most,                                                    \
	}

#endif
