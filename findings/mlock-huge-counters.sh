#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Runs: Linux 7.3.4 (linux-binary-7.3.4+deb13-cloud-amd64 7.3.4-1~bpo13+1 of Debian's
# trixie-backports) in QEMU 10.0.13 (qemu-system-x86 1:10.0.13+ds-0+deb13u1), emulated
# by TCG, with transparent huge pages
#
# Guess: Of 64 MiB in transparent huge pages, a program locks all but the first 4 KiB of
# each: VmLck says 65408 kB, and Mlocked and Unevictable in /proc/meminfo grow by as
# much.
#
# Behaviour: VmLck does, the machine's counters stay at 0: a huge page counts there only
# if one call locks all of it. Locking the missing 4 KiB afterwards changes nothing,
# though all is locked then; and unlocking 4 KiB of each takes off all that was counted.
# The pages stay in memory, as the mapping is locked, but who sums up a machine's locked
# memory misses them.
#
# Seen:
#   all but 4 KiB of each 2 MiB locked: VmLck 65408 kB, Mlocked 0 kB, Unevictable 0 kB
#   the rest locked too: VmLck 65536 kB, Mlocked 0 kB, Unevictable 0 kB
#   all locked at once: VmLck 65536 kB, Mlocked 65536 kB, Unevictable 65536 kB
#   4 KiB of each 2 MiB unlocked: VmLck 65408 kB, Mlocked 0 kB, Unevictable 0 kB
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
mkdir -p guest/proc guest/sys

gcc -O1 -Wall -static -o guest/init -x c - <<'END'
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <unistd.h>

#define HUGE (2UL << 20)
#define PAGES 32
#define SIZE (PAGES * HUGE)

static long value_of(const char *path, const char *name)
{
	char line[200];
	long value = -1;
	FILE *file = fopen(path, "r");

	while (fgets(line, sizeof(line), file))
		if (!strncmp(line, name, strlen(name)) && line[strlen(name)] == ':')
			sscanf(line + strlen(name) + 1, "%ld", &value);
	fclose(file);
	return value;
}

/* print the counters; return whether they are these */
static int check(const char *when, long process, long machine)
{
	sleep(1); /* pages wait in lists of each CPU */
	long locked = value_of("/proc/self/status", "VmLck");
	long counted = value_of("/proc/meminfo", "Mlocked");
	long unevictable = value_of("/proc/meminfo", "Unevictable");

	printf("%s: VmLck %ld kB, Mlocked %ld kB, Unevictable %ld kB\n", when, locked, counted,
	       unevictable);
	return locked == process && counted == machine && unevictable == machine;
}

int main(void)
{
	mount("proc", "/proc", "proc", 0, NULL);
	mount("sysfs", "/sys", "sysfs", 0, NULL);
	FILE *mode = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "w");
	fputs("always", mode);
	fclose(mode);
	char *memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);
	memset(memory, 1, SIZE);
	long huge = value_of("/proc/self/smaps_rollup", "AnonHugePages");
	for (int i = 0; i < PAGES; i++)
		if (mlock(memory + i * HUGE + 4096, HUGE - 4096))
			perror("mlock");
	int part = check("all but 4 KiB of each 2 MiB locked", 65408, 0);
	mlock(memory, SIZE);
	int rest = check("the rest locked too", 65536, 0);
	munlock(memory, SIZE);
	mlock(memory, SIZE);
	int all = check("all locked at once", 65536, 65536);
	for (int i = 0; i < PAGES; i++)
		munlock(memory + i * HUGE, 4096);
	int again = check("4 KiB of each 2 MiB unlocked", 65408, 0);
	if (huge == SIZE >> 10 && part && rest && all && again)
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
