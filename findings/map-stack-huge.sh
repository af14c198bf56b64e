#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Runs: Linux 7.3.4 (linux-binary-7.3.4+deb13-cloud-amd64 7.3.4-1~bpo13+1 of Debian's
# trixie-backports) in QEMU 10.0.13 (qemu-system-x86 1:10.0.13+ds-0+deb13u1), emulated
# by TCG
#
# Guess: MAP_STACK changes nothing ("currently a no-op on Linux", says mmap(2) of
# man-pages 6.03): in mode always, memory mapped with it lies in transparent huge pages
# like any other.
#
# Behaviour: It never does: since Linux 6.7 the flag sets what MADV_NOHUGEPAGE sets. An
# arena or a stack for coroutines that is mapped with it loses its huge pages, without a
# word, by a kernel update. MADV_HUGEPAGE gives them back.
#
# Seen:
#   plain: 65536 of 65536 kB huge
#   MAP_STACK: 0 of 65536 kB huge
#   MAP_STACK, then MADV_HUGEPAGE: 65536 of 65536 kB huge
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
#include <sys/reboot.h>
#include <unistd.h>

#define SIZE (64UL << 20)

static long huge_kb(void)
{
	char line[200];
	long size = -1;
	FILE *file = fopen("/proc/self/smaps_rollup", "r");

	while (fgets(line, sizeof(line), file))
		sscanf(line, "AnonHugePages: %ld", &size);
	fclose(file);
	return size;
}

/* whether all of such memory, 1, or nothing, 0, is huge */
static int is_huge(const char *name, int flags, int advice)
{
	char *memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);

	if (advice && madvise(memory, SIZE, advice))
		perror("madvise");
	memset(memory, 1, SIZE);
	long huge = huge_kb();
	printf("%s: %ld of %lu kB huge\n", name, huge, SIZE >> 10);
	munmap(memory, SIZE);
	return huge == 0 ? 0 : huge == SIZE >> 10 ? 1 : -1;
}

int main(void)
{
	mount("proc", "/proc", "proc", 0, NULL);
	mount("sysfs", "/sys", "sysfs", 0, NULL);
	FILE *mode = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "w");
	fputs("always", mode);
	fclose(mode);
	int plain = is_huge("plain", 0, 0), stack = is_huge("MAP_STACK", MAP_STACK, 0);
	int advised = is_huge("MAP_STACK, then MADV_HUGEPAGE", MAP_STACK, MADV_HUGEPAGE);
	if (plain == 1 && stack == 0 && advised == 1)
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
