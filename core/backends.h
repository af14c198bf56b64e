/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Backends, each in a file of its own; private to core/. */
#ifndef BMM_BACKENDS_H
#define BMM_BACKENDS_H

#include "bmm.h"

extern const struct bmm_backend bmm_generic;
#ifdef __x86_64__
extern const struct bmm_backend bmm_x86_rep_q;
extern const struct bmm_backend bmm_x86_plain;
extern const struct bmm_backend bmm_x86_rep_b;
extern const struct bmm_backend bmm_x86_movnti8;
extern const struct bmm_backend bmm_x86_movnti;
extern const struct bmm_backend bmm_x86_clzero;
#endif
#ifdef __aarch64__
extern const struct bmm_backend bmm_arm64_stp;
extern const struct bmm_backend bmm_arm64_stnp;
extern const struct bmm_backend bmm_arm64_dczva;
extern const struct bmm_backend bmm_arm64_mops;
#endif

/* Of backends whose stores are ordinary ones on an ordered architecture. */
void bmm_no_drain(void);

/* The one whose drain serves every backend of this architecture. */
#ifdef __x86_64__
#define BMM_DRAINS_ALL bmm_x86_movnti
#elif defined(__aarch64__)
#define BMM_DRAINS_ALL bmm_arm64_stnp
#else
#define BMM_DRAINS_ALL bmm_generic
#endif

#endif
