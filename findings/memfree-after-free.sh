#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Runs: Linux 7.3.4 (linux-binary-7.3.4+deb13-cloud-amd64 7.3.4-1~bpo13+1 of Debian's
# trixie-backports) in QEMU 10.0.13 (qemu-system-x86 1:10.0.13+ds-0+deb13u1), emulated
# by TCG, a guest of one CPU and 1500 MiB
#
# Guess: When a process gives 256 MiB of pages of 4 KiB back by munmap(), MemFree and
# MemAvailable in /proc/meminfo rise by 256 MiB, less some MiB.
#
# Behaviour: By some 80 to 160 MiB at once, and after 40 seconds a part is still
# missing. What is freed stays in a list of the CPU ("count" in /proc/zoneinfo), which
# may grow to an eighth of a zone since Linux 6.7, shrinks slowly, and counts neither as
# free nor as available. Who decides by these figures what fits finds a hundred MiB too
# few.
#
# Seen:
#   at once: MemFree +86 MiB, MemAvailable +86 MiB; listed 175 MiB
#   after 5 seconds: MemFree +126 MiB, MemAvailable +126 MiB; listed 136 MiB
#   after 40 seconds: MemFree +207 MiB, MemAvailable +207 MiB; listed 54 MiB
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
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/reboot.h>
#include <unistd.h>

#define SIZE (256UL << 20)

struct memory {
	long free, available;
};

static struct memory look(void)
{
	char line[200];
	struct memory now = { -1, -1 };
	FILE *file = fopen("/proc/meminfo", "r");

	while (fgets(line, sizeof(line), file)) {
		sscanf(line, "MemFree: %ld", &now.free);
		sscanf(line, "MemAvailable: %ld", &now.available);
	}
	fclose(file);
	return now;
}

/* MiB in the lists of the CPU */
static long listed(void)
{
	char line[200];
	long pages = 0, count;
	FILE *file = fopen("/proc/zoneinfo", "r");

	while (fgets(line, sizeof(line), file))
		if (sscanf(line, " count: %ld", &count) == 1)
			pages += count;
	fclose(file);
	return pages >> 8;
}

/* by how many MiB both have risen, the greater */
static long rise(const char *when, struct memory before)
{
	struct memory now = look();
	long free = (now.free - before.free) >> 10;
	long available = (now.available - before.available) >> 10;

	printf("%s: MemFree +%ld MiB, MemAvailable +%ld MiB; listed %ld MiB\n", when, free,
	       available, listed());
	return free > available ? free : available;
}

int main(void)
{
	mount("proc", "/proc", "proc", 0, NULL);
	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	char *memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);
	memset(memory, 1, SIZE);
	struct memory before = look();
	munmap(memory, SIZE);
	long at_once = rise("at once", before);
	long list = listed();
	sleep(5);
	long soon = rise("after 5 seconds", before);
	sleep(35);
	long late = rise("after 40 seconds", before);
	if (at_once < 210 && list > 40 && soon >= at_once && late > at_once + 10)
		puts("as described");
	fflush(stdout);
	reboot(RB_POWER_OFF);
}
END

guest "$kernel" "" -m 1500M || :

grep -Fxq "as described" seen || {
	echo "changed: the guest saw something else"
	exit 1
}
