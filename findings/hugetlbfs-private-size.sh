#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Runs: Linux 7.3.4 (linux-binary-7.3.4+deb13-cloud-amd64 7.3.4-1~bpo13+1 of Debian's
# trixie-backports) in QEMU 10.0.13 (qemu-system-x86 1:10.0.13+ds-0+deb13u1), emulated
# by TCG
#
# Guess: A private mapping (MAP_PRIVATE) never changes the file. 8 MiB of an empty file
# on hugetlbfs can be mapped so, and the access is beyond the end: SIGBUS, as on any
# other file system.
#
# Behaviour: If it is writable, mmap() alone, before any access, makes the file 8 MiB
# long, as it does for a shared one. What is written then is private: the file holds no
# page, and its blocks stay 0.
#
# Seen:
#   tmpfs, private, writable: the file has 0 bytes after mmap(); writing: signal 7
#   hugetlbfs, private, read-only: the file has 0 bytes after mmap(); reading: signal 7
#   hugetlbfs, private, writable: the file has 8388608 bytes after mmap(); writing: signal 0
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
mkdir -p guest/proc guest/small guest/huge

gcc -O1 -Wall -static -o guest/init -x c - <<'END'
#define _GNU_SOURCE
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <unistd.h>

#define SIZE (8L << 20)

static sigjmp_buf before;

static void jump(int number)
{
	siglongjmp(before, number);
}

static int touch(volatile char *byte, int protection)
{
	int number = sigsetjmp(before, 1);

	if (number)
		return number;
	if (protection & PROT_WRITE)
		*byte = 1;
	else
		(void)*byte;
	return 0;
}

/* map an empty file; return its size then, or minus the signal of an access */
static long map_empty(const char *name, const char *path, int protection)
{
	struct stat state;
	int file = open(path, O_RDWR | O_CREAT, 0600);
	char *memory = mmap(NULL, SIZE, protection, MAP_PRIVATE, file, 0);

	if (memory == MAP_FAILED)
		perror("mmap");
	fstat(file, &state);
	int number = touch(memory, protection);
	printf("%s: the file has %ld bytes after mmap(); %s: signal %d\n", name,
	       (long)state.st_size, protection & PROT_WRITE ? "writing" : "reading", number);
	munmap(memory, SIZE);
	close(file);
	return number ? -number : (long)state.st_size;
}

int main(void)
{
	mount("proc", "/proc", "proc", 0, NULL);
	mount("small", "/small", "tmpfs", 0, NULL);
	mount("huge", "/huge", "hugetlbfs", 0, "pagesize=2M");
	signal(SIGBUS, jump);
	FILE *pool = fopen("/proc/sys/vm/nr_hugepages", "w");
	fputs("4", pool);
	fclose(pool);
	int both = PROT_READ | PROT_WRITE;
	long small = map_empty("tmpfs, private, writable", "/small/a", both);
	long read = map_empty("hugetlbfs, private, read-only", "/huge/a", PROT_READ);
	long huge = map_empty("hugetlbfs, private, writable", "/huge/b", both);
	if (small == -SIGBUS && read == -SIGBUS && huge == SIZE)
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
