#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Runs: tbbmalloc of oneTBB 2022.1.0 (libtbbmalloc2 2022.1.0-1+deb13u1 of Debian 13) with
# glibc 2.41 of Debian 13, on Linux 7.3.4 (linux-binary-7.3.4+deb13-cloud-amd64
# 7.3.4-1~bpo13+1 of Debian's trixie-backports) in QEMU 10.0.13 (qemu-system-x86
# 1:10.0.13+ds-0+deb13u1), emulated by TCG
#
# Guess: Where transparent huge pages are for those that ask (mode madvise),
# TBB_MALLOC_USE_HUGE_PAGES=1 makes tbbmalloc ask: 64 MiB lie in huge pages.
#
# Behaviour: None does, though TBB_VERSION=1 makes it say "huge pages requested": it looks
# for transparent huge pages in mode always only, where a program has them without
# asking. glibc's malloc() asks in mode madvise, by its tunable.
#
# Seen:
#   madvise, TBB_MALLOC_USE_HUGE_PAGES=0: 0 MiB in huge pages
#   madvise, TBB_MALLOC_USE_HUGE_PAGES=1: 0 MiB in huge pages
#   always, TBB_MALLOC_USE_HUGE_PAGES=0: 64 MiB in huge pages
#   always, TBB_MALLOC_USE_HUGE_PAGES=1: 74 MiB in huge pages
#   madvise, GLIBC_TUNABLES=glibc.malloc.hugetlb=1: 62 MiB in huge pages
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
	libtbbmalloc2=2022.1.0-1+deb13u1
fetch kernel "trixie trixie-backports" download \
	linux-binary-$version=7.3.4-1~bpo13+1
kernel=kernel/usr/lib/modules/$version/vmlinuz
mkdir -p guest/proc guest/sys guest/lib64 guest/usr/lib/x86_64-linux-gnu
for library in libc.so.6 libm.so.6 libgcc_s.so.1 libstdc++.so.6 libtbbmalloc.so.2 \
	libtbbmalloc_proxy.so.2; do
	cp -L "qemu/usr/lib/x86_64-linux-gnu/$library" guest/usr/lib/x86_64-linux-gnu
done
cp -L qemu/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2 guest/lib64

gcc -O1 -Wall -o guest/heap -x c - <<'END'
#include <stdio.h>
#include <stdlib.h>

#define SIZE (64L << 20)

/* the exit status: how many MiB of the process are in transparent huge pages */
int main(void)
{
	volatile char *memory = malloc(SIZE);
	char line[200];
	long kib = 0;

	for (long at = 0; at < SIZE; at += 4096)
		memory[at] = 1;
	FILE *maps = fopen("/proc/self/smaps_rollup", "r");
	while (fgets(line, sizeof(line), maps))
		sscanf(line, "AnonHugePages: %ld", &kib);
	return kib >> 10;
}
END

gcc -O1 -Wall -static -o guest/init -x c - <<'END'
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIBRARIES "/usr/lib/x86_64-linux-gnu/"

/* return how many MiB are in huge pages, in this mode and with this variable */
static int huge(const char *mode, const char *library, const char *name, const char *value)
{
	FILE *enabled = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "w");
	int status;

	fputs(mode, enabled);
	fclose(enabled);
	if (!fork()) {
		setenv("LD_PRELOAD", library, 1);
		setenv(name, value, 1);
		execl("/heap", "/heap", NULL);
		_exit(255);
	}
	wait(&status);
	printf("%s, %s=%s: %d MiB in huge pages\n", mode, name, value,
	       WEXITSTATUS(status));
	return WEXITSTATUS(status);
}

int main(void)
{
	const char *tbb = LIBRARIES "libtbbmalloc_proxy.so.2";
	const char *name = "TBB_MALLOC_USE_HUGE_PAGES";

	mount("proc", "/proc", "proc", 0, NULL);
	mount("sysfs", "/sys", "sysfs", 0, NULL);
	int off = huge("madvise", tbb, name, "0");
	int on = huge("madvise", tbb, name, "1");
	int always_off = huge("always", tbb, name, "0");
	int always_on = huge("always", tbb, name, "1");
	int glibc = huge("madvise", "", "GLIBC_TUNABLES", "glibc.malloc.hugetlb=1");
	if (!off && !on && always_off > 60 && always_on > 60 && glibc > 60 && glibc < 255)
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
