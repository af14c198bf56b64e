// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * All public operations from several threads while another one changes the
 * selections, to be run under ThreadSanitizer. Each thread has memory of its
 * own: what they share is what is selected, and the buffer that calibration
 * works on.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "bulkmm.h"

#define THREADS 4
#define ROUNDS	600
#define BYTES	65536U /* of a class that all threads share */

struct worker {
	pthread_t thread;
	uint64_t words[BYTES / 8];
	uint64_t from[BYTES / 8];
	int wrong;
};

static int differs(const uint64_t *words, uint64_t wanted)
{
	int wrong = 0;
	size_t i;

	for (i = 0; i < BYTES / 8; i++)
		wrong |= words[i] != wanted;
	return wrong;
}

static void *work(void *arg)
{
	struct worker *w = arg;
	struct bmm_image image;
	int round;

	memset(w->from, 0x11, sizeof(w->from));
	memset(w->words, 0x22, 64);
	w->wrong = bmm_image_init(&image, w->words, NULL, 64) != 0;
	for (round = 0; round < ROUNDS; round++) {
		w->wrong += bmm_stamp(w->words, &image, BYTES / 64) != 0;
		bmm_drain();
		w->wrong += differs(w->words, 0x2222222222222222);
		bmm_clear(w->words, BYTES);
		w->wrong += differs(w->words, 0);
		bmm_copy_streaming(w->words, w->from, BYTES);
		bmm_drain();
		w->wrong += differs(w->words, 0x1111111111111111);
		bmm_copy(w->words + 1, w->from, BYTES - 8);
		w->words[0] = 0x1111111111111111;
		w->wrong += differs(w->words, 0x1111111111111111);
		w->wrong += bmm_fill(w->words, "3", 1, BYTES) != 0;
		bmm_drain();
		w->wrong += differs(w->words, 0x3333333333333333);
		bmm_clear_streaming(w->words, BYTES);
		w->wrong += differs(w->words, 0);
	}
	return NULL;
}

/* Force every backend that the list names, one after the other. */
static void force_each(enum bmm_op op)
{
	char list[256], *rest = list, *name;

	bmm_backend_list(op, 0, list, sizeof(list));
	while ((name = strtok_r(rest, " []", &rest)))
		bmm_backend_select(op, name, strcspn(name, "="));
}

static void *change(void *arg)
{
	int round;

	(void)arg;
	for (round = 0; round < ROUNDS; round++) {
		enum bmm_op op = (enum bmm_op)(round % BMM_OPS);

		force_each(op);
		if (round % 5 == 0)
			bmm_backend_select(op, NULL, 0);
	}
	return NULL;
}

int main(void)
{
	static struct worker workers[THREADS];
	pthread_t changer;
	int i, wrong = 0;

	for (i = 0; i < THREADS; i++)
		pthread_create(&workers[i].thread, NULL, work, &workers[i]);
	pthread_create(&changer, NULL, change, NULL);
	for (i = 0; i < THREADS; i++) {
		pthread_join(workers[i].thread, NULL);
		wrong += workers[i].wrong;
	}
	pthread_join(changer, NULL);
	printf("%d wrong\n", wrong);
	return wrong != 0;
}
