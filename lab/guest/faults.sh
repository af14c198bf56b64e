# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
# Everything that can go wrong around the memmap path, provoked one by one in
# a test build of the module (BMM_FAULTS=1). Each case ends in checks: struct
# pages are as the kernel writes them, byte for byte; the counter agrees; the
# log has the one line and no more.

# provoke a fallback: FAULT COUNTER LINES-IN-THE-LOG
fallback() {
	before=$(lines)
	echo "$1" >"$PARAMETERS/fault"
	comes_up "$1" 0
	echo none >"$PARAMETERS/fault"
	check "$1: fallback counted" [ "$(counter "fallback_$2")" = 1 ]
	check "$1: lines in the log" [ $(($(lines) - before)) = "$3" ]
}

# begin a bring-up that stays inside for a while: FAULT
begin_bringup() {
	echo "$1" >"$PARAMETERS/fault"
	down
	up &
	until has_calls memmap; do :; done
}

# repeat COMMAND in the middle of a slowed-down bring-up: NAME COMMAND...
during_bringup() {
	what=$1
	shift
	begin_bringup slow
	while has_calls memmap; do "$@"; done
	wait
	check "$what: same bytes" same
	check "$what: nobody inside" matches "$(counter inflight)" '^0*$'
}

# switch through values of a file, and all backends: FILE VALUE...
toggle() {
	file=$1
	shift
	for value; do write "$MEMMAP/$file" "$value"; done
	every_backend "$MEMMAP/backend"
}

case_unknown_names() {
	load memmap=on
	before=$(lines)
	check "unknown mode is refused" refused write "$MEMMAP/mode" bad
	check "unknown backend is refused" refused write "$MEMMAP/backend" bad
	check "a second line is refused" refused write "$MEMMAP/backend" "generic
bad"
	check "one line each" [ $(($(lines) - before)) = 3 ]
	check "mode stays" reads "$MEMMAP/mode" "off [on]"
}

case_missing_symbol() {
	for symbol in memmap_init_zone_device "$1"; do
		symbol_missing memmap "$symbol"
		comes_up "$symbol missing" -
	done
}

case_busy() {
	write "$LAB/squat" 1
	load
	check "busy: hook says so" grep -q '^-16 ' "$MEMMAP/hook"
	check "busy: on is refused" refused write "$MEMMAP/mode" on
	comes_up "busy" -
	write "$LAB/squat" 0
	check "free again: on is taken" write "$MEMMAP/mode" on
	comes_up "free again" 1
	check "free again: the function cannot be taken" \
		refused write "$LAB/squat" 1
}

case_fallbacks() {
	load
	fallback unverified unverified 1
	fallback nomem nomem 1
	fallback tracepoint tracepoint 1
	echo 1000000000 >"$PARAMETERS/memmap_min_pages"
	fallback none small 0
	echo 131072 >"$PARAMETERS/memmap_min_pages"
	comes_up "no fault" 1
	load memmap_verify=always
	fallback nomem-verify nomem 1
}

case_backends() {
	load
	forced=0
	for name in $(backend_names "$MEMMAP/backend") fastest; do
		check "$name is taken" write "$MEMMAP/backend" "$name"
		forced=$((forced + 1))
		comes_up "$name" -
	done
	check "backends: more than one" [ $forced -gt 2 ]
	check "backends: all served" [ "$(counter hits)" = $forced ]
}

# which CPU ran most workers, while a task of node 0 brings the device up:
# the scheduler may move one
members() {
	event=$TRACING/events/workqueue/workqueue_execute_start
	must_write "$TRACING/trace" ""
	must_write "$event/enable" 1
	for _ in 1 2 3 4; do
		down
		up taskset 1
	done
	must_write "$event/enable" 0
	sed -n 's/.*\[\([0-9]*\)\].* memmap_worker_run.*/\1/p' "$TRACING/trace" |
		sort | uniq -c | sort -rn | awk 'NR == 1 { print $2 + 0 }'
}

