// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A ring of descriptors such as a device reads by DMA: each is 64 bytes and
 * names a buffer, and only the buffer's address changes from one to the next.
 * The ring is stamped bypassing the cache, drained, and published by one atomic
 * store to a thread that plays the device.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include <bulkmm.h>

#define DESCRIPTORS 65536U
#define BUFFER	    2048U
#define BUFFERS	    0x100000000ULL /* address of the first one */

struct descriptor {
	uint64_t address;
	uint32_t length, flags;
	uint64_t cookie, reserved[5];
};

struct ring {
	struct descriptor *descriptors;
	_Atomic(uint32_t) published;
	unsigned int wrong;
};

/* Two consecutive descriptors show what changes, and by how much. */
static int ring_fill(struct ring *ring)
{
	struct descriptor first = {
		.address = BUFFERS,
		.length = BUFFER,
		.flags = 1,
		.cookie = 0xb17c,
	};
	struct descriptor next = first;
	struct bmm_image image;
	int error;

	next.address += BUFFER;
	error = bmm_image_init(&image, &first, &next, sizeof(first));
	if (!error)
		error = bmm_stamp(ring->descriptors, &image, DESCRIPTORS);
	if (error)
		return error;

	/* A release orders ordinary stores only; these need the drain. */
	bmm_drain();
	atomic_store_explicit(&ring->published, DESCRIPTORS,
			      memory_order_release);
	return 0;
}

static void *device(void *arg)
{
	struct ring *ring = arg;
	uint32_t n, i;

	do
		n = atomic_load_explicit(&ring->published, memory_order_acquire);
	while (!n);
	for (i = 0; i < n; i++) {
		const struct descriptor *d = &ring->descriptors[i];

		ring->wrong += d->address != BUFFERS + (uint64_t)i * BUFFER ||
			       d->length != BUFFER || d->flags != 1 ||
			       d->cookie != 0xb17c || d->reserved[4];
	}
	return NULL;
}

int main(void)
{
	struct ring ring = { .published = 0 };
	pthread_t thread;

	ring.descriptors = aligned_alloc(64, sizeof(struct descriptor) *
						     DESCRIPTORS);
	if (!ring.descriptors || pthread_create(&thread, NULL, device, &ring)) {
		perror("descriptors: no memory or no thread");
		return 1;
	}
	if (ring_fill(&ring)) {
		fputs("descriptors: not a record that can be stamped\n", stderr);
		return 1;
	}
	pthread_join(thread, NULL);
	printf("descriptors published: %u, wrong: %u\n", DESCRIPTORS,
	       ring.wrong);
	free(ring.descriptors);
	return ring.wrong != 0;
}
