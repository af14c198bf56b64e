/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* populate.h - the interfaces between the parts of bmm_populate() */
#ifndef POPULATE_H
#define POPULATE_H

#include <pthread.h>
#include <inttypes.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#define BMM_INTERNAL
#include "bulkmm.h"

#ifndef MADV_POPULATE_READ /* of <sys/mman.h> */
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

#define SMALL	    (64 * MIB)	/* no threads below; documented */
#define LEAST	    (2 * MIB)	/* nothing is looked up below; least slice */
#define SLICE_MAX   (16 * MIB)	/* milliseconds: time between checks of @stop */
#define TELL_NS	    10000000ULL /* between calls of the program's progress() */
#define SLOW_NS	    10000000ULL /* a slice that takes so long is noticed */
#define READERS	    8U /* of files, however few the CPUs: they wait for disks */
#define THREADS_MAX 512U
#define SEGMENTS_MAX 64U
#define NODES_MAX    1024U /* the kernel's own limit */
#define CPUS_MAX     8192U

/* Of CPUs, or of nodes; a number too large for the set is not in it. */
#define SET_ADD(set, i) CPU_SET_S((size_t)(i), sizeof(*(set)), (set)->bits)
#define SET_HAS(set, i) CPU_ISSET_S((size_t)(i), sizeof(*(set)), (set)->bits)
#define SET_COUNT(set)	((unsigned int)CPU_COUNT_S(sizeof(*(set)), (set)->bits))

/* The lower of two limits, of which 0 is none. */
static inline unsigned int lower(unsigned int a, unsigned int b)
{
	return !a || (b && b < a) ? b : a;
}

/* To a multiple of @page, a power of two. */
static inline size_t round_up(size_t size, size_t page)
{
	return (size + page - 1) & -page;
}

/* maps.c: what is mapped where; of several mappings, what holds for all */
#define READABLE   1U /* these three as PROCMAP_QUERY has them */
#define WRITABLE   2U
#define SHARED	   8U
#define ANONYMOUS  16U
#define UNWATCHED  32U	/* shared, and no file system to be told of writes */
#define READ_AHEAD 64U	/* a file's, which is read into the page cache */
#define CACHE_SEEN 128U /* mincore() tells what of it is in the page cache */

struct map {
	uintptr_t start, end;
	size_t page; /* bytes of its pages; with hugetlb 2 MiB and more */
	unsigned int flags;
};

/* Lines of a file of /proc: stdio allocates, and the caller may be an allocator. */
struct maps {
	int fd;		/* -1: cannot be opened */
	size_t at, got; /* in the buffer */
	char text[1024];
	struct map last; /* read from maps: more than one range may begin in it */
};

bool lines_open(struct maps *lines, const char *path);
bool lines_next(struct maps *lines, char *line, size_t size);

bool maps_open(struct maps *maps);
void maps_close(const struct maps *maps);
bool map_find(struct maps *maps, uintptr_t addr, bool cheap, struct map *map);
bool map_at(uintptr_t addr, struct map *map);

/* cpus.c: where threads may run, where memory comes from */
struct cpus {
	cpu_set_t bits[CPUS_MAX / CPU_SETSIZE];
};

struct nodes {
	cpu_set_t bits[NODES_MAX / CPU_SETSIZE];
};

unsigned int cpus_allowed(struct cpus *cpus);
unsigned int cpus_of_nodes(const struct nodes *nodes, struct cpus *cpus);
void cpus_bind(const struct cpus *cpus);
size_t kernel_text(const char *path, char *text, size_t size);

bool nodes_several(void);
bool nodes_online(unsigned int node);
int nodes_of(const void *addr, struct nodes *nodes);

/* quota.c */
unsigned int cpus_quota(void);

struct policy {
	struct nodes nodes;
	int mode;
};

#define MODE_DEFAULT   0 /* as in <linux/mempolicy.h> */
#define MODE_PREFERRED 1
#define MODE_BIND      2

int policy_get(struct policy *policy);
int policy_set(int mode, unsigned int node);
void policy_restore(const struct policy *before);

/* scaling.c: how many threads help */
struct scaling {
	unsigned int now, most; /* threads that should work; their limit */
	unsigned int best;	/* best number, and its rate in bytes per ms */
	uint64_t rate;
	unsigned int step;     /* changes with now: older slices do not count */
	unsigned int reported; /* threads that have had a slice counted */
	uint64_t bytes, ns;    /* sums of the slices that count */
	size_t retry_at;       /* bytes done before a step is tried again */
	bool remeasured;       /* this step has been measured once */
};

void scaling_start(struct scaling *scaling, unsigned int now, unsigned int most);
void scaling_feed(struct scaling *scaling, unsigned int *last,
		  unsigned int step, size_t bytes, uint64_t ns);
