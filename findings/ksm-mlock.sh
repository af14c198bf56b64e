#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Runs: Linux 7.3.4 (linux-binary-7.3.4+deb13-cloud-amd64 7.3.4-1~bpo13+1 of Debian's
# trixie-backports) in QEMU 10.0.13 (qemu-system-x86 1:10.0.13+ds-0+deb13u1), emulated
# by TCG
#
# Guess: KSM leaves memory alone that is locked by mlock(): who locks memory wants no
# faults, and a page that is merged costs a fault and a copy at the next write.
#
# Behaviour: It merges it as any other. Of 1024 locked pages with the same contents one
# is left, VmLck goes on saying 4096 kB, and writing to the locked memory takes a fault
# for every page. QEMU, too, makes a guest's memory mergeable with -overcommit
# mem-lock=on unless -machine mem-merge=off is given.
#
# Seen:
#   locked: VmLck 4096 kB, Pss 4096 kB; writing takes 0 faults
#   after KSM: VmLck 4096 kB, Pss 16 kB; writing takes 1024 faults
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
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <unistd.h>

#define PAGES 1024L
#define KSM "/sys/kernel/mm/ksm/"

static void put(const char *path, const char *text)
{
	int file = open(path, O_WRONLY);

	if (write(file, text, strlen(text)) < 0)
		perror(path);
	close(file);
}

static long locked(void)
{
	char line[200];
	long size = -1;
	FILE *file = fopen("/proc/self/status", "r");

	while (fgets(line, sizeof(line), file))
		sscanf(line, "VmLck: %ld", &size);
	fclose(file);
	return size;
}

/* Pss of the mapping that is locked */
static long share(void)
{
	char line[200];
	long size = -1, pss = -1;
	FILE *file = fopen("/proc/self/smaps", "r");

	while (fgets(line, sizeof(line), file)) {
		sscanf(line, "Pss: %ld", &size);
		if (!strncmp(line, "VmFlags:", 8) && strstr(line, " lo") && strstr(line, " mg"))
			pss = size;
	}
	fclose(file);
	return pss;
}

static long write_all(const char *when, char *memory)
{
	struct rusage before, after;
	long lock = locked(), pss = share();

	getrusage(RUSAGE_SELF, &before);
	for (long i = 0; i < PAGES; i++)
		((volatile char *)memory)[i * 4096] = 7;
	getrusage(RUSAGE_SELF, &after);
	printf("%s: VmLck %ld kB, Pss %ld kB; writing takes %ld faults\n", when, lock, pss,
	       after.ru_minflt - before.ru_minflt);
	return after.ru_minflt - before.ru_minflt;
}

int main(void)
{
	mount("proc", "/proc", "proc", 0, NULL);
	mount("sysfs", "/sys", "sysfs", 0, NULL);
	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	char *memory = mmap(NULL, PAGES * 4096, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(memory, 7, PAGES * 4096);
	if (mlock(memory, PAGES * 4096) || madvise(memory, PAGES * 4096, MADV_MERGEABLE))
		perror("mlock, madvise");
	long before = write_all("locked", memory);
	put(KSM "pages_to_scan", "10000");
	put(KSM "run", "1");
	sleep(4);
	put(KSM "run", "0");
	long after = write_all("after KSM", memory);
	if (before == 0 && after >= PAGES - 8 && locked() == PAGES * 4)
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
