/* SPDX-License-Identifier: GPL-2.0-only */
/* What the files of bmmpin share. */
#ifndef BMMPIN_H
#define BMMPIN_H

#include <stddef.h>

#define HUGE_BYTES (2UL << 20)
#define BYTES	   (4 * HUGE_BYTES) /* of memory to allocate */

char *fresh(int prot);

/* bmmpin_vm.c */
void vfio(const char *device, const char *group);
void kvm_prefault(void);
void kvm_run(void);

#endif
