// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Memory of a server, "bulkmm pool serve": resident and zero before it is asked
 * for.
 *
 * take SOCKET BYTES PAGE. The connection is the lease: it stays open for as
 * long as the memory is used, and its end, however the program ends, gives the
 * memory back.
 */
#define _GNU_SOURCE /* struct ucred */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define MESSAGE 4096

/* One message of JSON, and with it the descriptor of the memory. */
static int receive(int server, char *text, int *fd)
{
	char control[CMSG_SPACE(sizeof(int))];
	struct iovec io = { .iov_base = text, .iov_len = MESSAGE - 1 };
	struct msghdr message = {
		.msg_iov = &io,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *header;
	ssize_t len;

	len = recvmsg(server, &message, MSG_CMSG_CLOEXEC);
	if (len <= 0)
		return -1;
	text[len] = '\0';
	header = CMSG_FIRSTHDR(&message);
	if (!header || header->cmsg_type != SCM_RIGHTS)
		return -1; /* a refusal: the text says why */
	memcpy(fd, CMSG_DATA(header), sizeof(*fd));
	return 0;
}

static int connect_to(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct ucred peer;
	socklen_t len = sizeof(peer);
	int server = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (server < 0 || strlen(path) >= sizeof(address.sun_path))
		return -1;
	strcpy(address.sun_path, path);
	if (connect(server, (struct sockaddr *)&address, sizeof(address)) ||
	    getsockopt(server, SOL_SOCKET, SO_PEERCRED, &peer, &len))
		return -1;
	/* Another user's server could read what is stored in its memory. */
	return peer.uid && peer.uid != geteuid() ? -1 : server;
}

int main(int argc, char **argv)
{
	char request[MESSAGE], reply[MESSAGE] = "no answer";
	size_t bytes, i, wrong = 0;
	unsigned char *memory;
	int server, fd;

	if (argc != 4) {
		fputs("usage: take SOCKET BYTES PAGE\n", stderr);
		return 2;
	}
	bytes = strtoull(argv[2], NULL, 10);
	server = connect_to(argv[1]);
	if (server < 0) {
		perror("take: no server of root or of this user");
		return 1;
	}
	snprintf(request, sizeof(request),
		 "{\"version\": 1, \"op\": \"take\", \"bytes\": %zu, \"page\": \"%s\"}",
		 bytes, argv[3]);
	if (send(server, request, strlen(request), MSG_NOSIGNAL) < 0 ||
	    receive(server, reply, &fd)) {
		fprintf(stderr, "take: %s\n", reply);
		return 1;
	}
	memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED) {
		perror("take: mmap");
		return 1;
	}
	for (i = 0; i < bytes; i++)
		wrong += memory[i] != 0;
	memset(memory, 0xa5, bytes);
	printf("%zu bytes are there, not zero: %zu\n", bytes, wrong);
	return wrong != 0;
}
