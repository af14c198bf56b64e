// SPDX-License-Identifier: GPL-2.0-only
/* Fault injection for test builds; see faults.h. */
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/string.h>

#include "faults.h"

static char fault[32];
module_param_string(fault, fault, sizeof(fault), 0644);
MODULE_PARM_DESC(
	fault,
	"test build: the fault to provoke, one of unverified, nomem, nomem-verify, tracepoint, slow, stuck, wrong, ask, stale, inlined, held (default: none)");

static char fault_symbol[64];
module_param_string(fault_symbol, fault_symbol, sizeof(fault_symbol), 0444);
MODULE_PARM_DESC(
	fault_symbol,
	"test build: a kernel symbol to treat as missing (default: none)");

static char fault_other[64];
module_param_string(fault_other, fault_other, sizeof(fault_other), 0444);
MODULE_PARM_DESC(
	fault_other,
	"test build: the symbol to take in place of fault_symbol (default: none)");

static unsigned int fault_alloc;
module_param(fault_alloc, uint, 0444);
MODULE_PARM_DESC(
	fault_alloc,
	"test build: the step of loading that runs out of memory, from 1 on (default: 0, none)");

static unsigned int fault_patience;
module_param(fault_patience, uint, 0644);
MODULE_PARM_DESC(
	fault_patience,
	"test build: longest time that switching off waits, in seconds (default: 0, as usual)");

bool bmm_fault(const char *name)
{
	return sysfs_streq(fault, name);
}

/* The symbol to look up instead; NULL: pretend that it is missing. */
const char *bmm_fault_symbol(const char *symbol)
{
	if (strcmp(fault_symbol, symbol))
		return symbol;
	return *fault_other ? fault_other : NULL;
}

/* Call once before each step of loading that may run out of memory. */
bool bmm_fault_alloc(void)
{
	return fault_alloc && !--fault_alloc;
}

/*
 * Widens the window for an unload or a switch in mid-work; or stays inside,
 * like a call that a BUG() has killed.
 */
void bmm_fault_delay(void)
{
	while (bmm_fault("stuck"))
		msleep(20);
	if (bmm_fault("slow"))
		msleep(20);
}

/* Keeps the lock of paths after one was switched on, as slow attaching does. */
void bmm_fault_hold(void)
{
	while (bmm_fault("held"))
		msleep(20);
}

/* How long to wait for what does not come. */
unsigned int bmm_fault_patience(unsigned int seconds)
{
	return fault_patience ?: seconds;
}
