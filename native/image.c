// SPDX-License-Identifier: GPL-2.0-only
/* The images at their addresses; symbols in them; faults inside. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "native.h"

struct entry {
	uint64_t address;
	const char *name;
	char from; /* k: the kernel, m: the module */
};

struct list {
	struct entry *at;
	size_t nr;
};

static struct list facts, symbols;

/* What is running, for the report of a fault. */
char doing[DOING];

static char *read_whole(const char *directory, const char *name)
{
	char path[4096];
	size_t size = 0, got, room = 0;
	char *text = NULL;
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	file = fopen(path, "re");
	if (!file)
		die("%s: %s", path, strerror(errno));
	do {
		room += (size_t)4 << 20;
		text = realloc(text, room + 1);
		if (!text)
			die("no memory for %s", path);
		got = fread(text + size, 1, room - size, file);
		size += got;
	} while (got);
	fclose(file);
	text[size] = '\0';
	return text;
}

/* Parses lines "ADDRESS NAME" or "ADDRESS FROM NAME". */
static struct list parse(char *text, bool from)
{
	struct list list = { NULL, 0 };
	char *line, *name, *rest = text;

	for (line = text; *line; line++)
		list.nr += *line == '\n';
	list.at = need(list.nr * sizeof(*list.at) + 1);
	for (list.nr = 0; (line = strsep(&rest, "\n")) && *line; list.nr++) {
		struct entry *e = &list.at[list.nr];

		e->address = strtoull(line, &name, 16);
		e->from = from ? name[1] : 0;
		e->name = name + (from ? 3 : 1);
	}
	return list;
}

/* By name; equal names stay in the order listed. */
static int before(const void *one, const void *other)
{
	const struct entry *a = one, *b = other;
	int by = strcmp(a->name, b->name);

	if (!by)
		by = a->from - b->from;
	return by ? by : (a->name > b->name) - (a->name < b->name);
}

static void sort(struct list *list)
{
	qsort(list->at, list->nr, sizeof(*list->at), before);
}

/* Finds the first entry of a sorted list. */
static const struct entry *find(const struct list *list, const char *name,
				char from)
{
	size_t low = 0, high = list->nr, middle;

	while (low < high) {
		const struct entry *e = &list->at[middle = (low + high) / 2];
		int by = strcmp(e->name, name);

		if (by ? by < 0 : e->from < from)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == list->nr || list->at[low].from != from ||
	    strcmp(list->at[low].name, name))
		return NULL;
	return &list->at[low];
}

/**
 * fact() - look up a number that the loader found
 * @name: "offset STRUCT.MEMBER" and the like
 *
 * Return: the number; ends the process if there is none.
 */
uint64_t fact(const char *name)
{
	const struct entry *e = find(&facts, name, 0);

	if (!e)
		die("nothing is known of %s", name);
	return e->address;
}

/* A symbol's address in the kernel or the module; NULL if there is none. */
char *symbol_or_null(const char *name, char from)
{
	const struct entry *e = find(&symbols, name, from);

	return e ? (char *)e->address : NULL;
}

/* The same in the kernel; ends the process if there is none. */
char *symbol(const char *name)
{
	char *at = symbol_or_null(name, 'k');

	if (!at)
		die("the kernel has no symbol %s", name);
	return at;
}

static bool within(uint64_t address, const char *what, const char *size)
{
	uint64_t start = fact(what);

	return address >= start && address - start < fact(size);
}

/**
 * symbol_describe() - format an address as symbol+offset
 * @address: the address
 * @buf:     result
 * @size:    bytes of @buf
 */
void symbol_describe(uint64_t address, char *buf, size_t size)
{
	const struct entry *best = NULL;
	size_t i;

	if (!within(address, "kernel", "kernel size") &&
	    !within(address, "module", "module size")) {
		snprintf(buf, size, "the harness at 0x%llx",
			 (unsigned long long)address);
		return;
	}
	for (i = 0; i < symbols.nr; i++) {
		const struct entry *e = &symbols.at[i];

		if (e->address <= address &&
		    (!best || e->address > best->address))
			best = e;
	}
	snprintf(buf, size, "%s%s+0x%llx", best->from == 'm' ? "bulkmm:" : "",
		 best->name, (unsigned long long)(address - best->address));
}

