/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * native.h - the interfaces between the parts of the native harness
 *
 * A kernel image and, if there is one, the module are mapped below 2 GB at the
 * addresses they were relocated for. Everything about them is looked up by
 * name: facts (addresses, offsets, sizes) and symbols.
 */
#ifndef NATIVE_H
#define NATIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common.h"

#define PAGE	       ((size_t)4096)
#define PAGES_SECTION  ((uint64_t)1 << 15) /* x86-64: 128 MiB */
#define STATE_FLAGS    ((size_t)128)	   /* a section's pageblock flags */
#define USAGE	       2		   /* exit code */
#define ENVIRONMENT    3		   /* exit code */
#define VARIANTS_MAX   40
#define SCENARIOS_MAX  24
#define NAME_MAX_BYTES 64
#define FIELDS_MAX     16
#define STEP_MAX       512
#define NO_OP	       (-2)

/*
 * What belongs to one kernel. With two of them (side.c) each has its own; all
 * that is not marked is common to both, such as the memory that is measured.
 */
#define PER_KERNEL __attribute__((__section__("side")))

/* A member of a kernel structure, at an offset found at run time. */
#define AT(type, base, offset) (*(type *)((char *)(base) + (offset)))

/* What the loader is to find in the kernel's BTF: it reads that section. */
#define LOADER_REQUEST __attribute__((__section__(".wanted")))
#define FACT(query)                                                 \
	({                                                          \
		static const char request[] LOADER_REQUEST = query; \
		fact(request);                                      \
	})
#define OFFSET(path) FACT("offset " path)
#define BIT(path)    FACT("bit " path) /* in bits; NO_MEMBER: not there */
#define NO_MEMBER    UINT64_MAX
#define SIZE(name)   FACT("size " name)
#define ENUM(name)   FACT("enum " name)

/*
 * A function stub_NAME replaces the kernel's NAME wherever the module calls it;
 * everything else that the module calls is the kernel's own code.
 */
#define STUB(type, name, ...)          \
	type stub_##name(__VA_ARGS__); \
	type stub_##name(__VA_ARGS__)

