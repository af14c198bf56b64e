# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
# Commands of the scenario prezero-days: the command, which is in /command, zeroes the
# pool again and again, while programs take it and give it back.

BIG_POOL=$POOLS/hugepages-1048576kB
DAYS_PAGES=32
DAYS_WAYS="write-first memfd fork cow punch pinned move copy continue"

# replaces the shell: OPTION...
zero_pool() {
	cd /command && exec python3.13 -m bulkmm.cli pool zero --margin 0% "$@"
}

# the pages of 2 MiB that the module has a bit of
known_small() {
	sum=0
	while read -r kib _ pages; do
		[ "$kib" != 2048 ] || sum=$((sum + pages))
	done <"$PREZERO/known"
	echo $sum
}

small_ready() {
	[ "$(known_small)" = "$(free_pages)" ]
}

big_ready() {
	grep -q "^1048576 " "$PREZERO/known" && reads "$BIG_POOL/free_hugepages" 1
}

# hundredths of a second of CPU time: PID
cpu_ticks() {
	awk '{ print $14 + $15 }' "/proc/$1/stat"
}

# so many pages are taken, and each was ready: PAGES
all_served() {
	before=$(stat_of prezero hits)
	must resident "$1" madvise
	matches "$SAID" " wrong=0 " && [ $(($(stat_of prezero hits) - before)) = "$1" ]
}

# two thirds of the pool are filled by post-copy migration and kept
case_kept() {
	many=$((DAYS_PAGES * 2 / 3)) rest=$((DAYS_PAGES / 3 - 2))
	bmmfault -n $many -b $many hugetlb 2048 copy-kept &
	keeper=$!
	await reads "$SMALL_POOL/free_hugepages" $((DAYS_PAGES - many))
	# but for what two threads may be trying
	must bmmfault -n $rest -b $rest hugetlb 2048 write-first
	sleep 5
	check "$1: free pages are ready while others are kept" all_served $rest
	kill $keeper
	wait $keeper
}

# pages are freed dirty on CPUs that others want: also the large one, which is
# missing while it is being zeroed
case_busy_cpus() {
	busy=
	for cpu in 0 1; do
		taskset $((1 << cpu)) sh -c 'while :; do :; done' &
		busy="$busy $!"
	done
	must bmmfault -n 8 -b 8 hugetlb 2048 write-first
	await bmmfault hugetlb 1048576 write-first
	check "$1: ready beside busy CPUs" await small_ready
	check "$1: the large page, too" await big_ready
	# shellcheck disable=SC2086 # two
	kill $busy
	# shellcheck disable=SC2086 # two
	wait $busy
}

# a broken page stays in the pool: the others are ready, and no work is left
case_broken_stays() {
	(until bmmfault -n $DAYS_PAGES -b $DAYS_PAGES hugetlb 2048 reserve; do :; done) &
	holder=$!
	check "broken: all are reserved" \
		await reads "$SMALL_POOL/resv_hugepages" $DAYS_PAGES
	pfn=$(bmmguest free-pages 2048 | sed -n 5p)
	check "broken: it stays in the pool" \
		refused write "$MEMORY/hard_offline_page" $((pfn * 4096))
	kill $holder
	wait $holder
	killall bmmfault
	check "broken: none is reserved" await reads "$SMALL_POOL/resv_hugepages" 0
	must bmmfault -n 8 -b 8 hugetlb 2048 write-first
	sleep 5
	check "broken: the others are ready" all_served $((DAYS_PAGES - 3))
	before=$(cpu_ticks "$WATCHER")
	sleep 20
	check "broken: the watcher rests for most of the time" \
		[ $(($(cpu_ticks "$WATCHER") - before)) -lt 500 ]
	kill "$WATCHER"
	wait "$WATCHER"
	check "broken: zeroing comes to an end" must zero_pool --page 2M
}

# in every turn the machine is left alone for a minute: SECONDS
prezero_days() {
	# shellcheck disable=SC2034 # for resident
	KIND=hugetlb KIB=2048
	set_pool $DAYS_PAGES
	load prezero=on
	(zero_pool --watch --threads 2) >/tmp/watched 2>&1 &
	WATCHER=$!
	end=$(($(date +%s) + $1)) turn=0
	while [ "$(date +%s)" -lt $end ]; do
		turn=$((turn + 1))
		for way in $DAYS_WAYS; do
			must bmmfault -n 16 -b 16 hugetlb 2048 "$way"
			check "turn $turn: ready after $way" await small_ready
		done
		case_kept "turn $turn"
		[ $((turn % 8)) != 1 ] || case_busy_cpus "turn $turn"
		sleep 60
		check "turn $turn: every free page is known" await small_ready
		# but for what two threads may be trying
		check "turn $turn: and zero" all_served $((DAYS_PAGES - 2))
		check "turn $turn: the pool is exact" \
			await reads "$SMALL_POOL/free_hugepages" $DAYS_PAGES
		report prezero-turn number=$turn
	done
	case_broken_stays
	must_write "$PREZERO/mode" off
	must remove
}
