# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
# The kernel's own tests of memory management (tools/testing/selftests/mm), by
# their own runner, one category at a time, in each state of the module. A
# category whose results differ is run again in all states, with more time.

MM=/suite/mm
# MM_ARMS: those states, without the module first
MM_AGAIN="2 3" # attempts after the first

# streaming: huge pages of all sizes bypass the cache: ARM
mm_state() {
	state absent
	case $1 in
	on) all_on ;;
	streaming)
		state streaming clear=streaming? alloc=streaming? clear/min_pages=2
		;;
	esac
}

mm_begin() {
	mkdir -p /dev/shm /tmp/mm
	mount -t tmpfs tmpfs /dev/shm
	for script in "$MM"/*.sh; do chmod 755 "$script"; done
	while read -r name; do report mm-unbuilt name="$name"; done <$MM/unbuilt
}

# the runner's result of each test, as "VERDICT PASSED FAILED SKIPPED NAME": the
# numbers count the lines that the test itself prints; each is told as it ends
mm_parse() {
	awk '
	/^# (not )?ok [0-9]/ {
		if (/# SKIP/) skipped++
		else if (/^# not/) failed++
		else passed++
	}
	/^(not )?ok [0-9]/ {
		verdict = /# SKIP/ ? "skip" : (/^not/ ? "fail" : "pass")
		if (/# exit=124$/) verdict = "late"
		sub(/^(not )?ok [0-9]+ /, "")
		sub(/ # (SKIP|exit=[0-9]+)$/, "")
		print verdict, passed + 0, failed + 0, skipped + 0, $0
		fflush()
		passed = failed = skipped = 0
	}'
}

# run a category in the module's current state: CATEGORY ATTEMPT
mm_category() {
	mark "mm $1 in $ARM begins"
	read -r begun _ </proc/uptime
	(cd $MM && exec bash ./run_vmtests.sh -t "$1") 2>&1 </dev/null |
		mm_parse | tee "/tmp/mm/$ARM.$1" |
		while read -r verdict passed failed skipped name; do
			report mm arm="$ARM" category="$1" attempt="$2" name="$name" \
				verdict="$verdict" passed="$passed" failed="$failed" \
				skipped="$skipped"
		done
	read -r ended _ </proc/uptime
	report mm-ran arm="$ARM" category="$1" attempt="$2" \
		tests="$(grep -c "CATEGORY=\"$1\"" $MM/run_vmtests.sh)" \
		seconds="$(echo "$ended $begun" | awk '{ printf "%d", $1 - $2 }')"
	mm_clean
}

# remove what one category leaves, before the next
mm_clean() {
	for at in /proc/[0-9]*/exe; do
		case $(readlink "$at") in
		$MM/*) kill -9 "$(echo "$at" | cut -d / -f 3)" 2>/dev/null ;;
		esac
	done
	for at in "$POOLS"/*/nr_hugepages; do echo 0 >"$at"; done
	echo 3 >/proc/sys/vm/drop_caches
	echo 1 >/proc/sys/vm/compact_memory
}

# check that a category has the same results as without the module: CATEGORY
mm_same() {
	for arm in $MM_ARMS; do
		cmp -s "/tmp/mm/absent.$1" "/tmp/mm/$arm.$1" || return 1
	done
}

# SECONDS (that a test may take) CATEGORY...
mm() {
	export MM_LIMIT="$1"
	shift
	for arm in $MM_ARMS; do
		mm_state "$arm"
		for category in "$@"; do mm_category "$category" 1; done
	done
	for category in "$@"; do
		mm_same "$category" && continue
		for attempt in $MM_AGAIN; do
			MM_LIMIT=$((MM_LIMIT * 2))
			for arm in $MM_ARMS; do
				mm_state "$arm"
				mm_category "$category" "$attempt"
			done
			MM_LIMIT=$((MM_LIMIT / 2))
		done
	done
	state absent
}
