#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Runs: Linux 7.3.4 (linux-binary-7.3.4+deb13-cloud-amd64 7.3.4-1~bpo13+1 of Debian's
# trixie-backports) in QEMU 10.0.13 (qemu-system-x86 1:10.0.13+ds-0+deb13u1), emulated
# by TCG
#
# Guess: MADV_GUARD_INSTALL of 1 GiB that nobody has touched costs no memory, as
# PROT_NONE costs none; it is there to make guards cheap. What it costs comes back with
# MADV_GUARD_REMOVE.
#
# Behaviour: It makes a page table for each 2 MiB and puts a mark for each page into it:
# 2 MiB of memory that is not in VmRSS, one word for every page of 4 KiB, whether the
# region is huge or not. MADV_GUARD_REMOVE takes the marks away and leaves the tables;
# MADV_DONTNEED then frees them.
#
# Seen:
#   1 GiB of PROT_NONE: VmPTE +0 kB, VmRSS +0 kB
#   MADV_GUARD_INSTALL: VmPTE +2056 kB, VmRSS +0 kB
#   MADV_GUARD_REMOVE: VmPTE +2056 kB, VmRSS +0 kB
#   MADV_DONTNEED: VmPTE +8 kB, VmRSS +0 kB
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
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <unistd.h>

#define SIZE (1UL << 30)
#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#define MADV_GUARD_REMOVE 103
#endif

struct use {
	long tables, resident;
};

static struct use look(void)
{
	char line[200];
	struct use now = { -1, -1 };
	FILE *file = fopen("/proc/self/status", "r");

	while (fgets(line, sizeof(line), file)) {
		sscanf(line, "VmPTE: %ld", &now.tables);
		sscanf(line, "VmRSS: %ld", &now.resident);
	}
	fclose(file);
	return now;
}

/* print what has come since; return the kB of page tables, -1 if pages came too */
static long added(const char *what, struct use before)
{
	struct use now = look();
	long tables = now.tables - before.tables, resident = now.resident - before.resident;

	printf("%s: VmPTE +%ld kB, VmRSS +%ld kB\n", what, tables, resident);
	return resident > 100 ? -1 : tables;
}

static void advise(char *memory, int advice)
{
	if (madvise(memory, SIZE, advice))
		perror("madvise");
}

int main(void)
{
	mount("proc", "/proc", "proc", 0, NULL);
	look(); /* takes a table itself */
	struct use before = look();
	mmap(NULL, SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	long none = added("1 GiB of PROT_NONE", before);
	char *memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	before = look();
	advise(memory, MADV_GUARD_INSTALL);
	long installed = added("MADV_GUARD_INSTALL", before);
	advise(memory, MADV_GUARD_REMOVE);
	long removed = added("MADV_GUARD_REMOVE", before);
	advise(memory, MADV_DONTNEED);
	long dropped = added("MADV_DONTNEED", before);
	if (none == 0 && installed >= 2048 && removed >= 2048 && dropped >= 0 && dropped < 100)
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
