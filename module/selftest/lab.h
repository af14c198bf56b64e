/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef BMM_LAB_H
#define BMM_LAB_H

#include <linux/debugfs.h>

int bmm_timer_init(struct dentry *dir);
void bmm_timer_exit(void);

void bmm_snapshot_init(struct dentry *dir);
void bmm_snapshot_exit(void);

void bmm_squat_init(struct dentry *dir);
void bmm_squat_exit(void);

void bmm_private_init(struct dentry *dir);
void bmm_private_exit(void);

void bmm_limit_init(struct dentry *dir);

void bmm_zero_init(struct dentry *dir);
void bmm_irq_init(struct dentry *dir);

void bmm_ruin_init(struct dentry *dir);
void bmm_ruin_exit(void);
void bmm_zones_init(struct dentry *dir);

void bmm_refuse_init(struct dentry *dir);
void bmm_refuse_exit(void);

#endif
