# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
# Everything that can go wrong around the hotplug path, provoked one by one.
# Each case runs three times: without the module, with it, and with the kernel's
# own walk after each answer (fault=check of a test build).

# record the state of the zones
hot_look() {
	hot_zones
	SEEN="$SEEN$ZONES
"
}

# note the zones in SEEN while COMMAND runs, which may have set another policy than
# the job's
hot_seen() {
	SEEN=
	hot_policy "$ONLINE"
	"$@"
}

# zones are as without the module: NAME COMMAND...
hot_again() {
	what=$1
	shift
	hot_seen "$@"
	check "$what: zones as without" [ "$SEEN" = "$without" ]
}

# run a case in all three ways: NAME COMMAND...
hot_case() {
	what=$1
	shift
	hot_seen "$@"
	without=$SEEN
	load memmap=off hotplug=on
	hot_again "$what" "$@"
	check "$what: walks were saved" [ "$(stat_of hotplug hits)" -gt 0 ]
	load memmap=off hotplug=on fault=check
	hot_again "$what, checked" "$@"
	equal=0 other=0
	IFS=, read -r equal other <"$PARAMETERS/fault_answers"
	check "$what: $equal answers are the kernel's, $other others" \
		[ "$equal" -gt 0 -a "$other" = 0 ]
	must remove
}

hot_bind() {
	bmmguest write "$KMEM/bind" "$1" >/dev/null
}

hot_unbind() {
	bmmguest write "$KMEM/unbind" "$1" >/dev/null
}

# take all of the node's memory offline, and unbind its devices
hot_gone() {
	must bmmplug offline "$HOT"
	hot_look
	for device in "$@"; do must hot_unbind "$device"; done
	hot_look
}

# set blocks of the node, one after the other: STATE PLACE...
hot_set() {
	become=$1
	shift
	for place; do
		hot_write "$become" "$place" || SEEN="$SEEN$place is not $become
"
		hot_look
	done
}

# request memory without waiting for it: KIB
hot_ask() {
	echo "qom-set /machine/peripheral/hot0 requested-size $1K" >"$MONITOR"
}

# has the requested failure happened?
hot_refused() {
	read -r left <"$LAB/refuse"
	[ "$left" = 0 ]
}

hot_plain() {
	must hot_bind "$FIRST"
	hot_look
	hot_gone "$FIRST"
}

# a driver refuses a block: it stays offline
hot_not_online() {
	must_write "$LAB/refuse" "online 5"
	must hot_bind "$FIRST"
	check "block refused: was provoked" await hot_refused
	hot_look
	hot_gone "$FIRST"
}

# no memory for struct pages: at the start, then in the middle of a device
hot_no_memory() {
	if [ -d "$BULKMM" ]; then with=on; else with=absent; fi
	warnings "of vmemmap in $with begin"
	must_write "$LAB/refuse" "vmemmap 1"
	check "no struct pages: device is refused" refused hot_bind "$FIRST"
	hot_look
	hot_plain
	must_write "$LAB/refuse" "vmemmap 3"
	hot_ask 1048576
	check "no struct pages: was provoked" await hot_refused
	hot_look
	hot_request 0
	warnings end
	hot_request 1048576
	hot_look
	hot_request 0
	hot_look
}

# take blocks offline and online again, one after the other: PLACE...
hot_flip() {
	for place in "$@"; do
		hot_write offline "$place"
		hot_write online_movable "$place"
	done
}

# some blocks go offline while others go online
hot_beside() {
	must hot_bind "$FIRST"
	hot_list
	hot_flip 1 3 5 7 9 11 13 1 3 5 &
	hot_flip 2 4 6 8 10 12 14 2 4 6 &
	wait
	hot_set offline 14 0
	hot_gone "$FIRST"
}

# three devices of two kinds and two nodes come and go at once
hot_at_once() {
	hot_bind "$FIRST" &
	hot_bind "$SECOND" &
	hot_request 1048576
	wait
	hot_look
	must bmmplug offline "$HOT"
	hot_unbind "$FIRST" &
	hot_unbind "$SECOND" &
	hot_request 0
	wait
	hot_look
}

