# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
# Commands of a job of the prezero family: hugetlb pages that are zeroed ahead of
# use, in every state of the module. The host decides what to expect.


# bring the module into a state: absent; off; clear: path clear, whose stores are
# counted; on: prezero knows nothing; ready: it will know all free pages; both: with
# path clear on
prezero_state() {
	case $1 in
	absent) state absent && return ;;
	off) zero=off other=off ;;
	clear) zero=off other=cached ;;
	on | ready) zero=on other=off ;;
	both) zero=on other=cached ;;
	esac
	state "$1" prezero=off clear="$other" prezero="$zero"
	plain_stores
}

# zero all free pages that are not known to be zero: KIB
prezero_fill() {
	for at in /sys/devices/system/node/node[0-9]*; do
		while echo "$1 ${at##*node} 1024 0" 2>/dev/null >"$PREZERO/zero"; do
			:
		done
	done
}

# the pages that are known to be zero, of all sizes and nodes
known() {
	all=0
	[ ! -d "$PREZERO" ] || while read -r _ _ pages; do
		all=$((all + pages))
	done <"$PREZERO/known"
	echo $all
}

# populate by a WAY, if the guest has what it takes: KIND MIB WAY
prezero_visit() {
	[ "$3" != qemu ] || [ -e /usr/bin/qemu-system-x86_64 ] || return 0
	case $ARM in
	ready | both) prezero_fill "$KIB" ;;
	esac
	before=$(known)
	record before
	must resident $(($2 * 1024 / KIB)) "$3"
	record after
	# shellcheck disable=SC2086 # "bytes=... ns=...", as must() left it
	report prezero-visit arm="$ARM" kind="$1" way="$3" known="$before" \
		left="$(known)" $SAID
}

# what the kernel counts as used while a file has the whole pool; not all do: SIZE
prezero_counted() {
	must mount -t hugetlbfs -o pagesize="${KIB}K" hugetlbfs /mnt
	must fallocate -l "$1" /mnt/held
	report prezero-counted used="$(sed -n 's/^nr_hugetlb //p' /proc/vmstat)"
	must umount /mnt
}

# What can go wrong around the path, provoked on a test build (BMM_FAULTS=1). Pages
# are full of a pattern whenever they are freed.

SMALL_POOL=$POOLS/hugepages-2048kB
DIRT=0xa5a5a5a5a5a5a5a5
TAKEN="write-first memfd fork cow punch dontneed pinned move copy continue"

free_pages() {
	cat "$SMALL_POOL/free_hugepages"
}

# every byte of all free pages of 2 MiB, but for what fillers may be holding, is zero
# when they are populated: [FILLERS]
all_zero() {
	must resident $(($(free_pages) - ${1:-0})) madvise
	matches "$SAID" " wrong=0 "
}

ready() {
	prezero_fill 2048
	[ "$(known)" = "$(free_pages)" ]
}

exact() {
	[ "$(free_pages)" = "$PAGES" ] &&
		[ "$(cat "$SMALL_POOL/nr_hugepages")" = "$PAGES" ]
}

# set the pool, and PAGES to what there is: PAGES
set_pool() {
	echo "$1" >"$SMALL_POOL/nr_hugepages"
	read -r PAGES <"$SMALL_POOL/nr_hugepages"
}

# pages that are ready are used in a way and freed dirty: WAY
case_way() {
	check "$1: ready" ready
	many=$(free_pages)
	case $1 in # what needs as many again
	fork | cow | move | soft-offline | broken) many=$((many / 2)) ;;
	esac
	SAID=$(bmmfault -n "$many" -b "$many" hugetlb 2048 "$1" 2>&1)
	check "$1: zero at first touch" matches "$? $SAID" "^0 .* wrong=0 "
	check "$1: zero afterwards" all_zero
	check "$1: ready again" ready
	check "$1: zero when ready" all_zero
}

