#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Runs: Linux 7.3.4 (linux-binary-7.3.4+deb13-cloud-amd64 7.3.4-1~bpo13+1 of Debian's
# trixie-backports) in QEMU 10.0.13 (qemu-system-x86 1:10.0.13+ds-0+deb13u1), emulated
# by TCG
#
# Guess: fork() of a process with private huge pages of hugetlb takes none of the pool,
# as they are shared until somebody writes. Whether a part of them is registered with
# io_uring makes no difference.
#
# Behaviour: A registered huge page is pinned, so it cannot be shared: fork() copies it
# at once, all 2 MiB for a buffer of 4 KiB. With no page free in the pool fork() fails
# with ENOMEM, though a gigabyte of other memory is free. Of ordinary memory, too,
# pinned pages are copied, but a program on huge pages has sized its pool for what it
# maps. MADV_DONTFORK avoids it.
#
# Seen:
#   not registered, 0 free: fork() succeeds, 0 free in the child
#   4 KiB registered, 0 free: fork() fails: Cannot allocate memory
#   4 KiB registered, 1 free: fork() succeeds, 0 free in the child
#   registered, MADV_DONTFORK, 0 free: fork() succeeds, 0 free in the child
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
#include <linux/io_uring.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define HUGE (2UL << 20)

static void set_pool(int pages)
{
	FILE *pool = fopen("/proc/sys/vm/nr_hugepages", "w");

	fprintf(pool, "%d", pages);
	fclose(pool);
}

static int count_free(void)
{
	char line[200];
	int pages = -1;
	FILE *file = fopen("/proc/meminfo", "r");

	while (fgets(line, sizeof(line), file))
		sscanf(line, "HugePages_Free: %d", &pages);
	fclose(file);
	return pages;
}

/* fork; return the huge pages that are free in the child, or -errno */
static int fork_once(const char *when)
{
	int before = count_free(), status;
	pid_t child = fork();

	if (!child)
		_exit(count_free());
	if (child < 0) {
		printf("%s, %d free: fork() fails: %s\n", when, before, strerror(errno));
		return -errno;
	}
	waitpid(child, &status, 0);
	printf("%s, %d free: fork() succeeds, %d free in the child\n", when, before,
	       WEXITSTATUS(status));
	return WEXITSTATUS(status);
}

static void register_buffer(char *memory)
{
	struct io_uring_params parameters = { 0 };
	struct iovec buffer = { memory, 4096 };
	int ring = syscall(SYS_io_uring_setup, 4, &parameters);

	if (syscall(SYS_io_uring_register, ring, IORING_REGISTER_BUFFERS, &buffer, 1))
		perror("io_uring_register");
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	mount("proc", "/proc", "proc", 0, NULL);
	set_pool(2);
	char *memory = mmap(NULL, 2 * HUGE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
	memset(memory, 1, 2 * HUGE);
	int plain = fork_once("not registered");
	register_buffer(memory);
	int full = fork_once("4 KiB registered");
	set_pool(3);
	int spare = fork_once("4 KiB registered");
	set_pool(2);
	madvise(memory, 2 * HUGE, MADV_DONTFORK);
	int apart = fork_once("registered, MADV_DONTFORK");
	if (plain == 0 && full == -ENOMEM && spare == 0 && apart == 0)
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
