# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
# Paths are switched on and off and the module comes and goes, while huge pages
# are faulted in and a device goes down and up. Meanwhile function tracers, a live
# patch, BPF and kprobes come and go on the same functions; then CPUs are held in
# the middle of ftrace's list (lab/guest/module/walk.c). At the end ftrace and the module
# must work as at the beginning.

OPTIMIZE=/proc/sys/debug/kprobes-optimization
STORM_FUNCTIONS="memmap_init_zone_device $HOOKED_CLEAR set_zone_contiguous
vmap_small_pages_range_noflush"

# repeat COMMAND until the end, and count what succeeds: NAME COMMAND...
storm_actor() {
	name=$1 times=0
	shift
	while [ ! -e /tmp/storm.over ]; do
		"$@" >/dev/null 2>&1 && times=$((times + 1))
		echo $times >"/tmp/storm.$name"
	done
}

# up to half a second
storm_pause() {
	sleep "0.$(($(od -An -N1 -tu1 /dev/urandom) % 50 + 10))"
}

# trace functions for a while: INSTANCE (a directory)
storm_tracer() {
	write "$1/current_tracer" function || return 1
	storm_pause
	write "$1/current_tracer" nop
	storm_pause
}

# another user for a while: KIND [FUNCTION]
storm_user() {
	user_begin "$@" || return 1
	storm_pause
	user_end "$@"
}

storm_bpf() {
	user_begin fentry set_zone_contiguous || return 1
	storm_pause
	rm "$PIN" "$PIN-calls"
}

storm_device() {
	up
	down
}

# fault huge pages in, which must be zero
storm_faults() {
	said=$(bmmfault -n 4 -b 4 hugetlb 2048 write-middle) || return 1
	matches "$said" " wrong=0 " || echo "$said" >/tmp/storm.wrong
}

# load, switch, unload; what others have is not to be had meanwhile
storm_turn() {
	[ ! -d "$BULKMM" ] || remove || return 1
	insmod /lib/modules/bulkmm.ko memmap=on clear=auto vmap=pte hotplug=on \
		|| return 1
	for _ in 1 2 3; do
		for path in clear memmap vmap hotplug; do
			read -r modes <"$BULKMM/$path/mode"
			on=$(echo "$modes" | tr -d '[]' | cut -d ' ' -f 2)
			write "$BULKMM/$path/mode" off || return 1
			write "$BULKMM/$path/mode" "$on"
		done
	done
	write "$BULKMM/off" 1 || return 1
	write "$MEMMAP/mode" on
	remove
}

# call a short function, and sleep: grace periods of RCU tasks wait for each task
# to do so
storm_map() {
	write "$LAB/map" 1 && usleep 1
}

# switch its path, again and again
storm_switch() {
	[ -d "$BULKMM" ] ||
		insmod /lib/modules/bulkmm.ko memmap=off hotplug=off || return 1
	write "$BULKMM/vmap/mode" pte || return 1
	storm_pause # until walks are held
	write "$BULKMM/vmap/mode" off
}

# let actors act for a while: NAME SECONDS ACTOR...
storm_phase() {
	phase=$1 seconds=$2
	shift 2
	rm -f /tmp/storm.over
	for actor in "$@"; do
		case $actor in
		all_*) storm_actor "$actor" storm_tracer "$TRACING/instances/$actor" & ;;
		hooked) storm_actor hooked storm_tracer "$TRACING" & ;;
		map_*) storm_actor "$actor" storm_map & ;;
		kprobe) storm_actor kprobe storm_user kprobe "$HOOKED_CLEAR" & ;;
		livepatch) storm_actor livepatch storm_user livepatch & ;;
		*) storm_actor "$actor" "storm_$actor" & ;;
		esac
	done
	sleep "$seconds"
	: >/tmp/storm.over
	[ "$phase" != held ] || must_write "$LAB/hold_walk" 0
	wait
	for actor in "$@"; do
		times=$(cat "/tmp/storm.$actor")
		check "$phase: $actor succeeded, $times times" [ "$times" -gt 0 ]
	done
	[ ! -d "$BULKMM" ] || remove
}

# SECONDS
storm() {
	[ -e "$DRIVER/$DEVICE" ] || up
	snapshot
	down
	mount -t bpf bpf /sys/fs/bpf
	folios hugetlb 2048 8
	mkdir "$TRACING/instances/all_1" "$TRACING/instances/all_2"
	for function in $STORM_FUNCTIONS; do
		echo "$function" >>"$TRACING/set_ftrace_filter"
	done
	patch=livepatch
	[ -d /sys/kernel/livepatch ] || patch=
	# shellcheck disable=SC2086 # a word or none
	storm_phase shared $(($1 / 2)) all_1 all_2 hooked bpf kprobe device \
		faults turn $patch
	check "held: a tracer" write "$TRACING/current_tracer" function
	# kprobes where vmap is hooked, so that no patch site changes
	must insmod /lib/modules/bulkmm.ko memmap=off hotplug=off vmap=pte
	while read -r _ function _; do
		echo "p:bmm_${function%:} ${function%:}"
	done <"$BULKMM/vmap/hook" >>"$TRACING/kprobe_events"
	check "held: kprobes" write "$TRACING/events/kprobes/enable" 1
	# kprobe_optimizer() holds text_mutex for a grace period of RCU tasks, which
	# is longer than a walk is held (kernel/kprobes.c, 6.12 and 7.3; not on arm64)
	[ ! -e "$OPTIMIZE" ] || must_write "$OPTIMIZE" 0
	must_write "$LAB/hold_walk" 2000
	storm_phase held $(($1 / 2)) map_1 map_2 map_3 switch
	write "$TRACING/events/kprobes/enable" 0
	write "$TRACING/kprobe_events" ""
	write "$TRACING/current_tracer" nop
	held=$(cat "$LAB/hold_walk")
	check "held: walks of ftrace's list, $held" [ "$held" -gt 0 ]
	check "huge pages: every byte zero" [ ! -e /tmp/storm.wrong ]
	check "nothing is hooked any more" refused grep -q bmm_ "$HOOKED"
	load memmap=on
	check "ftrace works: attached" hook_says 0
	comes_up "ftrace works" 1
	must remove
}