# plug the second device first: the first below it is a hole, filled later
hot_filled() {
	must hot_bind "$SECOND"
	hot_look
	must hot_bind "$FIRST"
	hot_look
	hot_list
	hot_set offline 2 4 3 16 14 15 0 1
	hot_set online_movable 15 3 1 14 4 0 16 2
	hot_gone "$SECOND" "$FIRST"
}

# KiB of memory of the node
hot_total() {
	sed -n "s/^Node $HOT MemTotal: *\([0-9]*\) kB/\1/p" \
		/sys/devices/system/node/node"$HOT"/meminfo
}

# struct pages lie in the plugged memory itself
hot_own_memmap() {
	must_write "/sys/bus/dax/devices/$FIRST/memmap_on_memory" 1
	must hot_bind "$FIRST"
	check "own struct pages: MemTotal tells" \
		[ "$(hot_total)" -lt "$WHOLE" ]
	hot_look
	hot_list
	hot_set offline 3 0 5 4
	hot_set online_movable 4 5 0 3
	hot_gone "$FIRST"
	must_write "/sys/bus/dax/devices/$FIRST/memmap_on_memory" 0
}

# the kernel decides which zone a block joins: all ZONE_MOVABLE, because kernel
# allocations on a block of another zone would keep it online
hot_auto_movable() {
	policy=/sys/module/memory_hotplug/parameters/online_policy
	must_write ${policy%/*}/auto_movable_ratio 100000
	must_write ${policy%/*}/auto_movable_numa_aware N
	must_write $policy auto-movable
	hot_policy online
	hot_plain
	must_write $policy contig-zones
}

# have four blocks come that are offline: LIST
hot_offline() {
	LIST=$(grep -l offline "$BLOCKS"/memory*/state |
		sed 's/.*memory\([0-9]*\).*/\1/' | sort -n)
	# shellcheck disable=SC2086 # numbers
	set -- $LIST
	[ $# = 4 ]
}

# four blocks of virtio-mem, while all others are online: LIST
hot_four() {
	hot_ask 524288
	check "four blocks came" await hot_offline
}

# does a zone of node 0 span memory of node 1?
hot_spans() {
	awk '$1 == 0 && $3 + $4 > end { end = $3 + $4 }
		$1 == 1 { other = $3 }
		END { exit !(other && other < end) }' "$LAB/zones"
}

# a zone of node 0 that spans all of node 1, whose blocks come and go
hot_nodes() {
	must hot_bind "$FIRST"
	hot_policy offline
	hot_four
	hot_set online_kernel 1
	check "nodes are mixed" hot_spans
	must bmmplug offline "$HOT"
	hot_look
	hot_set online_kernel 3
	hot_set offline 1
	other=$LIST
	hot_list
	hot_set online_movable 4 0 7
	hot_gone "$FIRST"
	LIST=$other
	hot_set offline 3
	hot_request 0
	hot_look
}

# two interleaved zones with holes
hot_mixed() {
	hot_policy offline
	must hot_bind "$FIRST"
	hot_list
	hot_set online_movable 8 2 5 11
	hot_set online_kernel 3 9 4 6
	hot_set online_movable 7 10 1 12
	hot_set offline 3 12 6 1 9 5 4
	hot_set online_movable 12 4 9 1
	hot_gone "$FIRST"
}

# memory joins a zone in a section that it shares with a device
hot_neighbour() {
	hot_policy offline
	hot_four
	for one in 1 3; do
		hot_set online_kernel $one
		hot_set offline $one
	done
	must_write "$NEIGHBOUR/unbind" "$NEIGHBOURS"
	hot_set online_kernel 2
	must_write "$NEIGHBOUR/bind" "$NEIGHBOURS"
	hot_set offline 2
	hot_request 0
	hot_look
}

hot_switch() {
	for mode in off on; do write "$HOTPLUG/mode" $mode; done
}

# repeat COMMAND while a device comes
hot_during() {
	hot_bind "$FIRST" &
	until has_calls hotplug; do :; done
	while has_calls hotplug; do "$@"; done
	wait
	hot_look
	hot_gone "$FIRST"
}

# meanwhile the path is switched, or the module loaded and unloaded
hot_in_the_middle() {
	hot_seen hot_plain
	without=$SEEN
	load memmap=off hotplug=on fault=slow
	hot_again switched hot_during hot_switch
	check "switched: nobody inside" [ "$(stat_of hotplug inflight)" = 0 ]
	hot_again unloaded hot_during must remove
	rm -f /tmp/done
	(
		for _ in 1 2 3 4; do
			must hot_bind "$FIRST"
			must bmmplug offline "$HOT"
			hot_unbind "$FIRST"
		done
		echo >/tmp/done
	) &
	until [ -e /tmp/done ]; do load memmap=off hotplug=on; done
	wait
	must remove
	hot_again reloaded hot_plain
}

hot_hooks() {
	for symbol in set_zone_contiguous __pageblock_pfn_to_page; do
		symbol_missing hotplug $symbol
	done
	must remove
	hot_seen hot_plain
	without=$SEEN
	for symbol in move_pfn_range_to_zone remove_pfn_range_from_zone; do
		load memmap=off hotplug=on fault_symbol=$symbol
		check "$symbol missing: in part" \
			reads "$HOTPLUG/mode" "off [on]"
		hot_again "$symbol missing" hot_plain
		check "$symbol missing: walks are saved" \
			[ "$(stat_of hotplug hits)" -gt 0 ]
	done
	# prove that the check can fail
	load memmap=off hotplug=on fault=wrong
	hot_plain
	IFS=, read -r equal other <"$PARAMETERS/fault_answers"
	check "wrong answers are seen" [ "$equal" = 0 -a "$other" -gt 0 ]
	must remove
}

# a device inside a section of RAM, where the architecture can be told so
hot_neighbours() {
	NEIGHBOUR=
	[ "$(uname -m)" = x86_64 ] || return 0
	for at in /sys/bus/nd/devices/ndbus*; do
		[ "$(cat "$at/provider")" != e820 ] || break
	done
	# it has struct pages already
	for at in "$at"/region*/namespace[0-9]*; do NEIGHBOURS=${at##*/}; done
	NEIGHBOUR=/sys/bus/nd/drivers/nd_pmem
	[ -e "$NEIGHBOUR/$NEIGHBOURS" ] || fail "no device inside of a section"
}

hot_two_devices() {
	labels -b ACPI.NFIT
	# shellcheck disable=SC2153 # by the job
	size=$((SIZE * 1024 / 2 - (64 << 20)))
	for _ in 1 2; do
		must ndctl create-namespace -b ACPI.NFIT -m devdax -M mem \
			-a 2M -s $size
	done
	hot_dax
	# shellcheck disable=SC2086 # names
	set -- $DAX
	FIRST=$1 SECOND=$2
}

hot_faults() {
	hot_policy "$ONLINE"
	hot_neighbours
	hot_two_devices
	hot_virtio 0
	must hot_bind "$FIRST"
	WHOLE=$(hot_total)
	hot_gone "$FIRST"
	hot_hooks
	hot_in_the_middle
	hot_case "block refused" hot_not_online
	hot_case "no struct pages" hot_no_memory
	hot_case "off beside on" hot_beside
	hot_case "at once" hot_at_once
	hot_case "hole filled" hot_filled
	# arm64 refuses to take such blocks offline one by one, because they
	# share an entry in the memory map's page table
	[ "$(uname -m)" != x86_64 ] ||
		hot_case "own struct pages" hot_own_memmap
	hot_case "auto-movable" hot_auto_movable
	hot_case "mixed zones" hot_mixed
	hot_case "mixed nodes" hot_nodes
	[ -z "$NEIGHBOUR" ] || hot_case "device neighbour" hot_neighbour
}
