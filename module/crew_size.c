// SPDX-License-Identifier: GPL-2.0-only
/*
 * The number doubles as long as that makes the job faster by more than a tenth,
 * and goes back one step when it does not. A disturbed round is slower, never
 * faster: the best of a few counts.
 */
#include "crew_size.h"

/**
 * bmm_crew_members() - how many members should do the next round
 * @size: what has been measured
 * @most: most members, at least 1
 *
 * Return: the number, the caller included.
 */
unsigned int bmm_crew_members(const struct bmm_crew_size *size,
			      unsigned int most)
{
	/* read once: it may be reset concurrently */
	u32 members = *(const volatile u32 *)&size->members;

	if (!members)
		members = 1;
	return members < most ? members : most;
}

static void swap_words(u32 *a, u32 *b)
{
	u32 was = *a;

	*a = *b;
	*b = was;
}

static void go_back(struct bmm_crew_size *size)
{
	swap_words(&size->members, &size->other);
	swap_words(&size->best, &size->rate);
	size->settled = true;
}

static void go_on(struct bmm_crew_size *size, u32 members, unsigned int most)
{
	size->other = members;
	size->rate = size->best;
	size->members = 2 * members < most ? 2 * members : most;
	size->best = 0;
	size->rounds = 0;
}

/**
 * bmm_crew_learn() - account a round
 * @size: what has been measured
 * @most: as for bmm_crew_members()
 * @by:   the number of members that it returned before the round; if it returns
 *        another one by now, the round does not count
 * @rate: MB/s of the round
 */
void bmm_crew_learn(struct bmm_crew_size *size, unsigned int most,
		    unsigned int by, u32 rate)
{
	u32 members = bmm_crew_members(size, most);

	if (size->settled || by != members)
		return;
	if (rate > size->best)
		size->best = rate;
	if (++size->rounds < BMM_CREW_ROUNDS)
		return;
	size->members = members;
	if (size->rate && size->best <= size->rate + size->rate / 10)
		go_back(size);
	else if (members < most)
		go_on(size, members, most);
	else
		size->settled = true;
}
