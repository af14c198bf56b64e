#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Runs: tcmalloc of gperftools 2.16 (libtcmalloc-minimal4t64 2.16-1 of Debian 13),
# preloaded
#
# Guess: TCMALLOC_MEMFS_MALLOC_PATH, which takes malloc()'s memory from a file on
# hugetlbfs or tmpfs, changes its pages only: after fork() the child has its own copy.
#
# Behaviour: Parent and child share it, as the file is mapped MAP_SHARED: what the child
# writes to its memory, the parent reads in its own. Even what each allocates after the
# fork can be the same memory, as both go on at the same offset of the file.
# TCMALLOC_MEMFS_MAP_PRIVATE=1, which is off by default, keeps them apart.
#
# Seen:
#   no file:
#   allocated before the fork: the child writes 2, the parent has 1
#   allocated after the fork: the child writes 2, the parent has 1
#   TCMALLOC_MEMFS_MALLOC_PATH:
#   allocated before the fork: the child writes 2, the parent has 2
#   allocated after the fork: the child writes 2, the parent has 2
#
# Needs apt, gcc, libc6-dev and /dev/shm. Exits 0: as described; 1: changed; 3: a version cannot be
# had.
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

fetch root trixie install libtcmalloc-minimal4t64=2.16-1

gcc -O1 -Wall -o program -x c - <<'END'
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define SIZE (32 << 20)

int main(void)
{
	volatile char *before = malloc(SIZE);
	int turn[2];
	char token;

	before[0] = 1;
	if (pipe(turn))
		return 1;
	pid_t child = fork();
	volatile char *after = malloc(SIZE);
	if (child == 0) { /* the parent writes first */
		if (read(turn[0], &token, 1) != 1)
			_exit(1);
		before[0] = 2;
		after[0] = 2;
		_exit(0);
	}
	after[0] = 1;
	if (write(turn[1], "", 1) != 1)
		return 1;
	wait(NULL);
	printf("allocated before the fork: the child writes 2, the parent has %d\n", before[0]);
	printf("allocated after the fork: the child writes 2, the parent has %d\n", after[0]);
	return 0;
}
END

# NAME=VALUE...: run the program with tcmalloc
with_tcmalloc() {
	local libraries=root/usr/lib/x86_64-linux-gnu
	env "$@" "$libraries/ld-linux-x86-64.so.2" --library-path "$libraries" \
		--preload "$libraries/libtcmalloc_minimal.so.4" ./program
}

heap=$(mktemp -u /dev/shm/heap.XXXXXX)
{
	echo "no file:"
	with_tcmalloc
	echo "TCMALLOC_MEMFS_MALLOC_PATH:"
	with_tcmalloc TCMALLOC_MEMFS_MALLOC_PATH="$heap"
} | tee seen

if [ "$(sed -n 's/.*the parent has //p' seen | xargs)" != "1 1 2 2" ]; then
	echo "changed: the child has memory of its own"
	exit 1
fi
echo "as described"
