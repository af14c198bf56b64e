#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Runs: hugeadm of libhugetlbfs 2.24 (libhugetlbfs-bin 2.24-1+b1 of Debian 13) on Linux
# 7.3.4 (linux-binary-7.3.4+deb13-cloud-amd64 7.3.4-1~bpo13+1 of Debian's
# trixie-backports) in QEMU 10.0.13 (qemu-system-x86 1:10.0.13+ds-0+deb13u1), emulated
# by TCG
#
# Guess: hugeadm --pool-pages-min 2MB:100000 on a machine of 1 GiB fails, with an exit
# status other than 0, and leaves the rest of the settings as they were; lowering the
# minimum to 8 pages afterwards restores a pool of 8.
#
# Behaviour: It warns and exits 0, with some 400 pages, and sets nr_overcommit_hugepages
# to all that was not to be had. Lowering the minimum does not undo that: programs may
# go on taking huge pages beyond the pool, up to 100000 together, until all memory is
# gone. --pool-pages-max 2MB:8 ends it.
#
# Seen:
#   --pool-pages-min 2MB:8: exit status 0, pool 8, up to 0 more
#   --pool-pages-min 2MB:100000: exit status 0, pool 436, up to 99564 more
#   --pool-pages-min 2MB:8: exit status 0, pool 8, up to 99992 more
#   --pool-pages-max 2MB:8: exit status 0, pool 8, up to 0 more
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
	libhugetlbfs-bin=2.24-1+b1
fetch kernel "trixie trixie-backports" download \
	linux-binary-$version=7.3.4-1~bpo13+1
kernel=kernel/usr/lib/modules/$version/vmlinuz
mkdir -p guest/proc guest/sys guest/dev guest/tmp

mkdir -p guest/lib64 guest/usr/lib/x86_64-linux-gnu
cp -L qemu/usr/lib/x86_64-linux-gnu/libc.so.6 guest/usr/lib/x86_64-linux-gnu
cp -L qemu/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2 guest/lib64
cp qemu/usr/bin/hugeadm guest/

gcc -O1 -Wall -static -o guest/init -x c - <<'END'
#include <fcntl.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/wait.h>
#include <unistd.h>

static long value_of(const char *path)
{
	long value = -1;
	FILE *file = fopen(path, "r");

	if (fscanf(file, "%ld", &value) != 1)
		perror(path);
	fclose(file);
	return value;
}

/* run hugeadm; print and return how many pages may come beyond the pool, -1 if it failed */
static long set(char *option, char *pages)
{
	char *arguments[] = { "hugeadm", option, pages, NULL };
	int status;

	if (!fork()) {
		dup2(open("/dev/null", O_WRONLY), 2);
		execv("/hugeadm", arguments);
		_exit(255);
	}
	wait(&status);
	long extra = value_of("/proc/sys/vm/nr_overcommit_hugepages");
	printf("%s %s: exit status %d, pool %ld, up to %ld more\n", option, pages,
	       WEXITSTATUS(status), value_of("/proc/sys/vm/nr_hugepages"), extra);
	return status ? -1 : extra;
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	mount("proc", "/proc", "proc", 0, NULL);
	mount("sysfs", "/sys", "sysfs", 0, NULL);
	mount("devtmpfs", "/dev", "devtmpfs", 0, NULL);
	long before = set("--pool-pages-min", "2MB:8");
	long big = set("--pool-pages-min", "2MB:100000");
	long lowered = set("--pool-pages-min", "2MB:8");
	long capped = set("--pool-pages-max", "2MB:8");
	if (before == 0 && big > 99000 && lowered == 99992 && capped == 0)
		puts("as described");
	reboot(RB_POWER_OFF);
}
END

guest "$kernel" "" -m 1G || :

grep -Fxq "as described" seen || {
	echo "changed: the guest saw something else"
	exit 1
}
