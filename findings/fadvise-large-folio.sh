#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Runs: Linux 7.3.4 (linux-binary-7.3.4+deb13-cloud-amd64 7.3.4-1~bpo13+1 of Debian's
# trixie-backports) in QEMU 10.0.13 (qemu-system-x86 1:10.0.13+ds-0+deb13u1), emulated
# by TCG, with ext4
#
# Guess: posix_fadvise(POSIX_FADV_DONTNEED) of one whole, clean, page-aligned page that
# nobody maps drops it from the page cache. (Its manual page excludes parts of pages
# only.)
#
# Behaviour: That depends on how the file was read before. Read in pages with
# FADV_RANDOM, the page goes. Read in large pieces, it stays, and the call returns 0:
# readahead has put it into a large folio, and a folio that is not wholly in the range
# is passed over.
#
# Seen:
#   read in pieces of 4 KiB: the page is cached 1, DONTNEED 0, then 0
#   read in pieces of 1024 KiB: the page is cached 1, DONTNEED 0, then 1
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
fetch qemu trixie install qemu-system-x86=1:10.0.13+ds-0+deb13u1 cpio=2.15+dfsg-2 \
	e2fsprogs=1.47.2-3+b12
fetch kernel "trixie trixie-backports" download \
	linux-binary-$version=7.3.4-1~bpo13+1 \
	linux-modules-$version=7.3.4-1~bpo13+1
kernel=kernel/usr/lib/modules/$version/vmlinuz
mkdir -p guest/proc guest/sys guest/dev guest/tmp

truncate -s 64M disk
unpacked qemu usr/sbin/mke2fs -q -t ext4 -b 4096 disk
cp "kernel/usr/lib/modules/$version/kernel/drivers/block/virtio_blk.ko.xz" guest/

gcc -O1 -Wall -static -o guest/init -x c - <<'END'
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/mman.h>
#include <linux/module.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SIZE (16L << 20)
#define PAGE (SIZE / 2 + 4096)
#ifndef SYS_cachestat
#define SYS_cachestat 451
#endif

static void must(int ok, const char *what)
{
	if (!ok)
		perror(what);
}

static void mount_disk(void)
{
	int module = open("/virtio_blk.ko.xz", O_RDONLY);

	mount("proc", "/proc", "proc", 0, NULL);
	mount("sysfs", "/sys", "sysfs", 0, NULL);
	mount("devtmpfs", "/dev", "devtmpfs", 0, NULL);
	must(!syscall(SYS_finit_module, module, "", MODULE_INIT_COMPRESSED_FILE),
	     "virtio_blk");
	for (int i = 0; i < 100 && access("/dev/vda", F_OK); i++)
		usleep(100000);
	must(!mount("/dev/vda", "/tmp", "ext4", 0, NULL), "mount");
}

/* how many pages of this range of a file are in the page cache */
static long cached(int file, uint64_t from, uint64_t bytes)
{
	uint64_t range[2] = { from, bytes }, state[5] = { -1UL };

	must(!syscall(SYS_cachestat, file, range, state, 0), "cachestat");
	return state[0];
}

/* read all in such pieces, drop one page; return how many are left of it */
static long drop_after(int file, size_t piece)
{
	static char buffer[1 << 20];
	int caches = open("/proc/sys/vm/drop_caches", O_WRONLY);

	must(write(caches, "3", 1) == 1, "drop_caches");
	close(caches);
	posix_fadvise(file, 0, 0,
		      piece == 4096 ? POSIX_FADV_RANDOM : POSIX_FADV_NORMAL);
	for (long at = 0; at < SIZE; at += piece)
		must(pread(file, buffer, piece, at) == (ssize_t)piece, "pread");
	long before = cached(file, PAGE, 4096);
	int result = posix_fadvise(file, PAGE, 4096, POSIX_FADV_DONTNEED);
	long after = cached(file, PAGE, 4096);
	printf("read in pieces of %zu KiB: the page is cached %ld, DONTNEED %d, then %ld\n",
	       piece >> 10, before, result, after);
	return after;
}

int main(void)
{
	static char buffer[SIZE];

	mount_disk();
	int file = open("/tmp/file", O_RDWR | O_CREAT, 0600);
	memset(buffer, 1, SIZE);
	must(write(file, buffer, SIZE) == SIZE, "write");
	sync();
	if (!drop_after(file, 4096) && drop_after(file, 1 << 20) == 1)
		puts("as described");
	fflush(stdout);
	reboot(RB_POWER_OFF);
}
END

guest "$kernel" "" -m 1G -drive file=disk,format=raw,if=virtio || :

grep -Fxq "as described" seen || {
	echo "changed: the guest saw something else"
	exit 1
}
