/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* cases.h - what the cases share: a verdict, memory, a machine that is made up */
#ifndef CASES_H
#define CASES_H

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "../../../lib/populate/populate.h"
#include "../memory.h"

#define LEN	 (96 * MIB)  /* enough for threads */
#define POPULATE 23	     /* MADV_POPULATE_WRITE */
#define COLLAPSE 25	     /* MADV_COLLAPSE */
#define SCAN	 0xc0606610U /* PAGEMAP_SCAN, of <linux/fs.h> since 6.7 */
#define OPTIONS	 BMM_OPTIONS_INIT
#define REPORT	 BMM_REPORT_INIT

extern const char *current; /* the case */
extern int wrong;

#define check(what)                                                            \
	do {                                                                   \
		if (!(what)) {                                                 \
			printf("%s: line %d: %s\n", current, __LINE__, #what); \
			wrong = 1;                                             \
		}                                                              \
	} while (0)

#define check_populated(p, len)                           \
	do {                                              \
		check(!bmm_populate(p, len, NULL, NULL)); \
		check(is_there(p, len));                  \
	} while (0)

/* machine.c: what the linker wraps */
extern unsigned int cpus_made;	      /* pretended, 0: as they are */
extern int creations;		      /* of threads, before they fail */
extern unsigned int created, blocked; /* of them, with SIGTERM blocked */
extern size_t stack_least; /* bytes that the C library accepts, or 0 */
extern long sleep_us;	   /* of each call that populates, instead of it */
extern bool in_turn;	   /* and one at a time */
extern uintptr_t stall_at;
extern unsigned int advised; /* calls that populate */
extern size_t asked;	     /* bytes in those calls */
extern unsigned int looked;  /* entries of pagemap that were read */
extern bool nodes_made;	     /* several nodes; there are none but the real */
extern bool first_local;     /* memory of the first one has no policy */
extern unsigned int strays;  /* calls by threads that prefer no node */
extern __thread char much[300 << 10];
extern const char *cpus_listed; /* those of each node */
extern uintptr_t second_node;	/* where its memory begins; SIZE_MAX: in turn */
extern unsigned int ran[2][2];	/* calls for a node's memory on a node's CPU */
extern unsigned int bound;	/* calls that bind a thread to CPUs */
extern uintptr_t barred_from;	/* what a protection key bars */
extern uintptr_t cold_from;	/* where a file has to be read */
extern unsigned int cold_reads, cold_strays; /* calls for that, and which are
					      * two at once or out of order */
extern unsigned int compaction_made; /* failures each time they are asked for */
extern unsigned int compaction_before; /* failures before the first time */
extern unsigned int vmstat_refused; /* times that /proc/vmstat cannot be opened */
extern unsigned int smaps_read;	    /* times */
extern int collapse_error;	    /* of MADV_COLLAPSE, or 0 */
extern pid_t locker;		    /* who may lock, if it is not 0 */

#define WRAPPED(type, name, ...)         \
	type __real_##name(__VA_ARGS__); \
	type __wrap_##name(__VA_ARGS__)
WRAPPED(int, pthread_create, pthread_t *, const pthread_attr_t *,
	void *(*)(void *), void *);
WRAPPED(int, pthread_attr_setstack, pthread_attr_t *, void *, size_t);
WRAPPED(long, sysconf, int);
WRAPPED(long, syscall, long, ...);
WRAPPED(int, sched_getaffinity, pid_t, size_t, cpu_set_t *);
WRAPPED(int, sched_setaffinity, pid_t, size_t, const cpu_set_t *);
WRAPPED(int, open64, const char *, int, ...);
WRAPPED(int, pthread_mutex_lock, pthread_mutex_t *);
WRAPPED(bool, nodes_several, void);
WRAPPED(ssize_t, pread64, int, void *, size_t, off_t);

/* As on other kernels; forbid_query(), too. */
void forbid_advice(void);
void forbid_scan(void);

/* The kernels that a case is for: this one, and it as older ones are. */
#define HERE	1U
#define TOUCHED 2U /* MADV_POPULATE_WRITE is not there */
#define MAPS	4U /* nor is PROCMAP_QUERY */
#define ENTRIES 8U /* nor PAGEMAP_SCAN */

struct one {
	const char *name;
	unsigned int on;
	void (*run)(void);
	const struct one *next;
};

#define CASE(name, on)                                                \
	static void name(void);                                       \
	__attribute__((__constructor__)) static void add_##name(void) \
	{                                                             \
		static struct one one = { #name, on, name, NULL };    \
                                                                      \
		add_case(&one);                                       \
	}                                                             \
	static void name(void)

/* main.c; all_of() populates it, and says how */
void add_case(struct one *one);
struct bmm_report all_of(char *p, size_t len, const struct bmm_options *options);

/* errors.c */
void outside(const char *kind, size_t len, const char *more);

#endif
