# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
# Everything at once, and all of it verified: stress-ng's memory workers, which
# check what they stored; huge pages that must be zero; hugetlb pages that are
# copied; a device that goes down and up; while paths and backends are switched
# and the module is reloaded.

# SECONDS
stress_ng() {
	/usr/bin/stress-ng --verify --timeout "$1" --vm 2 --vm-bytes 96m \
		--vm-method all --mmap 1 --mmap-bytes 64m --mremap 1 \
		--mremap-bytes 32m --fork 1 --pipe 1 --yaml /tmp/stress.yaml \
		--metrics >/tmp/stress.said 2>&1
	echo "code=$?"
}

# a device goes down and up until everything else ends
binds() {
	binds=0 failed=0
	until [ -e /tmp/worker.stress-ng.code ] && [ -e /tmp/soaked ]; do
		down
		up || failed=$((failed + 1))
		binds=$((binds + 1))
	done
	echo "binds=$binds failed=$failed"
}

# hugetlb pages are copied until everything else ends, against a model
copies() {
	until [ -e /tmp/worker.stress-ng.code ] && [ -e /tmp/soaked ]; do
		for way in private-first private-middle file-first file-last \
			uffd-private uffd-shared; do
			bmmcopy $way keep >>/tmp/copies || return 1
		done
	done
	awk -F '[= ]' '{ copies += $2; wrong += $4 }
		END { print "copies=" copies, "wrong=" wrong }' /tmp/copies
}

# switch every path through every mode
stress_turn() {
	turn
	state toggled memmap=off memmap=on vmap=off vmap=pte vmap=block copy=off \
		copy=cached copy=streaming
	must_write "$BULKMM/off" 1
	state toggled copy=on memmap=on vmap=block clear=auto
}

# SECONDS
stress() {
	down
	up
	snapshot
	folios hugetlb 2048 8
	folios thp 64
	echo madvise >"$THP_2M"
	echo always >"$HUGE/enabled"
	worker stress-ng stress_ng "$1"
	worker device binds
	worker copies copies
	worker folios bmmfault -t "$1" -u /tmp/soaked -b 4 thp 2048 write-middle \
		read fork
	# shellcheck disable=SC2086 # words
	soak "$1" 2 stress_turn $ALL_ON
	awk '/stressor:/ { name = $3 } /bogo-ops:/ { print name, $2 }' \
		/tmp/stress.yaml >/tmp/stress.ops
	# vm, mmap, mremap, fork, pipe
	check "stress-ng: all are reported" [ "$(grep -c . /tmp/stress.ops)" = 5 ]
	while read -r name ops; do
		check "stress-ng $name worked" [ "$ops" -gt 0 ]
		report stress-ops name="$name" ops="$ops"
	done </tmp/stress.ops
	check "device: same bytes" same
}