/* One that does the same as another, whose arguments may be fewer. */
#define STUB_AS(name, original)                        \
	extern __typeof__(stub_##original) stub_##name \
		__attribute__((__alias__("stub_" #original)))

/**
 * struct mode - a mode of the module's path
 * @name: the module's name for it; NULL: the end of a list
 * @op:   enum bmm_op whose backends can be forced; -1: none; NO_OP: nor does it
 *        use any
 * @workers: NULL, or the value of that setting: "1", or another one, which then
 *           is in the variant's name; such a variant runs only if all are
 *           asked for
 */
struct mode {
	const char *name;
	int op;
	const char *workers;
};

/**
 * struct variant - one way to do the job of a scenario
 * @name:    as in the results
 * @mode:    mode of the module; NULL: the kernel's own code, or a limit
 * @backend: forced backend, or NULL
 * @limit:   kind of stores, or NULL
 * @loop:    a limit: the job as a loop of the harness
 * @peer:    number of a published method, from 1 on
 * @side:    whose code runs: 1, of the kernel to compare with
 * @state:   the module's state in this variant: each variant has its own
 */
struct variant {
	char name[NAME_MAX_BYTES];
	const struct mode *mode;
	const char *backend;
	const struct limit *limit;
	bool loop;
	unsigned int peer;
	unsigned int side;
	char *state;
};

/**
 * struct scenario - one job of a subject
 * @name:   as in the results
 * @bytes:  bytes that one operation writes
 * @repeat: operations per sample, each after a reset
 * @order:  of folios or runs
 * @from, @pages: the PFNs in question
 * @pages_per_call: pages per call, if it takes several calls
 * @kind:   what else distinguishes it, known to its subject
 * @modes:  modes that are variants
 * @peers:  names of published methods, up to a NULL; or NULL
 * @extra:  runs only if named, or if all rows are asked for
 * @value:  numbers known to its subject; they define a case of the fuzzer
 * @unlimited: does more than store, so no limit applies
 * @overwritten: ends with a use of the result that leaves nothing to compare
 */
struct scenario {
	char name[NAME_MAX_BYTES];
	uint64_t bytes;
	unsigned int repeat;
	unsigned int order;
	uint64_t from;
	uint64_t pages;
	uint64_t pages_per_call;
	unsigned int kind;
	const struct mode *modes;
	const char *const *peers;
	bool extra;
	uint64_t value[FIELDS_MAX];
	bool unlimited;
	bool overwritten;
};

/**
 * struct subject - a kernel function and its path in the module
 * @name:   as on the command line
 * @path:   symbol of the path in the module
 * @op:     what the stores of a limit do
 * @modes:  all that a scenario can have as variants
 * @loop:   a limit is a loop of the harness, not stores
 * @ops:    the operations that it has a choice of backends for, a bit each
 * @setup:  builds the state and lists the scenarios; returns how many
 * @enter:  other preparation of a scenario, once
 * @reset:  runs before each operation, not timed
 * @call:   enters the kernel's function; or does as much as a @variant of the
 *          harness: stores, a loop, or a peer's method
 * @keep:   saves the kernel's result, unless it is known
 * @right:  whether the whole result is the same as the kernel's
 * @output: some byte of the result
 * @fields: names of a case's numbers, up to the first NULL; none: no fuzzer
 * @draw:   generates such numbers
 * @build:  builds a scenario from them; false: out of range
 */
struct subject {
	const char *name;
	const char *path;
	enum bmm_op op;
	const struct mode *modes;
	bool loop;
	unsigned int ops;
	unsigned int (*setup)(struct scenario *list, uint64_t size);
	void (*enter)(const struct scenario *s);
	void (*reset)(const struct scenario *s);
	void (*call)(const struct scenario *s, const struct variant *variant);
	void (*keep)(const struct scenario *s);
	bool (*right)(const struct scenario *s);
	char *(*output)(const struct scenario *s);
	const char *const *fields;
	void (*draw)(uint64_t *value);
	bool (*build)(struct scenario *s, const uint64_t *value);
};

/**
 * struct run - what was asked for, and the variants of the current scenario
 * @backends: also run each backend
 * @corrupt:    corrupt one word of what the module wrote
 * @shared:     find stores to memory that CPUs share
 * @seconds:  how long to generate cases; with @fuzz only
 * @corpus:   file of cases to run first, or NULL
 * @one_case: the only case to run, or NULL
 * @against:  directory of the kernel to compare with, or NULL
 * @stock:    only the kernel's own code: no published methods, no limits
 * @arrays:   seed of what is random in a scenario, the same on both sides
 */
struct run {
	const struct subject *subject;
	uint64_t size;
	unsigned int rounds;
	uint64_t seed;
	const char *only;
	bool backends;
	bool corrupt;
	bool shared;
	bool module;
	bool failed;
	bool fuzz;
	unsigned int seconds;
	const char *corpus;
	const char *one_case;
	struct variant variants[VARIANTS_MAX];
	size_t nr;
	const char *against;
	bool stock;
	uint64_t arrays;
};

extern const struct subject memmap_subject, clear_subject, copy_subject,
	vmap_subject, hotplug_subject;

/* variants.c */
const char *variants_list(const struct subject *subject);
bool variants_known(const struct subject *subject, const char *name);
void variants_make(struct run *run, const struct scenario *s);
void variants_free(struct run *run);

/* run.c */
uint64_t run_once(const struct run *run, const struct scenario *s,
		  const struct variant *variant);
bool run_right(struct run *run, const struct scenario *s,
	       const struct variant *variant);
void run_scenario(struct run *run, const struct scenario *s);
void shared_scenario(struct run *run, const struct scenario *s);

/* fuzz.c */
void fuzz(struct run *run);
void fuzz_scenario(const struct run *run, struct scenario *s);

/* image.c */
void image_load(const char *directory);
uint64_t fact(const char *name);
char *symbol(const char *name);
char *symbol_or_null(const char *name, char from);
void symbol_describe(uint64_t address, char *buf, size_t size);

/* branches.c */
void branches_reset(void);
const char *branches_state(void);

/* side.c */
void side_begin(void);
void side_enter(unsigned int side);
unsigned int side_now(void);

/* faults.c */
extern char current_step[];
void faults_catch(void);
void faults_count_warnings(void);
unsigned int faults_warnings(void);

/* base.c */
__attribute__((__noreturn__, __format__(__printf__, 1, 2))) void
fatal(const char *format, ...);
__attribute__((__noreturn__, __format__(__printf__, 1, 2))) void
reject(const char *format, ...);
void *require_memory(size_t bytes);
char *map_memory(size_t bytes);
uint64_t random_next(void);
void random_seed(uint64_t seed);
uint64_t checksum(const void *at, uint64_t bytes);
void evict(const void *at, uint64_t bytes);

/* memmap.c */
void pages_keep(const char *page, size_t record);

/* state.c */
void state_init(void);
void state_cpu(void);
void state_sections(uint64_t from, uint64_t pages, bool early);
char *state_section(uint64_t pfn);
void state_early(uint64_t pfn, bool early);
char *state_flags(uint64_t pfn);
char *state_pages(uint64_t from, uint64_t pages);
void state_folios(char *pages, uint64_t nr, unsigned int order);
void state_syscall(long number);

/* patch.c */
void divert(const char *name, void *to);
char *divert_keep(const char *name, void *to);
void sites_write(bool on);
size_t sites_nr(void);

/* services.c */
void services_init(void);
void services_quiet(void);
uint64_t services_clocks(void);
char *services_percpu(size_t *bytes);

/* work.c */
void work_pin(void);

/* module.c */
bool module_init(void);
bool module_prepare(struct variant *variant, const struct subject *subject);
bool module_force(const struct mode *mode, const char *backend);
void module_swap(const struct variant *to);
uint64_t module_hits(const struct subject *subject);
void module_protect(bool on);
void module_served(const struct subject *subject, const struct mode *mode,
		   char *buf, size_t size);

#endif
