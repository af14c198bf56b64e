// SPDX-License-Identifier: GPL-2.0-only
/*
 * bmm-native - a kernel's own code against the module's, in this process
 *
 *	bmm-native DIRECTORY SUBJECT --size=BYTES --rounds=N --seed=N
 *		[--only=NAME,...] [--backends] [--break-one-word] [--settled]
 *		[--fuzz=SECONDS [--corpus=FILE]] [--case="ARM FIELD=N ..."]
 *
 * For each scenario, the kernel's function runs once and its result is kept;
 * every arm runs once to warm up; then follow rounds in which every arm runs
 * once, in random order, and its result is compared with the kernel's.
 *
 * With --settled no arm is timed: the rounds settle the module, and then one
 * more must write nothing that CPUs share.
 *
 * Writes JSON lines as bmm-bench does. Exit code 0, 1 (something differs), 2
 * (usage), 3 (something asked for is not available, or a fault in the code).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native.h"

static const struct family *const families[] = { &memmap_family, &clear_family,
						 &vmap_family, &hotplug_family };

#define FAMILIES_NR (sizeof(families) / sizeof(families[0]))

static struct arm *add(struct run *run, const char *name, const char *suffix)
{
	struct arm *arm = &run->arms[run->nr++];

	if (run->nr > ARMS_MAX)
		die("too many variants");
	*arm = (struct arm){ .mode = NULL };
	snprintf(arm->name, sizeof(arm->name), "%s%s", name, suffix);
	return arm;
}

static bool is_shared(const struct mode *mode)
{
	return mode->workers && strcmp(mode->workers, "1");
}

/*
 * The name of the module's arm in a mode: memmap has only one mode, and those
 * of vmap are known by their own names.
 */
static void name_mode(const struct family *family, const struct mode *mode,
		      char *buf, size_t size)
{
	bool usual = !strcmp(mode->name, "on") || !strcmp(mode->name, "auto");
	bool shared = is_shared(mode);

	snprintf(buf, size, "%s%s%s%s", family->picks && !usual ? "bulkmm-" : "",
		 usual ? "bulkmm" : mode->name, shared ? "-" : "",
		 shared ? mode->workers : "");
}

/*
 * Whether the module can have an arm of this name. Its backend, if it names
 * one, may be unknown to this CPU.
 */
bool arms_known(const struct family *family, const char *name)
{
	size_t length = strcspn(name, ":");
	const struct mode *mode;
	char known[NAME_MAX_BYTES];

	for (mode = family->modes; mode->name; mode++) {
		name_mode(family, mode, known, sizeof(known));
		if (strlen(known) == length && !memcmp(known, name, length))
			return true;
	}
	return false;
}

/* Adds the module in a mode: as it picks, and with each backend. */
static void add_mode(struct run *run, const struct mode *mode)
{
	const struct family *family = run->family;
	const struct bmm_backend *backend;
	char name[24], suffix[32];
	struct arm *arm;
	size_t i;

	if (is_shared(mode) && !run->backends)
		return;
	name_mode(family, mode, name, sizeof(name));
	arm = add(run, name, "");
	arm->mode = mode;
	if (!module_arm(arm, family))
		die("the module does not attach %s in mode %s", family->name,
		    mode->name);
	if (!run->backends || mode->pick < 0 || is_shared(mode))
		return;
	for (i = 0; (backend = bmm_backend_at(i)); i++) {
		snprintf(suffix, sizeof(suffix), ":%s", backend->name);
		arm = add(run, name, suffix);
		arm->mode = mode;
		arm->backend = backend->name;
		if (!module_arm(arm, family))
			run->nr--;
	}
}

/* Sets up all arms of a scenario. */
void run_arms(struct run *run, const struct scenario *s)
{
	const struct limit *limit;
	const struct mode *mode;
	size_t i;

	run->nr = 0;
	add(run, "stock", "");
	add(run, "stock", "-again");
	for (mode = s->modes; run->module && mode->name; mode++)
		add_mode(run, mode);
	for (i = 0; run->family->peers && run->family->peers[i]; i++)
		add(run, run->family->peers[i], "")->peer = i + 1;
	if (s->unlimited)
		return;
	if (!run->family->picks) {
		add(run, "limit:", "loop")->loop = true;
		return;
	}
	for (i = 0; (limit = limit_at(run->family->op, i)); i++)
		add(run, "limit:", limit_name(limit))->limit = limit;
}

