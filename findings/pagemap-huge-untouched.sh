#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Runs: Linux 7.3.4 (linux-binary-7.3.4+deb13-cloud-amd64 7.3.4-1~bpo13+1 of Debian's
# trixie-backports) in QEMU 10.0.13 (qemu-system-x86 1:10.0.13+ds-0+deb13u1), emulated
# by TCG
#
# Guess: The ioctl PAGEMAP_SCAN with PAGE_IS_HUGE finds pages that are there and are
# huge: of four huge pages of hugetlb of which one was touched, that one, as of four
# transparent ones.
#
# Behaviour: In a mapping of hugetlb it finds all four, also those that were never
# touched and for which the pool has no page. Who sums up huge pages this way counts
# what does not exist; PAGE_IS_PRESENT must be asked for as well.
#
# Seen:
#   transparent: of 2048 pages, 512 PAGE_IS_HUGE, 512 PAGE_IS_PRESENT
#   hugetlb: of 2048 pages, 2048 PAGE_IS_HUGE, 512 PAGE_IS_PRESENT
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
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <unistd.h>

#define HUGE (2UL << 20)
#define SIZE (4 * HUGE)
#define PRESENT 8
#define IS_HUGE 64
#define RANGES 16

struct range {
	uint64_t start, end, categories;
};

/* the argument of the ioctl PAGEMAP_SCAN, which older headers lack */
struct scan {
	uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages;
	uint64_t category_inverted, category_mask, category_anyof_mask, return_mask;
};

static long count(char *memory, uint64_t category)
{
	struct range ranges[RANGES] = { 0 };
	struct scan scan = {
		.size = sizeof(scan),
		.start = (uintptr_t)memory,
		.end = (uintptr_t)memory + SIZE,
		.vec = (uintptr_t)ranges,
		.vec_len = RANGES,
		.category_mask = category,
		.return_mask = category,
	};
	int pagemap = open("/proc/self/pagemap", O_RDONLY);
	int found = ioctl(pagemap, _IOWR('f', 16, struct scan), &scan);
	long pages = found < 0 ? found : 0;

	for (int i = 0; i < found; i++)
		pages += (ranges[i].end - ranges[i].start) / 4096;
	close(pagemap);
	return pages;
}

/* touch the first of four huge pages; return how many small pages are called huge */
static long touch_one(const char *name, int flags)
{
	char *all = mmap(NULL, SIZE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);

	if (all == MAP_FAILED)
		perror("mmap");
	all[0] = 1;
	long huge = count(all, IS_HUGE), present = count(all, PRESENT);
	printf("%s: of %lu pages, %ld PAGE_IS_HUGE, %ld PAGE_IS_PRESENT\n", name, SIZE / 4096,
	       huge, present);
	munmap(all, SIZE);
	return present == 512 ? huge : -1;
}

int main(void)
{
	mount("proc", "/proc", "proc", 0, NULL);
	mount("sysfs", "/sys", "sysfs", 0, NULL);
	FILE *mode = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "w");
	fputs("always", mode);
	fclose(mode);
	FILE *pool = fopen("/proc/sys/vm/nr_hugepages", "w");
	fputs("1", pool);
	fclose(pool);
	long transparent = touch_one("transparent", 0), huge = touch_one("hugetlb", MAP_HUGETLB);
	if (transparent == 512 && huge == SIZE / 4096)
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
