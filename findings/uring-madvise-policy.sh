#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Runs: Linux 7.3.4 (linux-binary-7.3.4+deb13-cloud-amd64 7.3.4-1~bpo13+1 of Debian's
# trixie-backports) in QEMU 10.0.13 (qemu-system-x86 1:10.0.13+ds-0+deb13u1), emulated
# by TCG, a guest of two memory nodes
#
# Guess: IORING_OP_MADVISE with MADV_POPULATE_WRITE takes pages as the submitting
# thread's memory policy says at that time, as madvise() does.
#
# Behaviour: The request runs in a worker thread, which got a copy of the policy when it
# was created. As long as the worker lives, a later set_mempolicy() of the submitter
# does not reach it: bound to node 0, and so told, it goes on taking pages from node 1,
# which a strict binding forbids. (A policy of the mapping, by mbind(), is kept.)
#
# Seen:
#   bound to node 1: IORING_OP_MADVISE populates on node 1
#   bound to node 0: IORING_OP_MADVISE populates on node 1
#   bound to node 0: madvise() populates on node 0
#
# Needs apt, gcc and libc6-dev. Exits 0: as described; 1: changed; 3: a version cannot be had.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
cd "$work"

# FOLDER SUITES install|download PACKAGE=VERSION...: unpack packages of the host's
# Debian mirror, with their dependencies or alone
fetch() {
	local folder=$1 suites=$2 how=$3 mirror suite
	shift 3
	# shellcheck disable=SC2016 # fields of apt's format
	mirror=$(apt-get indextargets --format '$(LABEL) $(REPO_URI)' \
		'Created-By: Packages' | sed -n 's/^Debian //p' | sort -u | head -n 1)
	mkdir -p "$folder" apt/none apt/lists/partial apt/cache/archives/partial
	: >apt/status
	for suite in $suites; do
		echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]" \
			"$mirror $suite main"
	done >apt/sources.list
	cat >apt/conf <<-END
		Dir::State "$work/apt";
		Dir::State::status "$work/apt/status";
		Dir::Cache "$work/apt/cache";
		Dir::Etc::sourcelist "$work/apt/sources.list";
		Dir::Etc::sourceparts "$work/apt/none";
		Dir::Etc::preferencesparts "$work/apt/none";
		APT::Install-Recommends "false";
		APT::Sandbox::User "root";
		Debug::NoLocking "true";
	END
	export APT_CONFIG=$work/apt/conf
	(
		cd apt/cache/archives
		apt-get update -qq
		if [ "$how" = install ]; then
			apt-get install -qq -y --download-only "$@"
		else
			apt-get download -qq "$@"
		fi
	) >apt/log 2>&1 || {
		echo "cannot be had: $*: $(grep -m 1 '^E:' apt/log)" >&2
		exit 3
	}
	unset APT_CONFIG
	for package in apt/cache/archives/*.deb; do
		dpkg -x "$package" "$folder"
	done
	rm -r apt
}

# FOLDER PROGRAM ARGUMENT...: run a program of unpacked packages with their libraries
unpacked() {
	local libraries=$1/usr/lib/x86_64-linux-gnu program=$1/$2
	shift 2
	"$libraries/ld-linux-x86-64.so.2" --library-path "$libraries" "$program" "$@"
}

# KERNEL PARAMETERS ARGUMENT...: boot a kernel with the files below guest/, whose /init
# prints on the console (its check of the timer fails at times on a busy host)
guest() {
	local kernel=$1 parameters=$2
	shift 2
	(cd guest && find . | unpacked ../qemu usr/bin/cpio --quiet -o -H newc) >initramfs
	timeout --foreground 300 nice -n 10 \
		qemu/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2 \
		--library-path qemu/usr/lib/x86_64-linux-gnu \
		qemu/usr/bin/qemu-system-x86_64 -L qemu/usr/share/qemu \
		-L qemu/usr/share/seabios -accel tcg -cpu max -display none \
		-no-reboot -nic none -monitor none -serial stdio -kernel "$kernel" \
		-initrd initramfs \
		-append "console=ttyS0 quiet panic=-1 no_timer_check $parameters" \
		"$@" </dev/null | tr -d '\r' | tee seen
}

version=7.3.4+deb13-cloud-amd64
fetch qemu trixie install qemu-system-x86=1:10.0.13+ds-0+deb13u1 cpio=2.15+dfsg-2
fetch kernel "trixie trixie-backports" download \
	linux-binary-$version=7.3.4-1~bpo13+1
kernel=kernel/usr/lib/modules/$version/vmlinuz
mkdir -p guest/proc guest/sys guest/dev guest/tmp

gcc -O1 -Wall -static -o guest/init -x c - <<'END'
#define _GNU_SOURCE
#include <linux/io_uring.h>
#include <linux/mempolicy.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/reboot.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SIZE (4UL << 20)

static int ring;
static struct io_uring_params params;
static char *sq, *cq;
static struct io_uring_sqe *sqe;

static void *map_ring(size_t size, long offset)
{
	return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, ring, offset);
}

static void bind_to(unsigned long node)
{
	unsigned long mask = 1UL << node;

	if (syscall(SYS_set_mempolicy, MPOL_BIND, &mask, 64))
		perror("set_mempolicy");
}

/* populate fresh memory and return the node that it came from */
static int node_of_populated(int by_ring)
{
	void *memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned int tail = *(unsigned int *)(sq + params.sq_off.tail);
	int node = -1;

	if (by_ring) {
		/* the worker of the request before is idle by then */
		usleep(500000);
		/* one request at a time: always the first entry */
		*sqe = (struct io_uring_sqe){
			.opcode = IORING_OP_MADVISE,
			.addr = (unsigned long)memory,
			.len = SIZE,
			.fadvise_advice = MADV_POPULATE_WRITE,
		};
		((unsigned int *)(sq + params.sq_off.array))[tail & 7] = 0;
		__atomic_store_n((unsigned int *)(sq + params.sq_off.tail),
				 tail + 1, __ATOMIC_RELEASE);
		syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS,
			NULL, 0);
		++*(unsigned int *)(cq + params.cq_off.head);
	} else {
		madvise(memory, SIZE, MADV_POPULATE_WRITE);
	}
	syscall(SYS_move_pages, 0, 1UL, &memory, NULL, &node, 0);
	return node;
}

int main(void)
{
	ring = syscall(SYS_io_uring_setup, 8, &params);
	sq = map_ring(4096, IORING_OFF_SQ_RING);
	cq = map_ring(4096, IORING_OFF_CQ_RING);
	sqe = map_ring(4096, IORING_OFF_SQES);

	bind_to(1);
	int first = node_of_populated(1);
	bind_to(0);
	int second = node_of_populated(1);
	int called = node_of_populated(0);

	printf("bound to node 1: IORING_OP_MADVISE populates on node %d\n", first);
	printf("bound to node 0: IORING_OP_MADVISE populates on node %d\n", second);
	printf("bound to node 0: madvise() populates on node %d\n", called);
	if (first == 1 && second == 1 && called == 0)
		puts("as described");
	fflush(stdout);
	reboot(RB_POWER_OFF);
}
END

guest "$kernel" "" -m 1G -object memory-backend-ram,id=a,size=512M \
	-object memory-backend-ram,id=b,size=512M -numa node,memdev=a,cpus=0 \
	-numa node,memdev=b || :

grep -Fxq "as described" seen || {
	echo "changed: the guest saw something else"
	exit 1
}
