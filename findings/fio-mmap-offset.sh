#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Runs: fio 3.39 (3.39-1 of Debian 13)
#
# Guess: A job writes where offset= says, whatever its engine; jobs with offset_increment=
# each write a part of the file of their own.
#
# Behaviour: The engine mmap writes, and reads, at the start of the file: it maps the
# file from 0 on and takes the job's offset off the place of each block. Two jobs that
# should share the work overwrite the same half. fio reports success,
# and a single job's verification (verify=) passes, as it reads from the wrong place too.
# (3.41 does the same. Both map the file anew for every block of such a job.)
#
# Seen:
#   psync, offset 16 MiB: data in the first half no, in the second yes
#   psync, two jobs: data in the first half yes, in the second yes
#   mmap, offset 16 MiB: data in the first half yes, in the second no
#   mmap, two jobs: data in the first half yes, in the second no
#
# Needs apt. Exits 0: as described; 1: changed; 3: a version cannot be had.
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

fetch root trixie install fio=3.39-1
libraries=root/usr/lib/x86_64-linux-gnu

# ENGINE OPTION...: write 16 MiB per job to a file of 32 MiB of zeros
write_file() {
	local engine=$1
	shift
	rm -f file
	truncate -s 32M file
	"$libraries/ld-linux-x86-64.so.2" --library-path "$libraries:$libraries/ceph" \
		root/usr/bin/fio --name=job --filename=file --ioengine="$engine" \
		--rw=write --bs=4k --size=16M --end_fsync=1 "$@" >log 2>&1 || {
		echo "fio has failed: $(tail -n 1 log)" >&2
		exit 1
	}
}

# PART: whether this half of the file has data
has_data() {
	if dd if=file bs=16M skip="$1" count=1 status=none | cmp -s -n 16777216 - /dev/zero; then
		echo no
	else
		echo yes
	fi
}

for engine in psync mmap; do
	write_file $engine --offset=16M --verify=crc32c
	echo "$engine, offset 16 MiB: data in the first half $(has_data 0)," \
		"in the second $(has_data 1)"
	write_file $engine --numjobs=2 --offset_increment=16M
	echo "$engine, two jobs: data in the first half $(has_data 0)," \
		"in the second $(has_data 1)"
done | tee seen

if [ "$(grep -o 'yes\|no$\|no,' seen | tr -d , | xargs)" != "no yes yes yes yes no yes no" ]; then
	echo "changed: the engine mmap writes elsewhere"
	exit 1
fi
echo "as described"
