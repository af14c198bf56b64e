#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Runs: libhugetlbfs 2.24 (libhugetlbfs-bin and -dev 2.24-1+b1 of Debian 13) with glibc
# 2.41 of Debian 13, on Linux 7.3.4 (linux-binary-7.3.4+deb13-cloud-amd64
# 7.3.4-1~bpo13+1 of Debian's trixie-backports) in QEMU 10.0.13 (qemu-system-x86
# 1:10.0.13+ds-0+deb13u1), emulated by TCG
#
# Guess: hugectl --heap PROGRAM puts the program's malloc() on huge pages, or says that
# it cannot.
#
# Behaviour: It does nothing and says nothing, with exit status 0 and a pool of 64 free
# pages. It relies on a hook of malloc() that glibc dropped in 2.34; only the library's
# informational messages, off by default, mention that. glibc's own tunable works.
#
# Seen:
#   /hugectl --heap:
#   32 MiB of heap: 0 of 64 huge pages in use
#   exit status 0
#   GLIBC_TUNABLES=glibc.malloc.hugetlb=2:
#   32 MiB of heap: 16 of 64 huge pages in use
#   exit status 16
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
	libhugetlbfs-bin=2.24-1+b1 libhugetlbfs-dev=2.24-1+b1
fetch kernel "trixie trixie-backports" download \
	linux-binary-$version=7.3.4-1~bpo13+1
kernel=kernel/usr/lib/modules/$version/vmlinuz
mkdir -p guest/proc guest/sys guest/dev guest/tmp

mkdir -p guest/lib64 guest/usr/lib/x86_64-linux-gnu
for library in libc.so.6 libhugetlbfs.so; do
	cp -L "qemu/usr/lib/x86_64-linux-gnu/$library" guest/usr/lib/x86_64-linux-gnu
done
cp -L qemu/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2 guest/lib64
cp qemu/usr/bin/hugectl guest/

gcc -O1 -Wall  -o guest/heap -x c - <<'END'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* the exit status: how many huge pages of the pool 32 MiB of heap take */
int main(void)
{
	char line[200];
	int pages = 0, left = 0;

	for (int i = 0; i < 1000; i++)
		memset(malloc(32 << 10), 1, 32 << 10);
	FILE *meminfo = fopen("/proc/meminfo", "r");
	while (fgets(line, sizeof(line), meminfo)) {
		sscanf(line, "HugePages_Total: %d", &pages);
		sscanf(line, "HugePages_Free: %d", &left);
	}
	printf("32 MiB of heap: %d of %d huge pages in use\n", pages - left, pages);
	return pages - left;
}
END

gcc -O1 -Wall -static -o guest/init -x c - <<'END'
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/wait.h>
#include <unistd.h>

static int run(const char *name, const char *value, char **argv)
{
	int status;

	printf("%s%s%s:\n", name ? name : argv[0], name ? "=" : " ", name ? value : argv[1]);
	fflush(stdout);
	if (!fork()) {
		if (name)
			setenv(name, value, 1);
		execv(argv[0], argv);
		_exit(255);
	}
	wait(&status);
	printf("exit status %d\n", WEXITSTATUS(status));
	return WEXITSTATUS(status);
}

int main(void)
{
	char *hugectl[] = { "/hugectl", "--heap", "/heap", NULL };

	mount("proc", "/proc", "proc", 0, NULL);
	mount("sysfs", "/sys", "sysfs", 0, NULL);
	mount("hugetlbfs", "/tmp", "hugetlbfs", 0, NULL);
	FILE *pool = fopen("/proc/sys/vm/nr_hugepages", "w");
	fputs("64", pool);
	fclose(pool);
	int by_hugectl = run(NULL, NULL, hugectl);
	int by_glibc = run("GLIBC_TUNABLES", "glibc.malloc.hugetlb=2", hugectl + 2);
	if (by_hugectl == 0 && by_glibc > 10 && by_glibc < 65)
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