/* Runs an arm once; returns how long it took. */
uint64_t run_once(const struct run *run, const struct scenario *s,
		  const struct arm *arm)
{
	uint64_t took = 0, begun;
	unsigned int i;

	module_swap(arm);
	for (i = 0; i < s->repeat; i++) {
		run->family->reset(s);
		begun = bmm_host_clock();
		if (arm->limit || arm->loop || arm->peer)
			run->family->limit(s, arm);
		else
			run->family->call(s);
		took += bmm_host_clock() - begun;
	}
	return took / s->repeat;
}

/* Whether an arm left the same result as the kernel. */
bool run_right(struct run *run, const struct scenario *s, const struct arm *arm)
{
	bool same;

	if (arm->limit || arm->loop)
		return true;
	if (run->spoil && arm->mode)
		*run->family->output(s) ^= 0x10;
	same = run->family->right(s);
	if (!same)
		fprintf(stderr, "%s: %s differs\n", s->name, arm->name);
	return same;
}

static void say_verdicts(const struct run *run, const struct scenario *s,
			 const bool *same)
{
	char served[128];
	size_t i;

	for (i = 0; i < run->nr; i++) {
		const struct arm *arm = &run->arms[i];

		if (arm->limit || arm->loop)
			continue;
		printf("{\"event\":\"verified\",\"scenario\":\"%s\",\"variant\":\"%s\",\"ok\":%s}\n",
		       s->name, arm->name, same[i] ? "true" : "false");
		if (!arm->mode || arm->backend)
			continue;
		module_swap(arm);
		module_served(run->family, arm->mode, served, sizeof(served));
		if (module_hits(run->family) == run->hits)
			snprintf(served, sizeof(served), "kernel");
		if (served[0])
			printf("{\"event\":\"served\",\"scenario\":\"%s\",\"variant\":\"%s\",\"backend\":\"%s\"}\n",
			       s->name, arm->name, served);
	}
	fflush(stdout);
}

static void run_scenario(struct run *run, const struct scenario *s)
{
	size_t order[ARMS_MAX], i;
	bool same[ARMS_MAX];
	unsigned int round;

	run_arms(run, s);
	run->hits = run->module ? module_hits(run->family) : 0;
	if (run->family->enter)
		run->family->enter(s);
	run_once(run, s, &run->arms[0]);
	run->family->keep(s);
	for (i = 0; i < run->nr; i++) {
		order[i] = i;
		run_once(run, s, &run->arms[i]);
		same[i] = run_right(run, s, &run->arms[i]);
	}
	for (round = 0; round < run->rounds; round++) {
		order_shuffle(order, run->nr, &run->seed);
		for (i = 0; i < run->nr; i++) {
			const struct arm *arm = &run->arms[order[i]];
			uint64_t ns = run_once(run, s, arm);

			same[order[i]] &= run_right(run, s, arm);
			printf("{\"event\":\"sample\",\"scenario\":\"%s\",\"variant\":\"%s\",\"ns\":%llu,\"bytes\":%llu}\n",
			       s->name, arm->name, (unsigned long long)ns,
			       (unsigned long long)s->bytes);
		}
	}
	say_verdicts(run, s, same);
	module_swap(&run->arms[0]);
	for (i = 0; i < run->nr; i++) {
		run->failed |= !same[i];
		free(run->arms[i].state);
	}
}

/* Whether a comma-separated list contains a name. */
static bool listed(const char *list, const char *name)
{
	size_t length = strlen(name), part;

	for (; *list; list += part + (list[part] == ',')) {
		part = strcspn(list, ",");
		if (part == length && !memcmp(list, name, length))
			return true;
	}
	return false;
}

/*
 * Once the module is settled, it may write only to per-CPU memory, and reads
 * the clock only now and then. A store to anything else faults.
 */
