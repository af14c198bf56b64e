#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Runs: mimalloc 3.7.0 (libmimalloc3 3.7.0+ds-1~bpo13+1 of Debian's trixie-backports),
# preloaded
#
# Guess: MIMALLOC_ALLOW_THP=0 keeps mimalloc from using transparent huge pages for what
# it allocates; the process's other memory, and other programs, keep them.
#
# Behaviour: It sets PR_SET_THP_DISABLE for the whole process, which survives execve():
# a statically linked program that the first one runs, with neither library nor
# variable, has no transparent huge pages either, not even where it asks for them by
# MADV_HUGEPAGE.
#
# Seen:
#   MIMALLOC_ALLOW_THP=1, PR_GET_THP_DISABLE:
#   with mimalloc: 0
#   a program that it runs: 0
#   MIMALLOC_ALLOW_THP=0, PR_GET_THP_DISABLE:
#   with mimalloc: 1
#   a program that it runs: 1
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

fetch root "trixie trixie-backports" install libmimalloc3=3.7.0+ds-1~bpo13+1

gcc -O1 -Wall  -o program -x c - <<'END'
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

int main(void)
{
	void *volatile memory = malloc(100);

	free(memory);
	printf("with mimalloc: %d\n", prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0));
	fflush(stdout);
	unsetenv("MIMALLOC_ALLOW_THP");
	return execl("./other", "./other", NULL);
}
END

gcc -O1 -Wall -static -o other -x c - <<'END'
#include <stdio.h>
#include <sys/prctl.h>

int main(void)
{
	printf("a program that it runs: %d\n", prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0));
	return 0;
}
END

libraries=root/usr/lib/x86_64-linux-gnu
for allow in 1 0; do
	echo "MIMALLOC_ALLOW_THP=$allow, PR_GET_THP_DISABLE:"
	MIMALLOC_ALLOW_THP=$allow "$libraries/ld-linux-x86-64.so.2" \
		--library-path "$libraries" --preload "$libraries/libmimalloc.so.3" ./program
done | tee seen

if [ "$(sed -n 's/a program that it runs: //p' seen | xargs)" != "0 1" ]; then
	echo "changed: the library leaves other programs their transparent huge pages"
	exit 1
fi
echo "as described"
