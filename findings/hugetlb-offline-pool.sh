#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Runs: Linux 7.3.4 (linux-binary-7.3.4+deb13-cloud-amd64 7.3.4-1~bpo13+1 of Debian's
# trixie-backports) in QEMU 10.0.13 (qemu-system-x86 1:10.0.13+ds-0+deb13u1), emulated
# by TCG, with a DIMM of 512 MiB
#
# Guess: Offlining memory moves the huge pages of a hugetlb pool that lie there, as it moves
# other pages, if the rest of the memory has room for them: the pool keeps its 200.
#
# Behaviour: Only those in use are moved. Those that are free are given up, without a
# word: the pool is left with 20, while 800 MiB are free elsewhere. Onlining the memory
# again does not bring them back.
#
# Seen:
#   before: 200 huge pages, 180 of them free; 965 MiB of 1408 free otherwise
#   512 MiB offline: 20 huge pages, 0 of them free; 814 MiB of 896 free otherwise
#   online again: 20 huge pages, 0 of them free; 1326 MiB of 1408 free otherwise
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
#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/reboot.h>
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

static long print_pool(const char *when)
{
	long pages = meminfo("HugePages_Total");

	printf("%s: %ld huge pages, %ld of them free; %ld MiB of %ld free otherwise\n", when,
	       pages, meminfo("HugePages_Free"), meminfo("MemFree") >> 10,
	       meminfo("MemTotal") >> 10);
	return pages;
}

/* set the state of all the DIMM's blocks; return how many have it then */
static int set_blocks(const char *state)
{
	glob_t blocks;
	char now[20] = "";
	int count = 0;

	glob("/sys/devices/system/memory/memory[3-9][0-9]/state", 0, NULL, &blocks);
	for (size_t i = 0; i < blocks.gl_pathc; i++) {
		FILE *file = fopen(blocks.gl_pathv[i], "r+");
		fputs(state, file);
		rewind(file);
		count += fgets(now, sizeof(now), file) &&
			 !strncmp(now, state, strlen(state));
		fclose(file);
	}
	return count;
}

int main(void)
{
	mount("proc", "/proc", "proc", 0, NULL);
	mount("sysfs", "/sys", "sysfs", 0, NULL);
	FILE *pool = fopen("/proc/sys/vm/nr_hugepages", "w");
	fputs("200", pool);
	fclose(pool);
	char *memory = mmap(NULL, 20 * HUGE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | MAP_POPULATE, -1, 0);
	if (memory == MAP_FAILED)
		perror("mmap");
	long before = print_pool("before");
	int offline = set_blocks("offline");
	long after = print_pool("512 MiB offline");
	long left = meminfo("MemFree") >> 10;
	int online = set_blocks("online");
	long at_end = print_pool("online again");
	if (before == 200 && offline == 4 && after == 20 && left > 400 && online == 4 &&
	    at_end == 20)
		puts("as described");
	fflush(stdout);
	reboot(RB_POWER_OFF);
}
END

guest "$kernel" "memhp_default_state=online_movable" -m 1G,slots=1,maxmem=4G \
	-object memory-backend-ram,id=memory,size=512M -device pc-dimm,memdev=memory || :

grep -Fxq "as described" seen || {
	echo "changed: the guest saw something else"
	exit 1
}
