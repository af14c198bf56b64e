/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the parts of the chooser share: choose.c (the calls), choose_race.c
 * (calibration), choose_samples.c (costs of one candidate) and choose_trial.c
 * (after the decision).
 *
 * Every field is read and written by relaxed atomic loads and stores and by
 * nothing else: no read-modify-write, for which some compilers call a library
 * that the kernel does not have. What two CPUs do at once is then lost, not
 * corrupt; indices are checked where they are read.
 */
#ifndef BMM_CHOOSE_PRIVATE_H
#define BMM_CHOOSE_PRIVATE_H

#include "choose.h"

#define get(p)	  __atomic_load_n(p, __ATOMIC_RELAXED)
#define set(p, v) __atomic_store_n(p, v, __ATOMIC_RELAXED)

#define UNKNOWN (~0U) /* a cost: slower than any */

#define GAP_MIN 16U
#define GAP_MAX 1024U

static inline uint32_t cost(const struct bmm_chooser *c, unsigned int k)
{
	uint32_t known = get(&c->candidate[k].cost);

	return known ? known : UNKNOWN;
}

static inline unsigned int some_of(unsigned int k, unsigned int nr)
{
	return k < nr ? k : nr - 1;
}

/* At a @clock; it and @due wrap around. */
static inline bool trial_is_due(const struct bmm_chooser *c, uint32_t clock)
{
	return (int32_t)(get(&c->due) - clock) <= 0;
}

uint32_t bmm_samples_cost(uint64_t bytes, uint64_t ns);
uint32_t bmm_samples_newest(const struct bmm_candidate *candidate,
			    unsigned int age);
void bmm_samples_add(struct bmm_candidate *candidate, uint32_t sample);
bool bmm_samples_cut(struct bmm_candidate *candidate, uint32_t before);
void bmm_samples_forget(struct bmm_candidate *candidate);

unsigned int bmm_race_leader(const struct bmm_chooser *c, unsigned int nr,
			     unsigned int except);
bool bmm_race_doubts(const struct bmm_chooser *c, unsigned int k);
unsigned int bmm_race_next(struct bmm_chooser *c, unsigned int nr);
void bmm_race_feed(struct bmm_chooser *c, unsigned int nr);

void bmm_trial_in(struct bmm_chooser *c, uint32_t gap);
void bmm_trial_crown(struct bmm_chooser *c, unsigned int nr, unsigned int k,
		     uint32_t gap);
void bmm_trial_begin(struct bmm_chooser *c, unsigned int nr,
		     unsigned int winner);
void bmm_trial_feed(struct bmm_chooser *c, unsigned int nr, unsigned int k,
		    unsigned int winner);
void bmm_trial_changed(struct bmm_chooser *c, unsigned int winner,
		       uint32_t before);
void bmm_trial_look_back(struct bmm_chooser *c, unsigned int nr,
			 unsigned int winner);

#endif
