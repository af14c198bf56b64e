#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Runs: vmtouch 1.3.1 (1.3.1-3 of Debian 13) and fincore of util-linux 2.41.5
# (util-linux-extra 2.41.5-0+deb13u1), on Linux 7.3.4
# (linux-binary-7.3.4+deb13-cloud-amd64 7.3.4-1~bpo13+1 of Debian's trixie-backports) in
# QEMU 10.0.13 (qemu-system-x86 1:10.0.13+ds-0+deb13u1), emulated by TCG
#
# Guess: Both say how much of a readable file is in the page cache, whoever asks. Of a
# file of root's, mode 644, that nobody has read since it was mounted: none.
#
# Behaviour: To root they say none; to another user, all of it. mincore() calls every
# page resident if the caller could not write to the file, so that nobody can watch what
# others read, and vmtouch passes that on as 100 %. fincore asks cachestat() first,
# which refuses such a user with EPERM, says so, and then shows what mincore() made up.
#
# Seen:
#   vmtouch, user 0:   Resident Pages: 0/2048  0/8M  0%
#   fincore, user 0:  0B     0   8M /tmp/file
#   vmtouch, user 65534:   Resident Pages: 2048/2048  8M/8M  100%
#   fincore: failed to do cachestat: /tmp/file: Operation not permitted
#   fincore, user 65534:  8M  2048   8M /tmp/file
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
	e2fsprogs=1.47.2-3+b12 \
	vmtouch=1.3.1-3 util-linux-extra=2.41.5-0+deb13u1
fetch kernel "trixie trixie-backports" download \
	linux-binary-$version=7.3.4-1~bpo13+1 \
	linux-modules-$version=7.3.4-1~bpo13+1
kernel=kernel/usr/lib/modules/$version/vmlinuz
mkdir -p guest/proc guest/sys guest/dev guest/tmp

mkdir -p guest/lib64 guest/usr/lib/x86_64-linux-gnu files
head -c 8M /dev/urandom >files/file
chmod 644 files/file
truncate -s 64M disk
unpacked qemu usr/sbin/mke2fs -q -t ext4 -d files -E root_owner=0:0 disk
cp "kernel/usr/lib/modules/$version/kernel/drivers/block/virtio_blk.ko.xz" guest/
for library in libc.so.6 libsmartcols.so.1; do
	cp -L "qemu/usr/lib/x86_64-linux-gnu/$library" guest/usr/lib/x86_64-linux-gnu
done
cp -L qemu/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2 guest/lib64
cp qemu/usr/bin/vmtouch qemu/usr/bin/fincore guest/
chmod -R a+rX guest

gcc -O1 -Wall -static -o guest/init -x c - <<'END'
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/module.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void must(int ok, const char *what)
{
	if (!ok)
		perror(what);
}

static void mount_disk(void)
{
	int module = open("/virtio_blk.ko.xz", O_RDONLY);

	mount("proc", "/proc", "proc", 0, NULL);
	mount("sysfs", "/sys", "sysfs", 0, NULL);
	mount("devtmpfs", "/dev", "devtmpfs", 0, NULL);
	must(!syscall(SYS_finit_module, module, "", MODULE_INIT_COMPRESSED_FILE),
	     "virtio_blk");
	for (int i = 0; i < 100 && access("/dev/vda", F_OK); i++)
		usleep(100000);
	must(!mount("/dev/vda", "/tmp", "ext4", 0, NULL), "mount");
}

/* run a tool as a user; return whether its output has this text */
static int shows(const char *tool, int user, const char *text)
{
	char line[200];
	int ends[2], has = 0;

	must(!pipe(ends), "pipe");
	if (!fork()) {
		dup2(ends[1], STDOUT_FILENO);
		if (setresuid(user, user, user))
			_exit(1);
		execl(tool, tool, "/tmp/file", NULL);
		_exit(1);
	}
	close(ends[1]);
	FILE *output = fdopen(ends[0], "r");
	while (fgets(line, sizeof(line), output)) {
		printf("%s, user %d: %s", tool + 1, user, line);
		has |= !!strstr(line, text);
	}
	fclose(output);
	wait(NULL);
	return has;
}

int main(void)
{
	mount_disk();
	must(!chown("/tmp/file", 0, 0), "chown");
	umount("/tmp"); /* nothing of it is cached after that */
	must(!mount("/dev/vda", "/tmp", "ext4", MS_RDONLY, NULL), "mount");

	int cold = shows("/vmtouch", 0, "0/2048 ") & shows("/fincore", 0, " 0B ");
	int vmtouch = shows("/vmtouch", 65534, "2048/2048 ");
	int fincore = shows("/fincore", 65534, " 2048 ");
	if (cold && vmtouch && fincore)
		puts("as described");
	fflush(stdout);
	reboot(RB_POWER_OFF);
}
END

guest "$kernel" "" -m 1G -drive file=disk,format=raw,if=virtio || :

grep -Fxq "as described" seen || {
	echo "changed: the guest saw something else"
	exit 1
}