static void settle(const struct run *run, const struct scenario *s,
		   const struct arm *arm)
{
	uint64_t clocks;
	unsigned int i;

	module_swap(arm);
	for (i = 0; i < run->rounds; i++) {
		run->family->reset(s);
		run->family->call(s);
	}
	clocks = services_clocks();
	module_protect(true);
	run->family->call(s);
	module_protect(false);
	printf("{\"event\":\"settled\",\"scenario\":\"%s\",\"variant\":\"%s\",\"calls\":%llu,\"clocks\":%llu}\n",
	       s->name, arm->name,
	       (unsigned long long)s->bytes / (PAGE << s->order),
	       (unsigned long long)(services_clocks() - clocks));
}

static void settle_scenario(struct run *run, const struct scenario *s)
{
	size_t i;

	run_arms(run, s);
	if (run->family->enter)
		run->family->enter(s);
	for (i = 0; i < run->nr; i++)
		if (run->arms[i].mode)
			settle(run, s, &run->arms[i]);
	module_swap(&run->arms[0]);
	for (i = 0; i < run->nr; i++)
		free(run->arms[i].state);
}

static bool parse(struct run *run, int argc, char **argv)
{
	size_t f;
	int i;

	if (argc < 3)
		return false;
	for (f = 0; f < FAMILIES_NR; f++)
		if (!strcmp(argv[2], families[f]->name))
			run->family = families[f];
	for (i = 3; i < argc; i++) {
		char *value = strchr(argv[i], '=');

		if (!strcmp(argv[i], "--backends")) {
			run->backends = true;
			continue;
		}
		if (!strcmp(argv[i], "--settled")) {
			run->settled = true;
			continue;
		}
		if (!strcmp(argv[i], "--break-one-word")) {
			run->spoil = true;
			continue;
		}
		if (!value++)
			return false;
		if (!strncmp(argv[i], "--size=", 7))
			run->size = strtoull(value, NULL, 10);
		else if (!strncmp(argv[i], "--rounds=", 9))
			run->rounds = (unsigned int)strtoul(value, NULL, 10);
		else if (!strncmp(argv[i], "--seed=", 7))
			run->seed = strtoull(value, NULL, 10);
		else if (!strncmp(argv[i], "--only=", 7))
			run->only = value;
		else if (!strncmp(argv[i], "--corpus=", 9))
			run->corpus = value;
		else if (!strncmp(argv[i], "--case=", 7))
			run->one_case = value;
		else if (!strncmp(argv[i], "--fuzz=", 7)) {
			run->fuzz = true;
			run->seconds = (unsigned int)strtoul(value, NULL, 10);
		} else
			return false;
	}
	return run->family && run->size && (run->rounds || run->settled) &&
	       run->seed;
}

int main(int argc, char **argv)
{
	static struct run run;
	static struct scenario list[SCENARIOS_MAX];
	uint64_t written = 0;
	unsigned int i, nr;

	if (!parse(&run, argc, argv)) {
		fprintf(stderr,
			"usage: bmm-native DIRECTORY SUBJECT --size=BYTES --rounds=N --seed=N ...\n");
		return 2;
	}
	random_seed(run.seed);
	image_load(argv[1]);
	faults_catch();
	state_init();
	services_init();
	run.module = module_init();
	nr = run.family->setup(list, run.size);
	if (run.one_case && !run.fuzz) {
		fuzz_scenario(&run, &list[0]);
		nr = 1;
	}
	if (run.fuzz) {
		fuzz(&run);
		return run.failed;
	}
	for (i = 0; i < nr; i++) {
		if (run.only ? !listed(run.only, list[i].name) :
			       list[i].extra && !run.backends)
			continue;
		if (run.settled) {
			settle_scenario(&run, &list[i]);
			continue;
		}
		run_scenario(&run, &list[i]);
		if (written < list[i].bytes)
			written = list[i].bytes;
	}
	/* now that all memory is allocated */
	printf("{\"event\":\"start\",\"rounds\":%u,\"bytes\":%llu,\"huge_bytes\":%llu,\"hooks\":%zu}\n",
	       run.rounds, (unsigned long long)written,
	       (unsigned long long)buffer_huge_bytes(), sites_nr());
	return run.failed;
}
