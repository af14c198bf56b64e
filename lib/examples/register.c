// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Buffers for io_uring, registered while the pool is still being populated: the
 * kernel pins each piece, and finds its pages there. io_uring(7) is used by its
 * system calls, as the example needs two of them only.
 */
#include <errno.h>
#include <linux/io_uring.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <bulkmm.h>

#define POOL	 (128UL << 20)
#define PIECE	 (16UL << 20)
#define PIECES	 (POOL / PIECE)
#define UNUSABLE 77 /* no io_uring here: a filter, a sysctl, an older kernel */

struct ring {
	int fd;
	char *pool;
	unsigned int registered;
};

/* Fills a slot of the ring's table with the piece (Linux 5.13). */
static int register_piece(void *context, void *addr, size_t len)
{
	struct ring *ring = context;
	struct iovec vector = { addr, len };
	struct io_uring_rsrc_update2 update = {
		.offset = (unsigned int)(((char *)addr - ring->pool) /
					 (long)PIECE),
		.data = (unsigned long)&vector,
		.nr = 1,
	};

	if (syscall(SYS_io_uring_register, ring->fd,
		    IORING_REGISTER_BUFFERS_UPDATE, &update,
		    sizeof(update)) < 0) {
		perror("register: io_uring_register");
		return 1; /* stops the rest */
	}
	ring->registered++;
	return 0;
}

/* A ring with a table of empty slots. */
static int open_ring(struct ring *ring)
{
	struct io_uring_params params = { 0 };
	struct io_uring_rsrc_register table = {
		.nr = PIECES,
		.flags = IORING_RSRC_REGISTER_SPARSE, /* Linux 5.19 */
	};

	ring->fd = (int)syscall(SYS_io_uring_setup, 8, &params);
	if (ring->fd < 0)
		return -1;
	return (int)syscall(SYS_io_uring_register, ring->fd,
			    IORING_REGISTER_BUFFERS2, &table, sizeof(table));
}

int main(void)
{
	struct ring ring = { 0 };
	struct bmm_options options = BMM_OPTIONS_INIT(.ready = register_piece,
						      .context = &ring,
						      .piece = PIECE);
	struct bmm_report report = BMM_REPORT_INIT;
	char text[256];

	if (open_ring(&ring) < 0) {
		perror("register: io_uring");
		return UNUSABLE;
	}
	ring.pool = mmap(NULL, POOL, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (ring.pool == MAP_FAILED) {
		perror("register: mmap");
		return 1;
	}
	if (bmm_populate(ring.pool, POOL, &options, &report)) {
		bmm_report_text(&report, text, sizeof(text));
		fprintf(stderr, "register: %s\n", text);
		return 1;
	}
	printf("%u buffers of %zu bytes are registered\n", ring.registered,
	       PIECE);
	return 0;
}
