#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Runs: Linux 7.3.4 (linux-binary-7.3.4+deb13-cloud-amd64 7.3.4-1~bpo13+1 of Debian's
# trixie-backports) in QEMU 10.0.13 (qemu-system-x86 1:10.0.13+ds-0+deb13u1), emulated
# by TCG
#
# Guess: When one page of 4 KiB breaks inside a huge page of hugetlb, the pool loses the
# huge page, and once the program is gone, its 511 good pages are ordinary memory again;
# the same for anonymous memory and for a memfd. HardwareCorrupted in /proc/meminfo says
# what is lost.
#
# Behaviour: Of anonymous memory only: there 4 KiB are lost. A huge page of a memfd
# stays broken as a whole after the last user has closed it: the pool can no longer be
# emptied, 2 MiB serve nobody until the machine restarts, and HardwareCorrupted says 4
# kB in both cases. (QEMU with memory-backend-memfd,hugetlb=on has such memory.)
#
# Seen:
#   anonymous: HardwareCorrupted +4 kB, 1 of 2 pages in the pool; set to 0: 0
#   memfd: HardwareCorrupted +4 kB, 2 of 2 pages in the pool; set to 0: 1
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
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/wait.h>
#include <unistd.h>

#define HUGE (2UL << 20)

static long meminfo(const char *name)
{
	char line[200];
	long value = -1;
	FILE *file = fopen("/proc/meminfo", "r");

	while (fgets(line, sizeof(line), file))
		if (!strncmp(line, name, strlen(name)))
			sscanf(line + strlen(name), ": %ld", &value);
	fclose(file);
	return value;
}

static void set_pool(int pages)
{
	FILE *pool = fopen("/proc/sys/vm/nr_hugepages", "w");

	fprintf(pool, "%d", pages);
	fclose(pool);
}

/* a process has a huge page, a page of which breaks; it gets a signal and ends */
static void lose_page(int use_file)
{
	if (fork()) {
		wait(NULL);
		return;
	}
	int file = use_file ? memfd_create("memory", MFD_HUGETLB) : -1;
	if (use_file && ftruncate(file, HUGE))
		perror("ftruncate");
	char *memory = mmap(NULL, HUGE, PROT_READ | PROT_WRITE,
			    use_file ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB,
			    file, 0);
	memset(memory, 1, HUGE);
	madvise(memory + 4096, 4096, MADV_HWPOISON);
	_exit(0);
}

/* return how many huge pages cannot be given back afterwards */
static long try(const char *name, int use_file)
{
	long before = meminfo("HardwareCorrupted");

	set_pool(2);
	lose_page(use_file);
	long broken = meminfo("HardwareCorrupted") - before, pages = meminfo("HugePages_Total");
	set_pool(0);
	long left = meminfo("HugePages_Total");
	printf("%s: HardwareCorrupted +%ld kB, %ld of 2 pages in the pool; set to 0: %ld\n", name,
	       broken, pages, left);
	return broken == 4 ? left : -1;
}

int main(void)
{
	setvbuf(stdout, NULL, _IONBF, 0);
	mount("proc", "/proc", "proc", 0, NULL);
	mount("sysfs", "/sys", "sysfs", 0, NULL);
	long anonymous = try("anonymous", 0), file = try("memfd", 1);
	if (anonymous == 0 && file == 1)
		puts("as described");
	reboot(RB_POWER_OFF);
}
END

guest "$kernel" "" -m 1G || :

grep -Fxq "as described" seen || {
	echo "changed: the guest saw something else"
	exit 1
}
