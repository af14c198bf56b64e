# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
# How long clearing keeps the CPU from other tasks. The host decides what to
# expect.

LATE_PERIOD=500 # us between two reads of the clock

# report the preemption model; MODEL, if not empty, is what it must be
preemption() {
	if [ -e /sys/kernel/debug/sched/preempt ]; then
		choices=$(cat /sys/kernel/debug/sched/preempt)
		model=${choices#*(}
		model=${model%)*}
	else
		choices=$(uname -v)
		model=none
		[ "${choices#* PREEMPT }" = "$choices" ] || model=preempt
	fi
	[ "${1:-$model}" = "$model" ] ||
		fail "this kernel does not do preempt=$1: it has $choices"
	report preemption model="$model" choices="$choices"
}

# bring the module into the state of an arm: off, computed, or a unit in MiB
unit_arm() {
	bytes=0
	case $1 in
	off)
		clear_arm off
		;;
	computed)
		clear_arm auto
		;;
	*)
		clear_arm auto
		bytes=$((${1%m} << 20))
		;;
	esac
	must_write "$CLEAR/unit_bytes" $bytes
	ARM=$1
}

# the counters of units since the write to reset_orders: GAP UNITS OVER
gaps() {
	GAP=0 UNITS=0 OVER=0
	for at in "$CLEAR"/order*; do
		read -r longest <"$at/longest_ns"
		read -r units <"$at/units"
		read -r over <"$at/over"
		[ "$longest" -le "$GAP" ] || GAP=$longest
		UNITS=$((UNITS + units)) OVER=$((OVER + over))
	done
}

# a task waits for the CPU while folios are faulted in: WAY OPTION... (of
# bmmfault)
late() {
	way=$1
	shift
	must_write "$CLEAR/reset_orders" 0
	must bmmlate $LATE_PERIOD bmmfault -f "$@" "$KIND" "$KIB" "$way"
	gaps
	# shellcheck disable=SC2086 # "folios=... late_ns=...", as must() left it
	report late arm="$ARM" kib="$KIB" way="$way" gap_ns="$GAP" \
		units="$UNITS" over="$OVER" $SAID
}

# each backend in turn, with a module that has measured nothing; while the
# tracepoint is on, all units are timed: WAY OPTION...
bounds() {
	for list in cached streaming; do
		clear_unload
		clear_arm $list
		clearing 1
		file="$CLEAR/backend_"$list
		for name in fastest $(backend_names "$file") fastest; do
			must_write "$file" "$name"
			bound "$@"
		done
		clearing 0
	done
}

bound() {
	way=$1
	shift
	must_write "$CLEAR/reset_orders" 0
	read -r ns0 <"$CLEAR/ns"
	read -r bytes0 <"$CLEAR/bytes"
	must bmmfault "$@" "$KIND" "$KIB" "$way"
	read -r ns <"$CLEAR/ns"
	read -r bytes <"$CLEAR/bytes"
	read -r wanted <"$CLEAR/latency_us"
	gaps
	report bound list="$list" backend="$name" gap_ns="$GAP" units="$UNITS" \
		over="$OVER" ns=$((ns - ns0)) bytes=$((bytes - bytes0)) \
		latency_us="$wanted"
}

# what the tracepoint reports of a page that is populated in units of BYTES
traced() {
	clear_arm auto
	must_write "$CLEAR/unit_bytes" "$1"
	clearing 1
	must_write "$TRACING/trace" ""
	must bmmfault -f "$KIND" "$KIB" map-populate
	clearing 0
	line=$(grep -m 1 -o ' clear: .*' "$TRACING/trace") || fail "no trace"
	# shellcheck disable=SC2086 # "pfn=... order=..."
	report traced ${line# clear: }
}
