#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Runs: qemu-x86_64 10.0.13 (qemu-user 1:10.0.13+ds-0+deb13u1 of Debian 13), which
# emulates a process
#
# Guess: An emulated madvise() does what is asked or fails; of an advice that it does
# not know, with EINVAL, as the kernel does. A program can therefore ask whether
# MADV_POPULATE_WRITE is there.
#
# Behaviour: It returns 0 to any number, to one that no kernel has, and for memory that
# is not mapped, and does nothing. A program that has just been told that its pages are
# in memory has none. (11.1.3 answers EINVAL.)
#
# Seen:
#   advice 9999: 0
#   MADV_POPULATE_WRITE of nothing mapped: 0
#   MADV_POPULATE_WRITE of 2048 pages: 0, 0 resident
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

fetch root trixie install qemu-user=1:10.0.13+ds-0+deb13u1

gcc -O1 -Wall -static -o program -x c - <<'END'
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/mman.h>

#define PAGES 2048

int main(void)
{
	static unsigned char vector[PAGES];
	void *memory = mmap(NULL, PAGES * 4096, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int resident = 0;

	printf("advice 9999: %d\n", madvise(memory, PAGES * 4096, 9999));
	printf("MADV_POPULATE_WRITE of nothing mapped: %d\n", madvise(NULL, 4096, 23));
	printf("MADV_POPULATE_WRITE of %d pages: %d", PAGES,
	       madvise(memory, PAGES * 4096, 23));
	mincore(memory, PAGES * 4096, vector);
	for (int i = 0; i < PAGES; i++)
		resident += vector[i] & 1;
	printf(", %d resident\n", resident);
	return 0;
}
END

root/usr/bin/qemu-x86_64 ./program | tee seen
if ! diff seen - <<'END'; then
advice 9999: 0
MADV_POPULATE_WRITE of nothing mapped: 0
MADV_POPULATE_WRITE of 2048 pages: 0, 0 resident
END
	echo "changed: the emulator no longer takes every advice"
	exit 1
fi
echo "as described"
