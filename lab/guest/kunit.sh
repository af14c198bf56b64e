# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
# The kernel's own unit tests, which have run at boot, as their debugfs reports them;
# and a selftest.

KUNIT=/sys/kernel/debug/kunit

# report the results of every suite, line by line
kunit() {
	for at in "$KUNIT"/*/results; do
		[ -e "$at" ] || fail "no unit tests have run: $KUNIT is empty"
		suite=${at%/results}
		while IFS= read -r line; do
			report kunit suite="${suite##*/}" line="$line"
		done <"$at"
	done
}

# run a selftest of the kernel's that ends by itself, and report its lines: PROGRAM
selftest() {
	"/suite/$1" >/tmp/selftest 2>&1
	while IFS= read -r line; do
		report selftest program="$1" line="$line"
	done </tmp/selftest
}
