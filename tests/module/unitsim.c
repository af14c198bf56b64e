// SPDX-License-Identifier: GPL-2.0-only
/*
 * module/clear_unit.c and a pick, for real, on a machine that is made up:
 * backends that store nothing and move a clock. Prints what a run came to.
 *
 *	unitsim SEED LATENCY_US WORST CACHE RATE... (bytes per us of each  backend)
 *
 * Every clearing is slower than its rate by a factor of its own, between 1 and
 * WORST: what caches, other CPUs and hypervisors do. Up to 16 KiB are CACHE
 * times as fast. Half way all gets ten times slower, and stays so: who notices
 * is too late, and not counted, but for how long it took (NOTICED ns).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../module/clear_unit.h"

#define MOST   5
#define FOLIOS 3000
#define SMALL  16384UL
#define EVERY  61 /* units, one is timed */

static uint64_t clock_ns = 1, looks, chance, noticed;
static double rates[MOST], worst, cache, slowest;
static int nr;

static double random_to_1(void)
{
	chance = chance * 6364136223846793005UL + 1442695040888963407UL;
	return (double)(chance >> 11) / (double)(1UL << 53);
}

uint64_t bmm_host_clock(void)
{
	looks++;
	clock_ns += 20;
	return clock_ns;
}

size_t bmm_host_llc(void)
{
	return 0;
}

unsigned long bmm_host_disturbed(void)
{
	return 0;
}

static void spend(int k, size_t len)
{
	double slower = 1 + (worst - 1) * random_to_1();

	if (len <= SMALL)
		slower /= cache;
	clock_ns += (uint64_t)((double)len * 1000 / rates[k] * slower);
}

#define BACKEND(k)                                   \
	static void clear_##k(void *dst, size_t len) \
	{                                            \
		(void)dst;                           \
		spend(k, len);                       \
	}

BACKEND(0)
BACKEND(1)
BACKEND(2)
BACKEND(3)
BACKEND(4)

#define ENTRY(k)                \
	{ .name = "backend" #k, \
	  .clear = clear_##k,   \
	  .clear_streaming = clear_##k }

static const struct bmm_backend backends[MOST] = { ENTRY(0), ENTRY(1), ENTRY(2),
						   ENTRY(3), ENTRY(4) };

const struct bmm_backend *bmm_backend_at(size_t i)
{
	return i < (size_t)nr ? &backends[i] : NULL;
}

bool bmm_backend_can(const struct bmm_backend *backend, enum bmm_op op)
{
	(void)backend, (void)op;
	return true;
}

const struct bmm_backend *bmm_candidate(enum bmm_op op, unsigned int k)
{
	(void)op;
	return bmm_backend_at(k);
}

void bmm_job_do(const struct bmm_job *job, const struct bmm_backend *backend)
{
	backend->clear(job->dst, job->len);
}

/* For clear_unit.c: what a static call does in the module. */
void bmm_zero_settled(const struct bmm_zero *zero, void *at, size_t len)
{
	zero->by[zero->serves]->clear(at, len);
}

static struct bmm_pick picks[2];
static struct bmm_zero zeroes[2] = {
	{ .op = BMM_CLEAR, .kind = 0, .serves = -1, .pick = &picks[0] },
	{ .op = BMM_CLEAR_STREAMING, .kind = 2, .serves = -1, .pick = &picks[1] },
};
static struct bmm_units mine;

/* What the run came to. */
static struct {
	uint64_t units, bytes, longest, ns;
} all;

static void one_folio(struct bmm_zero *zero, size_t bytes, uint64_t ns)
{
	struct bmm_unit_want want = { .bytes = SIZE_MAX,
				      .ns = ns,
				      .by_ns = true };
	uint64_t begun = clock_ns, then, timed;
	size_t left = bytes, n;

	for (; left; left -= n) {
		then = clock_ns;
		n = bmm_unit_clear(zero, &mine, &want, NULL, left, &timed);
		if (!n || n > left || n % 4096 || timed > clock_ns - then)
			exit(3);
		all.units++;
		if (clock_ns - then > all.longest)
			all.longest = clock_ns - then;
	}
	all.bytes += bytes;
	all.ns += clock_ns - begun;
}

static void serve(struct bmm_zero *zero, int k)
{
	zero->serves = k;
	zero->settled = k >= 0;
}

/* As the module does: at times a backend is forced, or all are measured again. */
static void settle(struct bmm_zero *zero)
{
	double what = random_to_1();

	if (what < 0.01) {
		serve(zero, (int)(random_to_1() * nr));
		memset(&mine, 0, sizeof(mine));
	} else if (what < 0.02) {
		memset(zero->pick, 0, sizeof(*zero->pick));
		serve(zero, -1);
		memset(&mine, 0, sizeof(mine));
	} else if (zero->serves < 0 && bmm_pick_decided(zero->pick)) {
		serve(zero, (int)bmm_pick_best(zero->pick));
	}
}

static void some_folio(int i, uint64_t ns)
{
	size_t bytes = 4096UL << (int)(random_to_1() * 14);
	struct bmm_zero *zero = &zeroes[random_to_1() < 0.5];

	settle(zero);
	one_folio(zero, i % 1000 == 999 ? 1UL << 30 : bytes, ns);
}

/* As many units of each backend as go by before one is timed. */
static void slow_down(uint64_t ns)
{
	uint64_t longest = all.longest;

	for (int k = 0; k < nr; k++)
		rates[k] /= 10;
	all.longest = 0;
	for (int k = 0; k < nr; k++) {
		for (int i = 0; i < 2; i++) {
			serve(&zeroes[i], k);
			for (uint64_t end = all.units + 2 * EVERY;
			     all.units < end;)
				one_folio(&zeroes[i], 1UL << 30, ns);
		}
	}
	noticed = all.longest;
	all.longest = longest;
}

int main(int argc, char **argv)
{
	uint64_t ns;

	chance = strtoul(argv[1], NULL, 0);
	ns = strtoul(argv[2], NULL, 0) * 1000;
	worst = strtod(argv[3], NULL);
	cache = strtod(argv[4], NULL);
	for (int i = 5; i < argc && nr < MOST; i++, nr++) {
		rates[nr] = strtod(argv[i], NULL);
		zeroes[0].by[nr] = &backends[nr];
		zeroes[1].by[nr] = &backends[nr];
	}
	for (int i = 0; i < FOLIOS; i++) {
		if (i == FOLIOS / 2)
			slow_down(ns);
		some_folio(i, ns);
	}
	slowest = rates[0];
	for (int k = 1; k < nr; k++)
		if (rates[k] < slowest)
			slowest = rates[k];
	printf("%lu %lu %lu %lu %lu %.0f %lu\n", all.units, all.bytes,
	       all.longest, all.ns, looks, 4096 * 1000 / slowest * worst,
	       noticed);
	return 0;
}
