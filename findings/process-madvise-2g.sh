#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Runs: Linux 7.3.4 (linux-binary-7.3.4+deb13-cloud-amd64 7.3.4-1~bpo13+1 of Debian's
# trixie-backports) in QEMU 10.0.13 (qemu-system-x86 1:10.0.13+ds-0+deb13u1), emulated
# by TCG
#
# Guess: process_madvise() of the caller's own memory, 3 GiB in one iovec, gives the
# advice for all of it, as madvise() does, and returns 3 GiB; its manual page has less
# than the total only for an error (man-pages 6.9.1). A caller who goes on after the
# count that it returns is done at the latest then.
#
# Behaviour: It stops after 2 GiB - 4 KiB, as read() and write() do, without an error.
# On huge pages of hugetlb that count is in the middle of one: going on from there fails
# with EINVAL, and the last third never gets the advice.
#
# Seen:
#   ordinary: 2147479552 of 3221225472 bytes advised; then 1073745920
#   hugetlb: 2147479552 of 3221225472 bytes advised; then Invalid argument
#   madvise(), hugetlb: ok
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
mkdir -p guest/proc

gcc -O1 -Wall -static -o guest/init -x c - <<'END'
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/reboot.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define SIZE (3L << 30)
#ifndef SYS_process_madvise
#define SYS_process_madvise 440
#endif

static char *map(int flags)
{
	char *memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);

	if (memory == MAP_FAILED)
		perror("mmap");
	return memory;
}

static long drop(char *memory, size_t length)
{
	int self = syscall(SYS_pidfd_open, getpid(), 0);
	struct iovec range = { memory, length };
	long done = syscall(SYS_process_madvise, self, &range, 1, MADV_DONTNEED, 0);
	int error = errno;

	close(self);
	return done < 0 ? -error : done;
}

/* drop all in at most two calls; return what the second said */
static long drop_twice(const char *name, int flags)
{
	char *memory = map(flags);
	long first = drop(memory, SIZE), second = drop(memory + first, SIZE - first);

	printf("%s: %ld of %ld bytes advised; then ", name, first, SIZE);
	if (second < 0)
		puts(strerror(-second));
	else
		printf("%ld\n", second);
	munmap(memory, SIZE);
	return first == SIZE ? 0 : second;
}

int main(void)
{
	long rest = (1L << 30) + 4096;
	long ordinary = drop_twice("ordinary", 0), huge = drop_twice("hugetlb", MAP_HUGETLB);
	int whole = madvise(map(MAP_HUGETLB), SIZE, MADV_DONTNEED);

	printf("madvise(), hugetlb: %s\n", whole ? strerror(errno) : "ok");
	if (ordinary == rest && huge == -EINVAL && !whole)
		puts("as described");
	fflush(stdout);
	reboot(RB_POWER_OFF);
}
END

guest "$kernel" "" -m 1G || :

grep -Fxq "as described" seen || {
	echo "changed: the guest saw something else"
	exit 1
}
