/* SPDX-License-Identifier: GPL-2.0-only */
/* What the files of bmmpool share: memory of a kind, and checks of it. */
#ifndef BMMPOOL_H
#define BMMPOOL_H

#include "bulkmm.h"
#include "guest.h"

struct memory {
	char *at;
	size_t len;
	size_t page; /* its page size: what is touched or faulted in at once */
	int fd;	     /* of the file that backs it, -1: none */
};

/* bmmpool_memory.c */
void memory_map(struct memory *m, const char *kind, size_t len, int more);
void memory_file(struct memory *m, const char *kind, size_t len);
unsigned long memory_wrong(const struct memory *m);
long memory_faults(const struct memory *m, size_t len);
void memory_nodes(const struct memory *m, char *text, int parts);

/* bmmpool_report.c */
void report(char **word);

#endif