# several CPUs stamp, and the module is unloaded meanwhile
case_workers() {
	load
	check "workers: the memory's node has no CPU" [ ! \
		"$(cat /sys/devices/system/node/node2/cpulist)" ]
	check "workers: the device is on it" \
		grep -qx 2 "/sys/bus/nd/devices/$DEVICE/numa_node"
	for bad in 33 -1 many 99999999999999999999; do
		check "workers: $bad is refused" \
			refused write "$MEMMAP/workers" $bad
	done
	check "workers: as it was" [ "$(cat "$MEMMAP/workers")" = 0 ]
	for workers in 2 3 32; do
		write "$MEMMAP/workers" $workers
		before=$(counter shared_bytes)
		# where the host is busy, a CPU may come when all is done
		for _ in 1 2 3 4 5; do
			comes_up "workers $workers" -
			[ "$(counter shared_bytes)" = "$before" ] || break
		done
		check "workers $workers: others stamp" \
			[ "$(counter shared_bytes)" -gt "$before" ]
	done
	check "workers: on the node nearest to the memory" [ "$(members)" = \
		"$(cat /sys/devices/system/node/node1/cpulist)" ]
	# few, so that it takes long enough to be met inside
	write "$MEMMAP/workers" 2
	during_bringup "workers change" toggle workers 1 4 0 3
	write "$MEMMAP/workers" 3
	during_bringup "workers: unloaded" must remove
}

case_toggled() {
	load
	during_bringup toggled toggle mode off on
}

# load and unload at full speed while the device goes down and up
case_reloaded() {
	(i=0; while [ $i -lt 6 ]; do down; must up; i=$((i + 1)); done; echo >/tmp/up) &
	until [ -e /tmp/up ]; do load; done
	wait
	check "reloaded: same bytes" same
}

# an operator's tracing tools on the same function
case_traced() {
	load
	user_begin function memmap_init_zone_device
	user_begin kprobe memmap_init_zone_device
	comes_up "traced" 1
	check "traced: function tracer saw it" \
		grep -q ' memmap_init_zone_device <-' "$TRACING/trace"
	check "traced: kprobe saw it" grep -q ' bmm: ' "$TRACING/trace"
	user_end kprobe
	user_end function
}

# the PFN in the middle of a device: its DIRECTORY
middle() {
	read -r start <"$1/resource"
	read -r size <"$1/size"
	echo $((start / 4096 + size / 8192))
}

# like "same" for a named device, with a snapshot just taken with the original
same_as_kernel() {
	write "$MEMMAP/mode" off
	write "$DRIVER/bind" "$1"
	# shellcheck disable=SC2034 # for snapshot and same
	MIDDLE=$(middle "$DRIVER/$1")
	snapshot
	write "$DRIVER/unbind" "$1"
	write "$MEMMAP/mode" on
	"$2" "$1" "$3"
	same
}

together() {
	write "$DRIVER/bind" "$1" &
	write "$DRIVER/bind" "$2" &
	wait
	write "$DRIVER/unbind" "$2"
}

beside_removal() {
	write "$DRIVER/bind" "$2"
	write "$DRIVER/bind" "$1" &
	write "$DRIVER/unbind" "$2"
	wait
}

# two devices share a region: both come up at once, then one goes down while the
# other comes up
case_two_devices() {
	down
	must ndctl destroy-namespace -f all
	labels
	read -r free </sys/bus/nd/devices/region0/available_size
	half=$((free / 2 >> 25 << 25)) # libnvdimm needs multiples of 16 MiB
	for _ in 1 2; do
		must ndctl create-namespace -m fsdax -M dev -a 2M -s $half
	done
	devices=
	for at in "$DRIVER"/pfn*; do devices="$devices ${at##*/}"; done
	for at in $devices; do write "$DRIVER/unbind" "$at"; done
	# shellcheck disable=SC2086 # two names
	set -- $devices
	load fault=slow
	for way in together beside_removal; do
		check "two devices $way: first" same_as_kernel "$1" $way "$2"
		write "$DRIVER/unbind" "$1"
		check "two devices $way: second" same_as_kernel "$2" $way "$1"
		write "$DRIVER/unbind" "$2"
	done
	check "two devices: all served" [ "$(counter hits)" = 8 ]
}

faults() {
	[ -e "$DRIVER/$DEVICE" ] || up
	snapshot
	# the pageblock function of 7.x kernels, which 6.12 lacks
	symbol=init_pageblock_migratetype
	grep -q " $symbol$" /proc/kallsyms || symbol=set_pageblock_migratetype
	each_case unknown_names "missing_symbol $symbol" busy fallbacks backends \
		workers toggled reloaded traced two_devices
}
