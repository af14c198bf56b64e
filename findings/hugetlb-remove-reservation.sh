#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Runs: Linux 7.3.4 (linux-binary-7.3.4+deb13-cloud-amd64 7.3.4-1~bpo13+1 of Debian's
# trixie-backports) in QEMU 10.0.13 (qemu-system-x86 1:10.0.13+ds-0+deb13u1), emulated
# by TCG
#
# Guess: A mapping of hugetlb has its pages reserved as long as it exists. What is given
# back by MADV_REMOVE (a shared mapping) is reserved again, as what is given back by
# MADV_DONTNEED (a private one) is.
#
# Behaviour: MADV_REMOVE gives up the reservation too, and no figure of the process says
# so. Another program can map all of the pool then, and the first one, whose mapping is
# still there, cannot populate it: EFAULT. (Touching it would be SIGBUS.)
#
# Seen:
#   private, MADV_DONTNEED: 8 of 8 pages free, 8 reserved
#   another mapping of 8 pages: Cannot allocate memory
#   MADV_POPULATE_WRITE: Success
#   shared, MADV_REMOVE: 8 of 8 pages free, 0 reserved
#   another mapping of 8 pages: Success
#   MADV_POPULATE_WRITE: Bad address
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
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#define PAGES 8
#define SIZE (PAGES * (2UL << 20))

static int meminfo(const char *name)
{
	char line[200];
	int value = -1;
	FILE *file = fopen("/proc/meminfo", "r");

	while (fgets(line, sizeof(line), file))
		if (!strncmp(line, name, strlen(name)))
			sscanf(line + strlen(name), ": %d", &value);
	fclose(file);
	return value;
}

static void *map_pool(int flags)
{
	return mmap(NULL, SIZE, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS | MAP_HUGETLB,
		    -1, 0);
}

/* give the pool's pages back; return how many are reserved, or -1 if that is no use */
static int reserved_after(const char *name, int flags, int advice)
{
	char *memory = map_pool(flags);

	if (memory == MAP_FAILED)
		return -1;
	memset(memory, 1, SIZE);
	if (madvise(memory, SIZE, advice))
		perror(name);
	int reserved = meminfo("HugePages_Rsvd");
	printf("%s: %d of %d pages free, %d reserved\n", name, meminfo("HugePages_Free"), PAGES,
	       reserved);
	errno = 0;
	void *other = map_pool(MAP_PRIVATE);
	printf("another mapping of %d pages: %s\n", PAGES, strerror(errno));
	int failed = madvise(memory, SIZE, MADV_POPULATE_WRITE);
	printf("MADV_POPULATE_WRITE: %s\n", strerror(failed ? errno : 0));
	munmap(memory, SIZE);
	if (other != MAP_FAILED)
		munmap(other, SIZE);
	return (other == MAP_FAILED) == !failed ? reserved : -1;
}

int main(void)
{
	mount("proc", "/proc", "proc", 0, NULL);
	FILE *pool = fopen("/proc/sys/vm/nr_hugepages", "w");
	fprintf(pool, "%d", PAGES);
	fclose(pool);
	int private = reserved_after("private, MADV_DONTNEED", MAP_PRIVATE, MADV_DONTNEED);
	int shared = reserved_after("shared, MADV_REMOVE", MAP_SHARED, MADV_REMOVE);
	if (private == PAGES && shared == 0)
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
