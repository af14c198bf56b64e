/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Faults that do not occur on a stock machine, injected in a test build
 * (BMM_FAULTS=1). In a normal build all of this is a compile-time no-op.
 */
#ifndef BMM_FAULTS_H
#define BMM_FAULTS_H

#include <linux/types.h>

#ifdef BMM_FAULTS
bool bmm_fault(const char *fault);
const char *bmm_fault_symbol(const char *symbol);
bool bmm_fault_alloc(void);
void bmm_fault_delay(void);
void bmm_fault_hold(void);
unsigned int bmm_fault_patience(unsigned int seconds);
#else
#define bmm_fault(fault)	    false
#define bmm_fault_symbol(symbol)    (symbol)
#define bmm_fault_alloc()	    false
#define bmm_fault_delay()	    ((void)0)
#define bmm_fault_hold()	    ((void)0)
#define bmm_fault_patience(seconds) (seconds)
#endif

#endif