void scaling_next(struct scaling *scaling, size_t done, size_t left);

/* pages.c: makes a piece resident */
#define PRESENT (1ULL << 63) /* in a pagemap entry */

struct pages {
	int pagemap; /* -1: not used */
	int advice;
	bool touch;
};

struct page_result {
	uintptr_t failed; /* the page that failed, if error */
	size_t len;
	int error;
	size_t huge;	      /* bytes in huge pages */
	size_t small;	      /* bytes for which none were tried */
	enum bmm_cause cause; /* if that is known */
	bool resident; /* no work for several: all was resident, with huge pages
			* the first was; or small ones that are copied */
};

bool populate_by_kernel(uintptr_t from, size_t len, bool read);
int pages_open(struct pages *how, bool read, bool look);
void pages_close(struct pages *how);
bool pages_cached(uintptr_t from, uintptr_t to);
bool pages_entry(uintptr_t page, uint64_t *entry);
int pages_huge(const struct pages *how, uintptr_t page);
bool pages_worth_reading(uintptr_t from, bool read);
void pages_populate(struct pages *how, uintptr_t from, uintptr_t to,
		    const struct map *map, struct page_result *result);

/* Where pages are bound to: a node, or one of these. */
#define POLICY_NONE    -1 /* that of the workers, or the caller's */
#define POLICY_UNKNOWN -2

/* division.c: what is to be done, in ascending order of addresses */
struct extent {
	uintptr_t start, end; /* whole pages */
	int bind; /* the only node that new pages come from; or POLICY_NONE */
};

/* What is advised to have small pages for as long as the call takes. */
struct small {
	uintptr_t from, to; /* 0: nothing */
	bool advised;
};

/* A part of an extent that has the same pages, from the same nodes. */
struct segment {
	uintptr_t next, end; /* not taken yet */
	struct map map;
	struct nodes nodes;
	int bind;
	bool cold;	   /* a file's, to be read: by one thread at a time */
	bool settled;	   /* whether it is to have huge pages */
	uintptr_t advised; /* from here on to have huge pages; 0: not */
	struct small small;
};

struct slice {
	uintptr_t from, to;
	struct segment *segment;
	bool cold;  /* the segment was when it was taken */
	bool small; /* no huge pages are tried */
};

/* diagnosis.c: why something failed, or was slow; so far, from /proc/vmstat */
struct pressure {
	bool known;
	unsigned long stalls, compactions, failures;
	unsigned long huge, small; /* faults that got a huge page, or not */
};

/* ready.c: what is done and has not been passed to the program */
struct piece {
	uintptr_t from, to;
};

struct ready {
	struct piece *pieces; /* ascending, none adjacent to the next */
	unsigned int nr;
	uintptr_t next; /* in order: the first byte not passed yet */
};

struct staging;
struct worker;
struct workers;
typedef void work_fn(struct worker *worker, const struct slice *slice,
		     struct page_result *result);

/* workers.c: threads that share the extents */
struct worker {
	struct workers *workers;
	unsigned int id;   /* 0: the caller */
	unsigned int home; /* its node, if there are several */
	unsigned int last; /* step of its last slice that counted */
	int policy;	   /* node that it binds its pages to; POLICY_... */
	bool starts;	   /* others; else the caller does */
	pthread_t thread;  /* not the caller's */
};

/*
 * What only large or many ranges need. A small one, and any where this cannot
 * be mapped, is populated by the caller with what is on its stack. A piece that
 * is not adjacent to the next is so for a slice in progress, or for a segment.
 */
#define PIECES_MAX (2 * (THREADS_MAX + BMM_RANGES_MAX + SEGMENTS_MAX))

struct worker_memory {
	struct segment segments[BMM_RANGES_MAX + SEGMENTS_MAX];
	struct extent extents[BMM_RANGES_MAX];
	struct worker threads[THREADS_MAX + 1]; /* the caller's is not used */
	struct piece pieces[PIECES_MAX];
};

#define SEGMENTS_FEW 4U

struct workers {
	struct bmm_options options;
	struct bmm_report report;
	work_fn *work;
	const struct staging *staging; /* what is read into the pages; or NULL */
	struct pages pages;
	bool watches; /* what pages slices get */
	size_t len;   /* of all extents */
	size_t huge;  /* bytes of a transparent huge page */
	struct extent first;
	struct extent *extents; /* that, or in the memory */
	unsigned int extents_nr;
	struct segment few[SEGMENTS_FEW];
	struct piece few_pieces[2 * SEGMENTS_FEW + 2];
	struct segment *segments; /* those, or in the memory */
	unsigned int segments_nr, segments_max;
	struct worker_memory *memory; /* or NULL */

