#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Runs: Linux 7.3.4 (linux-binary-7.3.4+deb13-cloud-amd64 7.3.4-1~bpo13+1 of Debian's
# trixie-backports) in QEMU 10.0.13 (qemu-system-x86 1:10.0.13+ds-0+deb13u1), emulated
# by TCG
#
# Guess: A private mapping of hugetlb after fork(), with no page free in the pool: the
# one that writes needs a copy and gets SIGBUS. A child that only reads keeps the page
# and its contents.
#
# Behaviour: If the parent writes, the write succeeds, and the child loses its page: the
# kernel unmaps it in every child to spare the parent, whose mapping holds the
# reservation. The child gets SIGBUS when it reads what it could read before. If the
# child writes, the child gets the SIGBUS.
#
# Seen:
#   the parent writes: signal 0; then the child, which reads: signal 7
#   the child writes: signal 7; then the parent, which reads: signal 0
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
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/wait.h>
#include <unistd.h>

#define HUGE (2UL << 20)

static sigjmp_buf before;

static void jump(int number)
{
	siglongjmp(before, number);
}

/* read a byte, or write it; return the signal that came */
static int touch(volatile char *byte, int write)
{
	int number = sigsetjmp(before, 1);

	if (number)
		return number;
	if (write)
		*byte = 2;
	else
		(void)*byte;
	return 0;
}

/* fork; one process writes to the page, then the other reads it; return both signals */
static int write_then_read(int parent_writes)
{
	char *memory = mmap(NULL, HUGE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
	int go[2], status, first, second;
	char byte;

	memset(memory, 1, HUGE);
	if (pipe(go))
		perror("pipe");
	fflush(stdout);
	pid_t child = fork();
	if (!child) {
		int signal = parent_writes ? read(go[0], &byte, 1) != 1 : 0;
		_exit(signal ? 99 : touch(memory, !parent_writes));
	}
	if (parent_writes) {
		first = touch(memory, 1);
		if (write(go[1], "x", 1) != 1)
			perror("write");
	}
	waitpid(child, &status, 0);
	second = WEXITSTATUS(status);
	if (!parent_writes) {
		first = second;
		second = touch(memory, 0);
	}
	printf("the %s writes: signal %d; then the %s, which reads: signal %d\n",
	       parent_writes ? "parent" : "child", first, parent_writes ? "child" : "parent",
	       second);
	munmap(memory, HUGE);
	return first * 100 + second;
}

int main(void)
{
	mount("proc", "/proc", "proc", 0, NULL);
	signal(SIGBUS, jump);
	FILE *pool = fopen("/proc/sys/vm/nr_hugepages", "w");
	fputs("1", pool);
	fclose(pool);
	int parent = write_then_read(1), child = write_then_read(0);
	if (parent == SIGBUS && child == SIGBUS * 100)
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
