// SPDX-License-Identifier: GPL-2.0-only
/*
 * module/clear_unit.c and the choosers, for real, on a machine that is made up:
 * backends that store nothing and move a clock. Prints what a run came to.
 *
 *	unitsim SEED LATENCY_US WORST CACHE RATE... (bytes per us of each  backend)
 *
 * Every clearing is slower than its rate by a factor of its own, between 1 and
 * WORST: what caches, other CPUs and hypervisors do. Up to 16 KiB are CACHE
 * times as fast. Half way all gets ten times slower, and stays so; folios of
 * 16 KiB by every backend are the first that notice.
 */
#include <stdio.h>
#include <stdlib.h>

#include "../../module/clear_unit.h"

#define MOST   5
#define FOLIOS 3000
#define SMALL  16384UL

static uint64_t clock_ns = 1, looks, chance;
static double rates[MOST], worst, cache, slowest;
static int nr;
__thread unsigned int bmm_host_turns;

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

int bmm_host_node(const void *dst, size_t len)
{
	(void)dst, (void)len;
	return 0;
}

static void spend(int k, size_t len)
{
	double slower = 1 + (worst - 1) * random_to_1();

	if (len <= SMALL)
		slower /= cache;
	clock_ns += (uint64_t)((double)len * 1000 / rates[k] * slower);
}

#define BACKEND(k)                                      \
	static void clear_##k(void *dst, size_t len)    \
	{                                               \
		(void)dst;                              \
		spend(k, len);                          \
	}                                               \
	static const struct bmm_backend backend_##k = { \
		.name = "backend" #k,                   \
		.clear = clear_##k,                     \
		.clear_streaming = clear_##k,           \
		.drain = drain,                         \
	}

static void drain(void)
{
}

BACKEND(0);
BACKEND(1);
BACKEND(2);
BACKEND(3);
BACKEND(4);

const struct bmm_backend *const bmm_backends[] = {
	&backend_0, &backend_1, &backend_2, &backend_3, &backend_4,
};
const size_t bmm_backends_nr = MOST;

bool bmm_backend_can(const struct bmm_backend *backend, enum bmm_op op)
{
	(void)op;
	for (int k = 0; k < nr; k++)
		if (bmm_backends[k] == backend)
			return true;
	return false;
}

const struct bmm_backend *bmm_backend_default(enum bmm_op op)
{
	(void)op;
	return bmm_backends[nr - 1];
}

/* What the run came to. */
static struct {
	uint64_t units, bytes, longest, ns;
} all;

static void one_folio(struct bmm_unit *unit, size_t bytes)
{
	uint64_t begun = clock_ns;
	size_t left = bytes, n;

	unit->whole = bytes;
	for (; left; left -= n) {
		n = bmm_unit_clear(unit, NULL, left);
		if (!n || n > left || n % 4096)
			exit(3);
		all.units++;
		if (unit->took > all.longest)
			all.longest = unit->took;
	}
	all.bytes += bytes;
	all.ns += clock_ns - begun;
}

/* Any folio; some calls are forced, as a user may at any moment. */
static void some_folio(struct bmm_unit *unit, int i)
{
	size_t bytes = 4096UL << (int)(random_to_1() * 14);

	unit->op = random_to_1() < 0.5 ? BMM_CLEAR : BMM_CLEAR_STREAMING;
	bmm_quick[unit->op]
		.forced = random_to_1() < 0.1 ?
				  bmm_backends[(int)(random_to_1() * nr)] :
				  NULL;
	one_folio(unit, i % 1000 == 999 ? 1UL << 30 : bytes);
}

/* Who notices is too late, and not counted. */
static void slow_down(struct bmm_unit *unit)
{
	uint64_t longest = all.longest;

	for (int k = 0; k < nr; k++) {
		rates[k] /= 10;
		for (unit->op = BMM_CLEAR; unit->op <= BMM_CLEAR_STREAMING;
		     unit->op++) {
			bmm_quick[unit->op].forced = bmm_backends[k];
			one_folio(unit, SMALL);
		}
	}
	all.longest = longest;
}

int main(int argc, char **argv)
{
	struct bmm_unit unit = { 0 };

	chance = strtoul(argv[1], NULL, 0);
	unit.ns = strtoul(argv[2], NULL, 0) * 1000;
	worst = strtod(argv[3], NULL);
	cache = strtod(argv[4], NULL);
	for (int i = 5; i < argc && nr < MOST; i++)
		rates[nr++] = strtod(argv[i], NULL);
	for (int i = 0; i < FOLIOS; i++) {
		if (i == FOLIOS / 2)
			slow_down(&unit);
		some_folio(&unit, i);
	}
	slowest = rates[0];
	for (int k = 1; k < nr; k++)
		if (rates[k] < slowest)
			slowest = rates[k];
	printf("%lu %lu %lu %lu %lu %.0f\n", all.units, all.bytes, all.longest,
	       all.ns, looks, 4096 * 1000 / slowest * worst);
	return 0;
}