# known pages leave the pool, memory is dirtied, and they come back: as surplus pages,
# which no free list has had, and as the pool's. Each time it is three quarters of the
# memory, so that one quarter at least was known, is dirty, and is looked at. LEFT: how
# many were known outside of the pool; WRONG: how many surplus pages were not zero
come_back() {
	many=$PAGES
	pages=$(($(free_mib) * 3 / 8))
	set_pool $pages
	check "$1: the pool has most of the memory" [ "$PAGES" = $pages ]
	check "$1: ready" ready
	set_pool 0
	LEFT=$(known)
	must bmmguest poison $(($(free_mib) * 3 / 4)) $DIRT
	report prezero-dirtied # this takes a while
	pages=$(($(free_mib) * 3 / 8))
	must_write "$SMALL_POOL/nr_overcommit_hugepages" $pages
	must resident $pages touch
	WRONG=${SAID#* wrong=} WRONG=${WRONG%% *}
	echo 0 >"$SMALL_POOL/nr_overcommit_hugepages"
	set_pool "$many"
}

case_resized() {
	come_back resized
	check "resized: none known" [ "$LEFT" = 0 ]
	check "resized: surplus pages are zero" [ "$WRONG" = 0 ]
	check "resized: zero" all_zero
}

free_mib() {
	sed -n 's/^MemFree: *\([0-9]*\)... kB/\1/p' /proc/meminfo
}

# a large page, of 1 GiB since boot or arm64's of 32 MiB, becomes small ones, which are
# used and come back in one piece: PAGES
case_demoted() {
	kib=1048576
	[ ! -d "${SMALL_POOL%-*}-32768kB" ] || kib=32768
	big=${SMALL_POOL%-*}-${kib}kB
	set_pool 0
	echo 1 >"$big/nr_hugepages"
	prezero_fill $kib
	check "demoted: a large page is ready" [ "$(known)" = 1 ]
	must_write "$big/demote_size" 2M # that of arm64 can be others
	must_write "$big/demote" 1
	check "demoted: none known" [ "$(known)" = 0 ]
	must resident $((kib / 2048)) touch
	set_pool 0
	echo 1 >"$big/nr_hugepages"
	case $kib-$(cat "$big/free_hugepages") in
	1048576-0) check "demoted: skipped, no GiB in one piece any more" true ;;
	*)
		must bmmfault -c hugetlb $kib madvise
		check "demoted: a large page is zero" matches "$SAID" " wrong=0 "
		;;
	esac
	echo 0 >"$big/nr_hugepages"
	set_pool "$1"
}

# blocks of memory with free pages that are ready go offline, and online: PAGES
case_offline() {
	if [ "$(uname -m)" = aarch64 ]; then
		check "offline: skipped, arm64 keeps the memory of its boot" true
		return
	fi
	gone=0
	check "offline: ready" ready
	for at in /sys/devices/system/memory/memory[0-9]*; do
		echo offline 2>/dev/null >"$at/state" || continue
		gone=$((gone + 1))
		[ $gone -lt 6 ] || break
	done
	for at in /sys/devices/system/memory/memory[0-9]*; do
		echo online_movable 2>/dev/null >"$at/state"
	done
	check "offline: some blocks went" [ $gone -gt 0 ]
	must bmmguest poison $(($(free_mib) / 2)) $DIRT
	check "offline: zero" all_zero
	set_pool "$1"
}

# start processes that fill for ever: FREE-PAGES-LEFT NODE...
fill_on() {
	FILLERS='' floor=$1
	shift
	for node; do
		while :; do
			echo "2048 $node 64 $floor" 2>/dev/null >"$PREZERO/zero"
		done &
		FILLERS="$FILLERS $!"
	done
}

kill_fillers() {
	# shellcheck disable=SC2086 # several
	kill -9 $FILLERS
}

case_fillers() {
	for pause in 0 0.001 0.002 0.005 0.01 0.02 0.05 0.1; do
		must_write "$PREZERO/mode" off
		must_write "$PREZERO/mode" on
		fill_on 0 0 1 0
		sleep $pause
		kill_fillers
		wait
		check "fillers killed after $pause s: the pool is exact" exact
	done
	check "fillers killed: zero" all_zero
	# a page that is left half way comes back among those that are known
	many=$PAGES
	set_pool 200
	for pause in 1 2 3 4 5 6 7 8 9 1 2 3 4 5 6 7 8 9; do
		fill_on 0 0
		sleep 0.0$pause
		kill_fillers
		wait
	done
	check "fillers killed: the next one leaves no page out" ready
	set_pool "$many"
}

