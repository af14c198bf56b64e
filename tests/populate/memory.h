/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* memory.h - memory for a test, what of it is there, and calls that fail */
#ifndef MEMORY_H
#define MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MIB	((size_t)1 << 20)
#define PAGE	((size_t)4096)
#define KILLS	(~0U) /* an error of forbid(): the program ends */
#define SKIPPED 77    /* how a program ends that this machine has not */

/* Page faults of a read of each page, or of a write, which changes nothing. */
long faults_of(char *p, size_t len, bool write);
bool is_there(char *p, size_t len);
bool is_zero(const char *p, size_t len);
char *try_map(size_t len, int prot, int flags, int fd);
char *map(size_t len, int flags, int fd); /* closes the file */
char *try_anonymous(size_t len, int more);
char *anonymous(size_t len);
int memfd(size_t len);
/* A file of tmpfs that has no name any more; else a memfd. */
int removed(size_t len);
/* A file of /proc, until the next call. */
const char *text_of(const char *path);

/*
 * From now on this system call ends with @error if argument @which, masked, is
 * @value and its second one is @least or more.
 */
void forbid(unsigned int nr, unsigned int which, uint32_t mask, uint32_t value,
	    uint32_t least, unsigned int error);
void forbid_query(void);

#endif
