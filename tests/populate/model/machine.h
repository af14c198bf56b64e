/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* machine.h - memory of the model: addresses that nobody accesses */
#ifndef MACHINE_H
#define MACHINE_H

#include <stddef.h>
#include <stdint.h>

#define MAPPINGS 8U
#define TIB	 ((size_t)1 << 40) /* where all of it begins */

void forget_memory(void);
/* In ascending order. */
void map_memory(uintptr_t start, size_t len, size_t page, unsigned int node);

#endif