case_switched() {
	fill_on 0 0 1
	for mode in off on off on; do must_write "$PREZERO/mode" $mode; done
	must_write "$CLEAR/mode" auto
	must_write "$PREZERO/mode" off
	check "clear keeps its hook" says_of clear 0 folio_zero_user
	must_write "$PREZERO/mode" on
	must_write "$CLEAR/mode" off
	check "prezero keeps it" says_of clear 0 folio_zero_user
	check "switched while it fills: zero" all_zero 2
	must remove
	check "unloaded while it fills: the pool is exact" exact
	load prezero=on
	kill_fillers
	wait
	check "loaded again: zero" all_zero
	must_write "$PREZERO/mode" off
	settle
	check "off: no hook is left" says_of clear -19 folio_zero_user
	must_write "$PREZERO/mode" on
}

# the path serves nothing, whatever its mode says
is_off() {
	matches "$(bmmguest write "$PREZERO/zero" "2048 0 1 0" 2>&1)" "No such device"
}

# while somebody else holds the lock of paths, off takes effect at once, and a signal
# ends its wait; the rest is done behind it
case_off_behind() {
	check "off behind another: ready" ready
	echo held >"$PARAMETERS/fault"
	write "$VMAP/mode" pte &
	holder=$!
	await reads "$VMAP/mode" "off [pte] block"
	write "$PREZERO/mode" off &
	writer=$!
	check "off behind another: at once" await is_off
	before=$(stat_of prezero hits)
	must bmmfault -n 4 -b 4 hugetlb 2048 write-first
	check "off behind another: zero" matches "$SAID" " wrong=0 "
	check "off behind another: nothing is served" \
		[ "$(stat_of prezero hits)" = "$before" ]
	late=$(dmesg | grep -c "still detaching")
	kill $writer
	wait $writer
	check "off behind another: a signal ends the wait" \
		[ "$(dmesg | grep -c "still detaching")" = "$late" ]
	check "off behind another: the other has the lock" kill -0 $holder
	check "off behind another: it is still on" \
		grep -q "^0 enqueue_hugetlb_folio" "$PREZERO/hook"
	echo none >"$PARAMETERS/fault"
	wait $holder
	check "off behind another: off" await reads "$PREZERO/mode" "[off] on"
	settle
	check "off behind another: no hook is left" \
		await refused grep -q "^0 " "$PREZERO/hook"
	must_write "$VMAP/mode" off
	must_write "$PREZERO/mode" on
}

case_refused() {
	before=$(lines)
	# the last two are what is valid, plus 2^32 or 2^64
	for words in x "2048 0 1" "2048 0 1 0 more" "2048 4294967296 1 0" \
		"18446744073709553664 0 1 0"; do
		check "zero: '$words' is refused" refused write "$PREZERO/zero" "$words"
	done
	check "zero: one line each" [ $(($(lines) - before)) = 5 ]
	for words in "12 0 1 0" "2048 9999 1 0" "2048 -1 1 0" "0 0 1 0" \
		"2048 0 1 $PAGES"; do
		check "zero: '$words' is refused" refused write "$PREZERO/zero" "$words"
	done
	bmmfault -n "$PAGES" -b "$PAGES" hugetlb 2048 reserve &
	holder=$!
	await reads "$SMALL_POOL/resv_hugepages" "$PAGES"
	check "zero: reserved pages are left" refused write "$PREZERO/zero" "2048 0 1 0"
	kill $holder
	wait
	must_write "$PREZERO/mode" off
	check "zero: refused while the path is off" \
		refused write "$PREZERO/zero" "2048 0 1 0"
	must_write "$PREZERO/mode" on
}

