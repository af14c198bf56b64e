#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Runs: glibc 2.41 (libc6 2.41-12+deb13u5 of Debian 13) and 2.43 (libc6 2.43-7 of Debian
# unstable) on Linux 7.3.4 (linux-binary-7.3.4+deb13-cloud-amd64 7.3.4-1~bpo13+1 of
# Debian's trixie-backports) in QEMU 10.0.13 (qemu-system-x86 1:10.0.13+ds-0+deb13u1),
# emulated by TCG
#
# Guess: mlockall(MCL_CURRENT) makes the stacks of running threads resident, with every
# glibc: a real-time program then runs without faults.
#
# Behaviour: With glibc 2.43 it returns 0 and leaves them out. That glibc makes the
# guard page by MADV_GUARD_INSTALL where the kernel has it, inside the stack's own
# mapping, at its lowest address; mlockall() stops populating a mapping at its first
# error, which is that page, and ignores the error. With glibc 2.41 the guard page is a
# mapping of its own.
#
# Seen:
#   glibc 2.41: mlockall() 0, 256 of 256 pages of the stack resident
#   glibc 2.43: mlockall() 0, 2 of 256 pages of the stack resident
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
	libc6=2.41-12+deb13u5
fetch kernel "trixie trixie-backports" download \
	linux-binary-$version=7.3.4-1~bpo13+1
kernel=kernel/usr/lib/modules/$version/vmlinuz
mkdir -p guest/proc guest/sys guest/dev guest/tmp
fetch new "forky sid" download libc6=2.43-7
mkdir guest/2.41 guest/2.43
for library in ld-linux-x86-64.so.2 libc.so.6; do
	cp -L "qemu/usr/lib/x86_64-linux-gnu/$library" guest/2.41
	cp -L "new/usr/lib/x86_64-linux-gnu/$library" guest/2.43
done

gcc -O1 -Wall -pthread -o guest/stack -x c - <<'END'
#define _GNU_SOURCE
#include <gnu/libc-version.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>

#define PAGES 256

static pthread_barrier_t barrier;
static void *stack;

static void *wait_twice(void *unused)
{
	pthread_attr_t attributes;
	size_t size;

	pthread_getattr_np(pthread_self(), &attributes);
	pthread_attr_getstack(&attributes, &stack, &size);
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	return unused;
}

/* the exit status: how many pages of a thread's stack are not resident, at most 255 */
int main(void)
{
	static unsigned char vector[PAGES];
	pthread_attr_t attributes;
	pthread_t thread;
	int resident = 0;

	pthread_barrier_init(&barrier, NULL, 2);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, PAGES * 4096);
	pthread_create(&thread, &attributes, wait_twice, NULL);
	pthread_barrier_wait(&barrier);
	int result = mlockall(MCL_CURRENT);
	if (mincore(stack, PAGES * 4096, vector))
		perror("mincore");
	for (int i = 0; i < PAGES; i++)
		resident += vector[i] & 1;
	printf("glibc %s: mlockall() %d, %d of %d pages of the stack resident\n",
	       gnu_get_libc_version(), result, resident, PAGES);
	pthread_barrier_wait(&barrier);
	pthread_join(thread, NULL);
	return PAGES - resident > 255 ? 255 : PAGES - resident;
}
END

gcc -O1 -Wall -static -o guest/init -x c - <<'END'
#include <stdio.h>
#include <sys/reboot.h>
#include <sys/wait.h>
#include <unistd.h>

static int run(const char *loader, const char *libraries)
{
	int status;

	if (!fork())
		execl(loader, loader, "--library-path", libraries, "/stack", NULL);
	wait(&status);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int main(void)
{
	int old = run("/2.41/ld-linux-x86-64.so.2", "/2.41");
	int new = run("/2.43/ld-linux-x86-64.so.2", "/2.43");

	if (!old && new > 200)
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
