/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * native.h - what the parts of the native harness share
 *
 * A kernel image and, if there is one, the module lie below 2 GB at the
 * addresses they were relocated for. What is known of them comes by name:
 * facts (addresses, offsets, sizes) and symbols.
 */
#ifndef NATIVE_H
#define NATIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench.h"

#define PAGE	       ((size_t)4096)
#define PAGES_SECTION  ((uint64_t)1 << 15) /* x86-64: 128 MiB */
#define STATE_FLAGS    ((size_t)128)	   /* bytes of a section's pageblocks */
#define NEAR	       5		   /* bytes of a call or jump */
#define ENVIRONMENT    3		   /* exit code */
#define ARMS_MAX       40
#define SCENARIOS_MAX  24
#define NAME_MAX_BYTES 64
#define FIELDS_MAX     16
#define DOING	       512

/* A member of a structure of the kernel's, at an offset found at run time. */
#define AT(type, base, offset) (*(type *)((char *)(base) + (offset)))
#define OFFSET(path)	       fact("offset " path)
#define SIZE(name)	       fact("size " name)
#define ENUM(name)	       fact("enum " name)

/**
 * struct mode - a mode of the module's path
 * @name: as the module has it; NULL: the end of a list
 * @pick: which of the path's picks has the backends to force; -1: none
 * @workers: NULL, or what the setting of that name is: "1", or another one,
 *           which is in the arm's name and only there if all arms are wanted
 */
struct mode {
	const char *name;
	int pick;
	const char *workers;
};

/**
 * struct arm - one way to do the job of a scenario
 * @name:    as in the results
 * @mode:    of the module; NULL: the kernel's own code, or a limit
 * @backend: that is forced, or NULL
 * @limit:   kind of stores, or NULL
 * @loop:    the job as a loop of the harness, as a limit
 * @peer:    number of a published method, from 1 on
 * @state:   the module as this arm left it: each has one of its own
 */
struct arm {
	char name[NAME_MAX_BYTES];
	const struct mode *mode;
	const char *backend;
	const struct limit *limit;
	bool loop;
	unsigned int peer;
	char *state;
};

/**
 * struct scenario - one job of a subject
 * @name:   as in the results
 * @bytes:  that one operation writes
 * @repeat: operations of a sample, each after a reset
 * @order:  of folios or runs
 * @from, @pages: the PFNs that it is about
 * @each:   pages of a call, where not all are one call
 * @kind:   what else tells it from others; its subject knows
 * @modes:  that are arms
 * @extra:  runs if it is named, or with all rows
 * @value:  numbers that its subject knows; all that a case of the fuzzer is
 * @unlimited: more happens than its stores, which no limit says anything of
 */
struct scenario {
	char name[NAME_MAX_BYTES];
	uint64_t bytes;
	unsigned int repeat;
	unsigned int order;
	uint64_t from;
	uint64_t pages;
	uint64_t each;
	unsigned int kind;
	const struct mode *modes;
	bool extra;
	uint64_t value[FIELDS_MAX];
	bool unlimited;
};

/**
 * struct family - a subject: a function of the kernel and its path in the module
 * @name:   as on the command line
 * @path:   symbol of the path in the module
 * @op:     what a kind of stores is to do as its limit
 * @picks:  how many picks the path has
 * @peers:  names of published methods, up to a NULL; or NULL
 * @setup:  makes the state and lists the scenarios; returns how many
 * @enter:  what else a scenario needs, once
 * @reset:  before each operation, not timed
 * @call:   enters the kernel's function
 * @limit:  the same amount of stores, or the loop; or as a peer does it
 * @keep:   remembers the kernel's result
 * @right:  whether the result is the kernel's; of all of it
 * @output: some byte of the result
 * @fields: names of a case's numbers, up to the first NULL; none: no fuzzer
 * @draw:   makes up such numbers
 * @build:  makes the scenario that they say; false: out of range
 */
struct family {
	const char *name;
	const char *path;
	enum bmm_op op;
	unsigned int picks;
	const char *const *peers;
	unsigned int (*setup)(struct scenario *list, uint64_t size);
	void (*enter)(const struct scenario *s);
	void (*reset)(const struct scenario *s);
	void (*call)(const struct scenario *s);
	void (*limit)(const struct scenario *s, const struct arm *arm);
	void (*keep)(const struct scenario *s);
	bool (*right)(const struct scenario *s);
	char *(*output)(const struct scenario *s);
	const char *const *fields;
	void (*draw)(uint64_t *value);
	bool (*build)(struct scenario *s, const uint64_t *value);
};

/**
 * struct run - what was asked for, and the arms of the scenario at hand
 * @backends: each of them, too
 * @spoil:    break one word of what the module wrote
 * @settled: after so many rounds, see who writes what is shared
 * @seconds:  to make up cases for; with @fuzz only
 * @corpus:   file of cases that are run first, or NULL
 * @one_case: the only case to run, or NULL
 * @hits:     of the module, before this scenario
 */
struct run {
	const struct family *family;
	uint64_t size;
	unsigned int rounds;
	uint64_t seed;
	const char *only;
	bool backends;
	bool spoil;
	bool settled;
	bool module;
	bool failed;
	bool fuzz;
	unsigned int seconds;
	const char *corpus;
	const char *one_case;
	struct arm arms[ARMS_MAX];
	size_t nr;
	uint64_t hits;
};

extern const struct family memmap_family, clear_family, vmap_family,
	hotplug_family;

/* main.c */
void run_arms(struct run *run, const struct scenario *s);
uint64_t run_once(const struct run *run, const struct scenario *s,
		  const struct arm *arm);
bool run_right(struct run *run, const struct scenario *s, const struct arm *arm);

/* fuzz.c */
void fuzz(struct run *run);
void fuzz_scenario(const struct run *run, struct scenario *s);

/* image.c */
extern char doing[];
void image_load(const char *directory);
uint64_t fact(const char *name);
char *symbol(const char *name);
char *symbol_or_null(const char *name, char from);
void symbol_describe(uint64_t address, char *buf, size_t size);
void faults_catch(void);
void faults_count_warnings(void);
unsigned int faults_warnings(void);

/* state.c */
__attribute__((__noreturn__, __format__(__printf__, 1, 2))) void
die(const char *format, ...);
void *need(size_t bytes);
char *memory(size_t bytes);
void state_init(void);
void state_nodes(uint64_t nodes);
void state_sections(uint64_t from, uint64_t pages, bool early);
char *state_section(uint64_t pfn);
uint64_t state_sum(const void *at, uint64_t bytes);
void state_early(uint64_t pfn, bool early);
char *state_flags(uint64_t pfn);
char *state_pages(uint64_t from, uint64_t pages);
void state_syscall(long number);
uint64_t random_next(void);
void random_seed(uint64_t seed);

/* services.c */
void services_init(void);
void divert(const char *name, void *to);
char *divert_keep(const char *name, void *to);
void sites_write(bool on);
size_t sites_nr(void);
void services_quiet(bool quiet);
uint64_t services_clocks(void);
char *services_percpu(size_t *bytes);

/* module.c */
bool module_init(void);
bool module_arm(struct arm *arm, const struct family *family);
void module_swap(const struct arm *to);
uint64_t module_hits(const struct family *family);
void module_protect(bool on);
void module_served(const struct family *family, const struct mode *mode,
		   char *buf, size_t size);

#endif