case_symbols() {
	for symbol in remove_hugetlb_folio enqueue_hugetlb_folio folio_zero_user \
		size_to_hstate; do
		before=$(lines)
		load prezero=on fault_symbol=$symbol
		settle
		check "$symbol missing: one line" [ $(($(lines) - before)) = 1 ]
		check "$symbol missing: off" [ "$(cat "$PREZERO/mode")" = "[off] on" ]
		check "$symbol missing: no hook is left" \
			refused grep -q '^0 ' "$PREZERO/hook" "$CLEAR/hook"
	done
	load fault=inlined
	check "inlined: on is refused" refused write "$PREZERO/mode" on
	settle
	check "inlined: hook says so" says_of prezero -61 enqueue_hugetlb_folio
	# a call that neither hook, nor that of clear, would see; every release has them
	for call in "remove_hugetlb_folio remove_pool_hugetlb_folio" \
		"folio_zero_user hugetlbfs_fallocate"; do
		load clear=auto fault_symbol="${call#* }->${call% *}"
		check "${call#* }: on is refused" refused write "$PREZERO/mode" on
		check "${call#* }: hook says so" \
			says_of prezero -67 "${call#* }->${call% *}"
	done
	# the hook that both need is being detached again when the second wants it
	load clear=auto prezero=on fault=ask
	check "no memory at load: off" reads "$PREZERO/mode" "[off] on"
	echo none >"$PARAMETERS/fault"
	settle
	check "no memory at load: on later" write "$PREZERO/mode" on
	load prezero=on
}

# a bit that is kept when a page is freed dirty must be seen
case_stale() {
	check "stale: ready" ready
	echo stale >"$PARAMETERS/fault"
	many=$(($(free_pages) / 2))
	must bmmfault -n $many -b $many hugetlb 2048 fork
	check "stale: seen" refused all_zero
	come_back stale
	check "stale: seen in surplus pages" [ "$WRONG" -gt 0 ]
	echo none >"$PARAMETERS/fault"
	must_write "$PREZERO/mode" off
	must_write "$PREZERO/mode" on
}

# every case: PAGES
prezero_faults() {
	# shellcheck disable=SC2034 # for resident
	KIND=hugetlb KIB=2048
	set_pool "$1"
	load prezero=on
	for way in $TAKEN; do case_way "$way"; done
	must_write "$CLEAR/mode" auto
	case_way write-first
	must_write "$CLEAR/mode" off
	case_fillers
	case_refused
	case_switched
	case_off_behind
	case_resized
	case_stale
	case_symbols
	case_demoted "$1"
	case_offline "$1"
	echo 1 2>/dev/null >/proc/sys/vm/hugetlb_optimize_vmemmap
	set_pool 0
	set_pool "$1"
	for way in write-first fork; do case_way $way; done
	case_resized
	case_way soft-offline
	case_way broken
	must_write "$PREZERO/mode" off
	must remove
}

# two processes take pages in every way until they have seen so many, while fillers
# come and are killed, the pool and the modes change: PAGES FAULT
prezero_stress() {
	set_pool 96
	state on prezero=on
	[ "$2" = none ] || must_write "$PARAMETERS/fault" "$2"
	for one in 1 2; do
		# shellcheck disable=SC2086 # words
		worker $one bmmfault -k -n $(($1 / 2)) -b 12 hugetlb 2048 \
			noreserve $TAKEN
	done
	turns=0
	while working; do
		fill_on 0 0 1
		for pages in 64 96 80 96; do
			echo $pages >"$SMALL_POOL/nr_hugepages"
			sleep 0.3
		done
		kill_fillers
		case $((turns % 4)) in
		0) must_write "$CLEAR/mode" auto ;;
		1) must_write "$PREZERO/mode" off && must_write "$PREZERO/mode" on ;;
		2) must_write "$CLEAR/mode" off ;;
		esac
		turns=$((turns + 1))
		report prezero-turn number=$turns
	done
	wait
	set_pool 96
	check "the pool is exact" exact
	for one in $SOAKERS; do
		read -r code <"/tmp/worker.$one.code"
		# shellcheck disable=SC2046 # "folios=... wrong=..."
		report prezero-churned code="$code" $(cat "/tmp/worker.$one.said")
	done
	report prezero-stress turns=$turns
	state absent
}
