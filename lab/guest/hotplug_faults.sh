# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
# Everything that can go wrong around the hotplug path, provoked one by one.
# Each case runs twice, without the module and with it. Zones of odd shapes are left
# to tests/module/zonesim.c, which compares every answer with a whole walk.

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

# run a case without the module and with it: NAME COMMAND...
hot_case() {
	what=$1
	shift
	hot_seen "$@"
	without=$SEEN
	load memmap=off hotplug=on
	hot_again "$what" "$@"
	check "$what: walks were saved" [ "$(stat_of hotplug hits)" -gt 0 ]
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

# blocks leave an end of the zone while it is contiguous, while it has a hole, and
# once the hole is filled
hot_ends() {
	must hot_bind "$FIRST"
	hot_list
	hot_set offline 0 1 4 2
	hot_set online_movable 4
	hot_set offline 3
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
	hot_seen hot_ends
	without=$SEEN
	for symbol in move_pfn_range_to_zone remove_pfn_range_from_zone; do
		load memmap=off hotplug=on fault_symbol=$symbol
		check "$symbol missing: in part" \
			reads "$HOTPLUG/mode" "off [on]"
		hot_again "$symbol missing" hot_ends
		check "$symbol missing: walks are saved" \
			[ "$(stat_of hotplug hits)" -gt 0 ]
	done
	# prove that the check can fail
	load memmap=off hotplug=on fault=wrong
	hot_seen hot_ends
	check "wrong answers are seen" [ "$SEEN" != "$without" ]
	must remove
}

hot_two_devices() {
	labels
	# shellcheck disable=SC2153 # by the job
	size=$((SIZE * 1024 / 2 - (64 << 20)))
	for _ in 1 2; do
		must ndctl create-namespace -m devdax -M mem -a 2M -s $size
	done
	hot_dax
	# shellcheck disable=SC2086 # names
	set -- $DAX
	FIRST=$1 SECOND=$2
}

hot_faults() {
	hot_policy "$ONLINE"
	hot_two_devices
	hot_virtio 0
	hot_hooks
	hot_in_the_middle
	hot_case "ends of the zone" hot_ends
	hot_case "block refused" hot_not_online
	hot_case "no struct pages" hot_no_memory
	hot_case "off beside on" hot_beside
	hot_case "at once" hot_at_once
}
