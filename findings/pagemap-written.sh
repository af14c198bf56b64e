#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Runs: Linux 6.12.117 (linux-image-6.12.117+deb13-cloud-amd64 6.12.117-1 of Debian 13)
# and Linux 7.3.4 (linux-binary-7.3.4+deb13-cloud-amd64 7.3.4-1~bpo13+1 of Debian's
# trixie-backports) in QEMU 10.0.13 (qemu-system-x86 1:10.0.13+ds-0+deb13u1), emulated
# by TCG
#
# Guess: The ioctl PAGEMAP_SCAN finds the same pages by PAGE_IS_WRITTEN on both: all
# that the program has just written to.
#
# Behaviour: 6.12 finds them all, 7.3 finds none. In memory that is not registered with
# userfaultfd for write protection, the older kernel calls every present page written,
# the newer one no page. A tool that finds a process's written pages in this way gets an
# empty list on the newer kernel, and no error.
#
# Seen:
#   Linux 6.12.117: of 256 pages written to, 256 PAGE_IS_PRESENT, 256 PAGE_IS_WRITTEN
#   Linux 7.3.4: of 256 pages written to, 256 PAGE_IS_PRESENT, 0 PAGE_IS_WRITTEN
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
fetch old trixie download linux-image-6.12.117+deb13-cloud-amd64=6.12.117-1

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
#include <sys/utsname.h>
#include <unistd.h>

#define PAGES 256
#define WRITTEN 2
#define PRESENT 8

struct range {
	uint64_t start, end, categories;
};

/* the argument of the ioctl PAGEMAP_SCAN, which older headers lack */
struct scan {
	uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages;
	uint64_t category_inverted, category_mask, category_anyof_mask, return_mask;
};

static long pages_with(int pagemap, char *memory, uint64_t category)
{
	struct range ranges[PAGES] = { 0 };
	struct scan scan = {
		.size = sizeof(scan),
		.start = (uintptr_t)memory,
		.end = (uintptr_t)memory + PAGES * 4096,
		.vec = (uintptr_t)ranges,
		.vec_len = PAGES,
		.category_mask = category,
		.return_mask = category,
	};
	int found = ioctl(pagemap, _IOWR('f', 16, struct scan), &scan);
	long pages = found < 0 ? found : 0;

	for (int i = 0; i < found; i++)
		pages += (ranges[i].end - ranges[i].start) / 4096;
	return pages;
}

int main(void)
{
	struct utsname name;
	char *memory = mmap(NULL, PAGES * 4096, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	mount("proc", "/proc", "proc", 0, NULL);
	memset(memory, 1, PAGES * 4096);
	int pagemap = open("/proc/self/pagemap", O_RDONLY);
	uname(&name);
	printf("Linux %.*s: of %d pages written to, %ld PAGE_IS_PRESENT, %ld PAGE_IS_WRITTEN\n",
	       (int)strcspn(name.release, "+"), name.release, PAGES, pages_with(pagemap, memory, PRESENT),
	       pages_with(pagemap, memory, WRITTEN));
	fflush(stdout);
	reboot(RB_POWER_OFF);
}
END

guest old/boot/vmlinuz-6.12.117+deb13-cloud-amd64 "" -m 1G || :
cp seen first
guest "$kernel" "" -m 1G || :

pages="of 256 pages written to, 256 PAGE_IS_PRESENT"
if ! grep -Fxq "Linux 6.12.117: $pages, 256 PAGE_IS_WRITTEN" first ||
	! grep -Fxq "Linux 7.3.4: $pages, 0 PAGE_IS_WRITTEN" seen; then
	echo "changed: the two kernels report other pages"
	exit 1
fi
echo "as described"
