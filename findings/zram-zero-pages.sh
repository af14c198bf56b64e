#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Runs: Linux 7.3.4 (linux-binary-7.3.4+deb13-cloud-amd64 7.3.4-1~bpo13+1 of Debian's
# trixie-backports) in QEMU 10.0.13 (qemu-system-x86 1:10.0.13+ds-0+deb13u1), emulated
# by TCG, with zram
#
# Guess: zram's same_pages, documented as the pages of the same element, counts
# swapped-out pages of zeros: 16384 for 64 MiB.
#
# Behaviour: zram never gets them: swap notes in a bitmap of its own that a page is
# zero, and writes nothing. VmSwap has them all, and they take 64 MiB of the device's
# slots, but in mm_stat there is no trace of them, neither in same_pages nor in
# orig_data_size. Pages of 0xff reach zram and are counted.
#
# Seen:
#   pages of 0x00: VmSwap 65536 kB; zram's orig_data_size 4096, same_pages 0
#   pages of 0xff: VmSwap 65536 kB; zram's orig_data_size 67112960, same_pages 16384
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
	linux-binary-$version=7.3.4-1~bpo13+1 \
	linux-modules-$version=7.3.4-1~bpo13+1
kernel=kernel/usr/lib/modules/$version/vmlinuz
mkdir -p guest/proc guest/sys guest/dev guest/tmp

for module in lib/lz4/lz4hc_compress crypto/lz4hc drivers/block/zram/zram; do
	cp "kernel/usr/lib/modules/$version/kernel/$module.ko.xz" guest/
done

gcc -O1 -Wall -static -o guest/init -x c - <<'END'
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/mman.h>
#include <linux/module.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/reboot.h>
#include <sys/swap.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SIZE (64L << 20)
#define DISK (256L << 20)

static void must(int ok, const char *what)
{
	if (!ok)
		perror(what);
}

static void load(const char *path)
{
	must(!syscall(SYS_finit_module, open(path, O_RDONLY), "",
		      MODULE_INIT_COMPRESSED_FILE), path);
}

static void swap_to_zram(void)
{
	static uint32_t header[1024]; /* version, last page, bad pages at 1024 bytes */

	load("/lz4hc_compress.ko.xz");
	load("/lz4hc.ko.xz");
	load("/zram.ko.xz");
	int size = open("/sys/block/zram0/disksize", O_WRONLY);
	must(write(size, "256M", 4) == 4, "disksize");
	header[256] = 1;
	header[257] = DISK / 4096 - 1;
	memcpy((char *)header + 4086, "SWAPSPACE2", 10);
	int device = open("/dev/zram0", O_WRONLY);
	must(write(device, header, 4096) == 4096, "header");
	close(device);
	must(!swapon("/dev/zram0", 0), "swapon");
}

/* swap out memory of such bytes; return same_pages of the device */
static long swap_out(int fill, long *swapped)
{
	long value[8] = { 0 };
	char line[200];
	char *memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memset(memory, fill, SIZE);
	must(!madvise(memory, SIZE, MADV_PAGEOUT), "madvise");
	FILE *status = fopen("/proc/self/status", "r");
	while (fgets(line, sizeof(line), status))
		sscanf(line, "VmSwap: %ld", swapped);
	fclose(status);
	FILE *stat = fopen("/sys/block/zram0/mm_stat", "r");
	for (int i = 0; i < 8; i++)
		must(fscanf(stat, "%ld", &value[i]) == 1, "mm_stat");
	fclose(stat);
	printf("pages of 0x%02x: VmSwap %ld kB; zram's orig_data_size %ld, same_pages %ld\n",
	       fill, *swapped, value[0], value[5]);
	munmap(memory, SIZE);
	return value[5];
}

int main(void)
{
	long zeros_out, ones_out;

	mount("proc", "/proc", "proc", 0, NULL);
	mount("sysfs", "/sys", "sysfs", 0, NULL);
	mount("devtmpfs", "/dev", "devtmpfs", 0, NULL);
	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	swap_to_zram();
	long zeros = swap_out(0, &zeros_out), ones = swap_out(0xff, &ones_out);
	if (zeros == 0 && ones == SIZE / 4096 && zeros_out == ones_out &&
	    zeros_out == SIZE / 1024)
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
