/* SPDX-License-Identifier: GPL-2.0-only */
/* Functions with a patched ftrace site; their bodies are one in filters.c. */
#include "trampolines.S"

#ifdef __aarch64__
#define ENTER(trampoline) mov x9, x30; bl trampoline; b body
#else
#define ENTER(trampoline) call trampoline; jmp body
#endif

.macro TAKEN_OVER name
	.global	site_\name
site_\name:
	ENTER(bmm_\name\()_trampoline)
.endm

	TAKEN_OVER memmap
	TAKEN_OVER clear
	TAKEN_OVER prezero
	TAKEN_OVER prezero_remove
	TAKEN_OVER alloc
	TAKEN_OVER copy
	TAKEN_OVER vmap_pages
	TAKEN_OVER vmap_range
	TAKEN_OVER vmap_area
	TAKEN_OVER hotplug
	TAKEN_OVER alloc_add
	TAKEN_OVER hotplug_grow
	TAKEN_OVER hotplug_shrink
#ifdef __aarch64__
	TAKEN_OVER vmap_huge
#endif

	.section .note.GNU-stack, ""
