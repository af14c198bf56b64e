// SPDX-License-Identifier: GPL-2.0-only
/*
 * The state of a booted kernel around the functions that are entered: a CPU,
 * sections, struct pages, a task inside a system call.
 */
#include <asm/prctl.h>
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "native.h"

#define STACK ((size_t)16384) /* THREAD_SIZE */

static PER_KERNEL char **roots; /* of sections */

/* Makes the calling thread run on the one CPU, as far as the kernel sees. */
void state_cpu(void)
{
	if (syscall(SYS_arch_prctl, ARCH_SET_GS, fact("gs")))
		fatal("GS cannot be set: %s", strerror(errno));
}

/* Voluntary, or lazy if the kernel's own function no longer knows that. */
static int preemption(void)
{
	int (*mode)(const char *) = (void *)symbol("sched_dynamic_mode");
	int voluntary = mode("voluntary");

	return voluntary < 0 ? mode("lazy") : voluntary;
}

/* The first CPU is online, ftrace works, the preemption mode is set. */
void state_init(void)
{
	char *mode = symbol_or_null("preempt_dynamic_mode", 'k');

	state_cpu();
	AT(uint64_t, symbol("__cpu_possible_mask"), 0) = 1;
	AT(uint64_t, symbol("__cpu_online_mask"), 0) = 1;
	AT(int, symbol("ftrace_enabled"), 0) = 1;
	if (mode)
		AT(int, mode, 0) = preemption();
}

static uint64_t early_bits(void)
{
	return 1ULL << ENUM("SECTION_IS_ONLINE_BIT") |
	       1ULL << ENUM("SECTION_IS_EARLY_BIT");
}

/* The kernel's struct mem_section of a PFN. */
char *state_section(uint64_t pfn)
{
	uint64_t size = SIZE("mem_section"), nr = pfn / PAGES_SECTION;

	return roots[nr / (PAGE / size)] + nr % (PAGE / size) * size;
}

/* Sets whether the section of a PFN was present at boot. */
void state_early(uint64_t pfn, bool early)
{
	uint64_t *map = &AT(uint64_t, state_section(pfn),
			    OFFSET("mem_section.section_mem_map"));

	*map = early ? *map | early_bits() : *map & ~early_bits();
}

/* The flags of a section's 64 pageblocks: STATE_FLAGS bytes. */
char *state_flags(uint64_t pfn)
{
	return AT(char *, state_section(pfn), OFFSET("mem_section.usage")) +
	       SIZE("mem_section_usage");
}

/*
 * Makes PFNs, the first at the start of a section, have struct pages. Sections
 * present at boot are @early; hotplugged memory is not.
 */
void state_sections(uint64_t from, uint64_t pages, bool early)
{
	uint64_t size = SIZE("mem_section"), per_root = PAGE / size, nr;
	uint64_t last = (from + pages - 1) / PAGES_SECTION;
	uint64_t flags = 1ULL << ENUM("SECTION_MARKED_PRESENT_BIT") |
			 1ULL << ENUM("SECTION_HAS_MEM_MAP_BIT");
	size_t usage = SIZE("mem_section_usage");

	roots = require_memory((last / per_root + 1) * sizeof(*roots));
	if (early)
		flags |= early_bits();
	for (nr = from / PAGES_SECTION; nr <= last; nr++) {
		char **root = &roots[nr / per_root], *section, *use;

		if (!*root)
			*root = require_memory(PAGE);
		section = *root + nr % per_root * size;
		/* the pageblock flags follow it */
		use = require_memory(usage + STATE_FLAGS);
		memset(use + OFFSET("mem_section_usage.subsection_map"), 0xff,
		       sizeof(uint64_t));
		AT(uint64_t, section,
		   OFFSET("mem_section.section_mem_map")) = flags;
		AT(char *, section, OFFSET("mem_section.usage")) = use;
	}
	AT(char **, symbol("mem_section"), 0) = roots;
}

/*
 * Struct pages with any content, where the kernel finds them. Those of a
 * compound page of 1 GiB are aligned to their size, as in a kernel.
 */
char *state_pages(uint64_t from, uint64_t pages)
{
	uint64_t size = SIZE("page"), align = size << 18;
	char *at = map_memory(pages * size + align);

	at += (from * size - (uint64_t)at) % align;

	AT(uint64_t, symbol("vmemmap_base"), 0) = (uint64_t)at - from * size;
	return at;
}

/* Has the kernel's own function make compound pages of an order. */
void state_folios(char *pages, uint64_t nr, unsigned int order)
{
	void (*compound)(void *,
			 unsigned int) = (void *)symbol("prep_compound_page");
	uint64_t size = SIZE("page"), at;

	memset(pages, 0, nr * size);
	for (at = 0; at < nr; at += 1ULL << order)
		compound(pages + at * size, order);
}

/* A kernel with upstream/'s series clear has its tasks tell that they populate. */
static void set_populate(bool populating)
{
	uint64_t bit = BIT("task_struct.in_populate");
	uint8_t *byte, mask;

	if (bit == NO_MEMBER)
		return;
	byte = &AT(uint8_t, symbol("init_task"), bit / 8);
	mask = (uint8_t)(1U << bit % 8);
	*byte = populating ? *byte | mask : *byte & ~mask;
}

/* Puts the task inside a system call that populates, or (-1) in an exception. */
void state_syscall(long number)
{
	char *registers = symbol_or_null("__top_init_kernel_stack", 'k');

	if (!registers) /* 6.1 */
		registers = symbol("init_stack") + STACK - SIZE("pt_regs");
	/* not a kernel thread */
	AT(uint32_t, symbol("init_task"), OFFSET("task_struct.flags")) = 0;
	AT(long, registers, OFFSET("pt_regs.orig_ax")) = number;
	set_populate(number >= 0);
}