/* Maps code and data together, on huge pages if possible. */
static void map_image(const char *directory, const char *name)
{
	char path[4096], size_name[32];
	uint64_t base = fact(name), size;
	size_t done, bytes;
	ssize_t got;
	char *at;
	int fd;

	snprintf(size_name, sizeof(size_name), "%s size", name);
	size = fact(size_name);
	if (!base)
		return;
	bytes = (size + HUGE_SIZE - 1) & ~(HUGE_SIZE - 1);
	at = mmap((void *)base, bytes, PROT_READ | PROT_WRITE | PROT_EXEC,
		  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (at != (char *)base)
		die("the %s cannot be mapped at 0x%llx: %s", name,
		    (unsigned long long)base,
		    errno == EEXIST ? "the range is taken" : strerror(errno));
	madvise(at, bytes, MADV_HUGEPAGE);
	snprintf(path, sizeof(path), "%s/%s", directory, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	for (done = 0; done < size; done += (size_t)got) {
		got = read(fd, at + done, size - done);
		if (got <= 0)
			die("%s: cannot be read", path);
	}
	close(fd);
}

/**
 * image_load() - map the images of a directory and read their symbols
 * @directory: written by the loader
 */
void image_load(const char *directory)
{
	facts = parse(read_whole(directory, "facts"), false);
	symbols = parse(read_whole(directory, "symbols"), true);
	sort(&facts);
	sort(&symbols);
	map_image(directory, "kernel");
	map_image(directory, "module");
}

static const char *signal_words(int number)
{
	switch (number) {
	case SIGSEGV:
		return "SIGSEGV";
	case SIGBUS:
		return "SIGBUS";
	case SIGILL:
		return "SIGILL (a BUG or WARN, or an instruction that this CPU does not have)";
	case SIGTRAP:
		return "SIGTRAP";
	default:
		return "a signal";
	}
}

#define BUGFLAG_WARNING 1
#define UD2		2 /* its length in bytes */

/* A WARN is an undefined instruction that the kernel's bug table lists. */
static bool is_warning(uint64_t address)
{
	const size_t size = SIZE("bug_entry");
	char *entry = symbol("__start___bug_table");
	char *end = symbol("__stop___bug_table");

	for (; entry < end; entry += size)
		if ((uint64_t)(entry + AT(int32_t, entry, 0)) == address)
			return AT(uint16_t, entry, OFFSET("bug_entry.flags")) &
			       BUGFLAG_WARNING;
	return false;
}

static unsigned int warnings;
static bool goes_on;

/* From now on, execution continues after a WARN, as in the kernel. */
void faults_count_warnings(void)
{
	goes_on = true;
}

/* How many there were since the last call. */
unsigned int faults_warnings(void)
{
	unsigned int nr = warnings;

	warnings = 0;
	return nr;
}

/* Nothing here can repair the code that runs: say where, and end. */
static void fault(int number, siginfo_t *info, void *context)
{
	ucontext_t *c = context;
	greg_t *at = &c->uc_mcontext.gregs[REG_RIP];
	char where[256];

	if (goes_on && number == SIGILL && is_warning((uint64_t)*at)) {
		warnings++;
		*at += UD2;
		return;
	}
	symbol_describe((uint64_t)*at, where, sizeof(where));
	dprintf(STDERR_FILENO, "%s in %s, address %p%s%s\n",
		signal_words(number), where, info->si_addr,
		doing[0] ? ", case: " : "", doing);
	_exit(ENVIRONMENT);
}

/* Reports faults, on a separate signal stack. */
void faults_catch(void)
{
	static const int numbers[] = { SIGSEGV, SIGBUS, SIGILL, SIGTRAP };
	stack_t stack = { .ss_sp = need(65536), .ss_size = 65536 };
	struct sigaction action = {
		.sa_sigaction = fault,
		.sa_flags = SA_SIGINFO | SA_ONSTACK,
	};
	size_t i;

	sigaltstack(&stack, NULL);
	for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		sigaction(numbers[i], &action, NULL);
}