	/* where the threads run */
	struct nodes nodes;
	struct cpus allowed; /* the caller's, before it is bound */
	bool bound;
	bool binds;   /* an extent has a node of its own */
	int prefer;   /* node that all others' pages come from; or -1 */
	int node;     /* the caller's, if no policy says otherwise; or -1 */
	bool changes; /* the policy of threads, and the caller's */
	struct policy policy; /* the caller's, before that */
	char *stacks;	      /* of all threads */
	size_t stack, guard;  /* bytes of each, and of what lies below it */
	size_t stacks_len;
	unsigned int stacks_nr;

	/* everything below is protected by the lock */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct scaling scaling;
	struct ready ready;
	struct page_result failure;
	unsigned int alive; /* without the caller */
	bool stop;
	bool cramped; /* the threads' stacks are too small */
	bool passes;  /* the caller only passes pieces to the program */
	bool resumes; /* it did, and is to do the work now */
	bool fresh;   /* there may be one that has not been looked at */
	bool reading; /* a slice of a cold segment is in progress */
	uint64_t ns;  /* of all slices, then of the slowest */
	size_t timed, slow_len;
	uint64_t slow_ns;
	uintptr_t slow;
	bool slow_preempted;
	size_t missing;	  /* huge pages, since the kernel was asked last */
	size_t ask_at;	  /* bytes done before it is asked again */
	bool asking;	  /* a thread does, and has what follows */
	bool advice_read; /* of all segments */
	struct pressure asked;

	/* used by the thread that starts others, the caller or the first */
	unsigned int created;
	bool limited; /* the limit of threads is known */

	/* used by the caller only */
	struct worker self;
	struct cpus before; /* its own affinity, while it is bound */
	bool works, moved;  /* it has the workers' policy; and is bound */
	bool wide; /* all threads start at once: a slice is a huge page */
	uint64_t progress_ns;
	int pid;
	bool forked;
};

bool workers_init(struct workers *workers, unsigned int extents_nr,
		  const struct bmm_options *options);
bool workers_expand(struct workers *workers);
int workers_run(struct workers *workers);
void workers_free(struct workers *workers);
bool bind_worker(const struct worker *worker, struct cpus *before);
unsigned int node_of_worker(const struct workers *workers, unsigned int id);

/* division.c, continued */
int add_extent(struct workers *workers, const struct extent *extent);
void find_segments(struct workers *workers, struct maps *maps);
bool is_all_cold(const struct workers *workers);
bool take_slice(struct workers *workers, const struct worker *worker,
		struct slice *slice);
uintptr_t reached_address(const struct workers *workers);
const struct extent *extent_at(const struct workers *workers, uintptr_t addr);

/* ready.c, continued */
void add_ready(struct workers *workers, uintptr_t from, uintptr_t to);
bool take_ready(struct workers *workers, struct piece *piece);

/* slices.c */
bool process_slice(struct worker *worker);
void release_caller(struct workers *workers);

/* callbacks.c */
void report_progress(struct workers *workers, bool last);
void call_program(struct workers *workers);
void pass_pieces(struct workers *workers);

/* start.c: threads of the C library */
unsigned int map_stacks(struct workers *workers, unsigned int count);
bool has_room(const struct worker *worker);
void unmap_stacks(struct workers *workers);
bool start_thread(struct workers *workers, struct worker *worker,
		  void *(*run)(void *));
bool in_handler(void);

/* limits.c */
size_t huge_page(void);
void allow_threads(struct workers *workers);
unsigned int limit_threads(struct workers *workers);

/* huge.c */
void watch_huge_pages(struct workers *workers, const struct slice *slice,
		      uint64_t ns, struct page_result *result);
void restore_huge_pages(struct workers *workers);

/* diagnosis.c, continued */
struct thread_usage {
	uint64_t ns; /* of CPU time */
	long waits, preemptions;
};

void pressure_read(struct pressure *pressure);
void pressure_read_little(struct pressure *pressure);
void usage_read(struct thread_usage *usage);
bool was_preempted(const struct thread_usage *before, uint64_t ns);
enum bmm_cause cause_of_slowness(const struct workers *workers,
				 const struct pressure *before);
bool is_hole(uintptr_t page);
enum bmm_cause cause_of_no_reading(void);
enum bmm_cause cause_of_failure(struct workers *workers);

/* populate.c, and stage_read.c, which it calls for each slice */
int populate_staged(const struct bmm_range *ranges, size_t count,
		    const struct bmm_options *options,
		    struct bmm_report *report, const struct staging *staging);
void stage_slice(struct worker *worker, const struct slice *slice,
		 struct page_result *result);

/* report.c */
int options_copy(struct bmm_options *to, const struct bmm_options *from);
enum bmm_cause options_cause(int error);
bool report_is_valid(const struct bmm_report *report);
void report_copy(struct bmm_report *to, const struct bmm_report *from);

#endif
