#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Runs: pahole 1.32 (1.32-1 of Debian unstable)
#
# Guess: The size of the struct that pahole --reorganize proposes, and what it says is
# saved, is what a compiler makes of that proposal.
#
# Behaviour: With a member aligned to a cache line it is not: it proposes 72 bytes,
# "saved 56 bytes!", under a line that says __aligned__(64). No compiler gives such a
# type a size that is no multiple of 64: the proposal compiles to 128 bytes, as before,
# and nothing is saved.
#
# Seen:
#   } __attribute__((__aligned__(64)));   /* saved 56 bytes! */
#   compiled before: 128; proposal: 72; the proposal compiled: 128
#
# Needs apt, gcc and awk. Exits 0: as described; 1: changed; 3: a version cannot be had.
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

fetch root "forky sid" install pahole=1.32-1

cat >before.c <<'END'
struct queue {
	char state;
	long head __attribute__((aligned(64)));
	char closed;
	int users;
};
END
cat >main.c <<'END'
int printf(const char *, ...);
struct queue queue;
int main(void) { return printf("%zu\n", sizeof(queue)) < 0; }
END

# FILE: the size that the compiler gives the struct in this file
size() {
	cat "$1" main.c >program.c
	gcc -g -o program program.c
	./program
}

before=$(size before.c)
unpacked root usr/bin/pahole --reorganize -C queue program | tee proposal.c
after=$(size proposal.c)
claimed=$(sed -n 's/.*size: \([0-9]*\),.*/\1/p' proposal.c)
echo "compiled before: $before; proposal: $claimed; the proposal compiled: $after"
if [ "$claimed" = "$after" ] || [ "$after" != "$before" ]; then
	echo "changed: the proposal has the size that the compiler gives it"
	exit 1
fi
echo "as described"
