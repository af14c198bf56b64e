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

# a task waits for the CPU while folios are faulted in: WAY OPTION... (of
# bmmfault)
late() {
	way=$1
	shift
	must bmmlate $LATE_PERIOD bmmfault -f "$@" "$KIND" "$KIB" "$way"
	report_said late kib="$KIB" way="$way"
}

# each backend in turn, as the tracepoint sees it: WAY OPTION...
bounds() {
	for mode in cached streaming; do
		state $mode clear=$mode
		must_write "$CLEAR/latency_us" 1000
		forced $mode bound "$@"
		FORCED=fastest
		bound "$@"
		FORCED=
	done
}

# the longest and the largest unit, and what was cleared in how long
bound() {
	way=$1
	shift
	clearing bmmfault "$@" "$KIND" "$KIB" "$way"
	# shellcheck disable=SC2046 # "gap_ns=... unit=..."
	report bound list="$mode" backend="$FORCED" latency_us=1000 $(awk '
	/ clear: / {
		for (i = 1; i <= NF; i++) {
			split($i, of, "=")
			sum[of[1]] += of[2]
			if (of[2] > most[of[1]] + 0)
				most[of[1]] = of[2]
		}
	}
	END {
		print "gap_ns=" most["gap"] + 0, "unit=" most["unit"] + 0
		print "ns=" sum["ns"] + 0, "bytes=" sum["bytes"] + 0
	}' "$TRACING/trace")
}

# what the tracepoint reports of a page that is populated with no time to spare
traced() {
	state auto clear=auto
	must_write "$CLEAR/latency_us" 0
	clearing bmmfault -f "$KIND" "$KIB" map-populate
	must_write "$CLEAR/latency_us" 1000
	line=$(grep -m 1 -o ' clear: .*' "$TRACING/trace") || fail "no trace"
	# shellcheck disable=SC2086 # "pfn=... order=..."
	report traced ${line# clear: }
}
