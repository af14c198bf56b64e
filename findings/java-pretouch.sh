#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Runs: OpenJDK 25.0.5 (openjdk-25-jre-headless 25.0.5+8-1~deb13u1 of Debian 13) under
# strace 6.13
#
# Guess: Where the kernel has MADV_POPULATE_WRITE, -XX:+AlwaysPreTouch uses it for the
# heap: the JVM asks the kernel for it when it starts.
#
# Behaviour: It asks, and then touches page by page all the same, whatever the
# collector, unless -XX:+UseTransparentHugePages is given too.
#
# Seen:
#   Serial: asked whether it is there 1, used 0; with UseTransparentHugePages used 16 times
#   Parallel: asked whether it is there 1, used 0; with UseTransparentHugePages used 76 times
#   G1: asked whether it is there 1, used 0; with UseTransparentHugePages used 78 times
#
# Needs apt; ptrace() must be allowed. Exits 0: as described; 1: changed; 3: a version cannot be had.
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

case $(cat /sys/kernel/mm/transparent_hugepage/enabled) in
*\[never\]*)
	echo "cannot be had: transparent huge pages, which are switched off here" >&2
	exit 3
	;;
esac
fetch root trixie install openjdk-25-jre-headless=25.0.5+8-1~deb13u1 strace=6.13+ds-1

libraries=root/usr/lib/x86_64-linux-gnu
jdk=root/usr/lib/jvm/java-25-openjdk-amd64

# OPTION...: how often a JVM with a heap of 256 MiB populates something
populated() {
	unpacked root usr/bin/strace -f -e trace=madvise -o calls \
		"$libraries/ld-linux-x86-64.so.2" \
		--library-path "$libraries:$jdk/lib:$jdk/lib/server" "$jdk/bin/java" \
		-Xms256m -Xmx256m -XX:+AlwaysPreTouch "$@" -version >version 2>&1
	grep POPULATE_WRITE calls | grep -vc 'NULL, 0,' || :
}

for collector in Serial Parallel G1; do
	plain=$(populated "-XX:+Use${collector}GC")
	probes=$(grep -c 'NULL, 0, MADV_POPULATE_WRITE' calls || :)
	huge=$(populated "-XX:+Use${collector}GC" -XX:+UseTransparentHugePages)
	echo "$collector: asked whether it is there $probes, used $plain;" \
		"with UseTransparentHugePages used $huge times"
	if [ "$probes" -lt 1 ] || [ "$plain" -gt 0 ] || [ "$huge" -lt 1 ]; then
		echo "changed: AlwaysPreTouch populates in other cases"
		exit 1
	fi
done
echo "as described"
