// SPDX-License-Identifier: GPL-2.0-only
/*
 * Zeroed allocations in atomic context.
 *
 * debugfs bulkmm_lab/zero_irq: writing N allocates N huge pages in interrupts,
 * one after the other, each dirtied just before; reading returns how many it
 * got, and how many of them were not zero. bulkmm_lab/zero_nmi does so in NMIs
 * that a CPU sends to itself (x86, kernels with alloc_pages_nolock()).
 */
#include <linux/atomic.h>
#include <linux/delay.h>
#include <linux/gfp.h>
#include <linux/irq_work.h>
#include <linux/mm.h>
#include <linux/pgtable.h>
#include <linux/preempt.h>
#include <linux/smp.h>
#include <linux/string.h>
#ifdef CONFIG_X86_64
#include <asm/apic.h>
#include <asm/nmi.h>
#endif

#include "lab.h"

#define ORDER (PMD_SHIFT - PAGE_SHIFT)
#define DIRT  0xa5
#define GFP   (GFP_ATOMIC | __GFP_NOWARN | __GFP_NORETRY | __GFP_ZERO)

static unsigned long got, wrong;
static bool seen; /* ran in the requested context */

/* The page freed last is the next one allocated. */
static void irq_dirty(void)
{
	struct page *page = alloc_pages(GFP, ORDER);

	if (!page)
		return;
	memset(page_address(page), DIRT, PMD_SIZE);
	__free_pages(page, ORDER);
}

static void irq_look(struct page *page)
{
	if (!page)
		return;
	got++;
	wrong += !!memchr_inv(page_address(page), 0, PMD_SIZE);
	__free_pages(page, ORDER);
}

static void irq_take(struct irq_work *work)
{
	seen = in_hardirq();
	irq_dirty();
	irq_look(alloc_pages(GFP, ORDER));
}

/* Not a hard one: PREEMPT_RT runs this in a thread, where it may allocate. */
static struct irq_work work = IRQ_WORK_INIT(irq_take);

static int irq_once(void)
{
	irq_work_queue(&work);
	irq_work_sync(&work);
	return 0;
}

static int irq_repeat(unsigned long many, int (*once)(void))
{
	int err = 0;

	got = 0;
	wrong = 0;
	seen = false;
	while (many-- && !err)
		err = once();
	return err;
}

static int zero_irq_write(unsigned long many)
{
	return irq_repeat(many, irq_once);
}

/* The result of the last write to either file. */
static int zero_irq_show(struct seq_file *m)
{
	seq_printf(m, "seen=%d got=%lu wrong=%lu\n", seen, got, wrong);
	return 0;
}

#if defined(CONFIG_X86_64) && defined(BMM_HAVE_ALLOC_NOLOCK)

#define NMI_WAIT_US 1000000 /* enough for emulation on a busy host */

static struct page *nmi_page;
static atomic_t nmi_asked;

static int nmi_take(unsigned int type, struct pt_regs *regs)
{
	/* not ours */
	if (!atomic_read(&nmi_asked))
		return NMI_DONE;
	seen = in_nmi();
	nmi_page = alloc_pages_nolock(__GFP_ZERO, NUMA_NO_NODE, ORDER);
	atomic_set(&nmi_asked, 0);
	return NMI_HANDLED;
}

static int nmi_once(void)
{
	unsigned long us = 0;

	nmi_page = NULL;
	preempt_disable();
	irq_dirty();
	atomic_set(&nmi_asked, 1);
	apic->send_IPI_mask(cpumask_of(smp_processor_id()), NMI_VECTOR);
	while (atomic_read(&nmi_asked) && us++ < NMI_WAIT_US)
		udelay(1);
	preempt_enable();
	if (atomic_xchg(&nmi_asked, 0))
		return -ETIMEDOUT;
	irq_look(nmi_page);
	return 0;
}

static int zero_nmi_write(unsigned long many)
{
	int err;

	err = register_nmi_handler(NMI_LOCAL, nmi_take, 0, "bulkmm_lab");
	if (err)
		return err;
	err = irq_repeat(many, nmi_once);
	unregister_nmi_handler(NMI_LOCAL, "bulkmm_lab");
	return err;
}

#define ZERO_NMI \
	{ "zero_nmi", .number = zero_nmi_write, .show = zero_irq_show },
#else
#define ZERO_NMI
#endif

BMM_LAB_PART(irq, NULL, NULL, NULL,
	     ZERO_NMI{ "zero_irq", .number = zero_irq_write,
		       .show = zero_irq_show });
