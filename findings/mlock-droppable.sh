#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Runs: Linux 7.3.4 (linux-binary-7.3.4+deb13-cloud-amd64 7.3.4-1~bpo13+1 of Debian's
# trixie-backports) in QEMU 10.0.13 (qemu-system-x86 1:10.0.13+ds-0+deb13u1), emulated
# by TCG, without swap
#
# Guess: Memory of MAP_DROPPABLE, which the kernel may drop when memory is short, can be
# kept by mlock(), as its manual page says of all memory for which it returns 0; or
# mlock() fails, as mmap() with MAP_LOCKED does: EINVAL.
#
# Behaviour: mlock() returns 0 and locks nothing: VmLck does not grow, and the first
# reclaim drops every page. The program then reads zeros where its data were, in memory
# that it has locked, and gets no signal.
#
# Seen:
#   ordinary: mlock() 0, VmLck 1024 kB; after reclaim 256 of 256 pages keep their bytes
#   MAP_DROPPABLE: mlock() 0, VmLck 0 kB; after reclaim 0 of 256 pages keep their bytes
#   MAP_DROPPABLE | MAP_LOCKED: Invalid argument
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
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MAP_DROPPABLE
#define MAP_DROPPABLE 0x08
#endif
#define PAGES 256
#define GROUP "/sys/fs/cgroup/all/"

static void put(const char *path, const char *text)
{
	int file = open(path, O_WRONLY);

	if (write(file, text, strlen(text)) < 0 && errno != EAGAIN)
		perror(path);
	close(file);
}

static long locked(void)
{
	FILE *status = fopen("/proc/self/status", "r");
	char line[200];
	long size = -1;

	while (fgets(line, sizeof(line), status))
		sscanf(line, "VmLck: %ld", &size);
	fclose(status);
	return size;
}

/* lock memory of this kind, reclaim all that can be; return how many pages keep their bytes */
static int lock_and_reclaim(const char *name, int kind)
{
	volatile char *memory = mmap(NULL, PAGES * 4096, PROT_READ | PROT_WRITE,
				     kind | MAP_ANONYMOUS, -1, 0);
	int kept = 0;

	memset((char *)memory, 7, PAGES * 4096);
	int result = mlock((char *)memory, PAGES * 4096);
	printf("%s: mlock() %d, VmLck %ld kB; ", name, result, locked());
	put(GROUP "memory.reclaim", "64M"); /* there is less: EAGAIN */
	for (int i = 0; i < PAGES; i++)
		kept += memory[i * 4096] == 7;
	printf("after reclaim %d of %d pages keep their bytes\n", kept, PAGES);
	munmap((char *)memory, PAGES * 4096);
	return result ? -1 : kept;
}

int main(void)
{
	mount("proc", "/proc", "proc", 0, NULL);
	mount("sysfs", "/sys", "sysfs", 0, NULL);
	mount("cgroup2", "/sys/fs/cgroup", "cgroup2", 0, NULL);
	put("/sys/fs/cgroup/cgroup.subtree_control", "+memory");
	mkdir(GROUP, 0755);
	put(GROUP "cgroup.procs", "0");
	int ordinary = lock_and_reclaim("ordinary", MAP_PRIVATE);
	int droppable = lock_and_reclaim("MAP_DROPPABLE", MAP_DROPPABLE);
	void *both = mmap(NULL, PAGES * 4096, PROT_READ | PROT_WRITE,
			  MAP_DROPPABLE | MAP_LOCKED | MAP_ANONYMOUS, -1, 0);
	printf("MAP_DROPPABLE | MAP_LOCKED: %s\n", both == MAP_FAILED ? strerror(errno) : "mapped");
	if (ordinary == PAGES && droppable == 0 && both == MAP_FAILED)
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
