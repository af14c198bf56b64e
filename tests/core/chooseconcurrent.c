// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Four threads on one chooser, to be run under a sanitizer. */
#include <pthread.h>
#include <stdio.h>
#include "choose.h"

#define THREADS 4
static struct bmm_chooser chooser;
static unsigned int wrong;

static void *work(void *arg)
{
	unsigned int me = (unsigned int)(size_t)arg, i, k;
	size_t n;

	for (i = 0; i < 40000; i++) {
		if (!me && i % 10000 == 9999)
			bmm_choose_reset(&chooser);
		if (me == 1 && i % 15000 == 7)
			bmm_chooser_init(&chooser, 5);
		k = bmm_choose_next(&chooser);
		n = bmm_choose_chunk(&chooser, k, 1UL << 21);
		if (k >= 5 || !n || n > 1UL << 21 ||
		    bmm_choose_best(&chooser) >= 5)
			__atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
		/* Five times slower after the half of it. */
		bmm_choose_feed(&chooser, k, n,
				(n / (10 + 15 * (i < 20000 ? k : 4 - k))) +
					(i * 7919 + me) % 97);
	}
	return NULL;
}

int main(void)
{
	pthread_t thread[THREADS];
	size_t i;

	bmm_chooser_init(&chooser, 5);
	for (i = 0; i < THREADS; i++)
		if (pthread_create(&thread[i], NULL, work, (void *)i))
			return 3;
	for (i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	for (i = 0; i < 6000; i++) {
		unsigned int k = bmm_choose_next(&chooser);

		bmm_choose_feed(&chooser, k, 1UL << 20, 10000 + 10000 * k);
	}
	printf("%u wrong, best %u\n", wrong, bmm_choose_best(&chooser));
	return 0;
}
