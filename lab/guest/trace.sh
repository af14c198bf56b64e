# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
# The kernel's tracing: the module's tracepoint of clearing, and function_graph,
# which shows where an operation spends its time.

TRACING=/sys/kernel/tracing
CLEARS=$TRACING/events/bulkmm/clear

# trace each folio that the module clears while COMMAND runs
clearing() {
	must_write $TRACING/trace ""
	must_write "$CLEARS/enable" 1
	must "$@"
	must_write "$CLEARS/enable" 0
}

# trace these functions, if the kernel has them: "FUNCTION..." Set by index: for a
# name the kernel would look up the names of all functions.
graph_begin() {
	echo 16384 >$TRACING/buffer_size_kb
	if [ "$GRAPHED" != "$1" ]; then
		GRAPHED=$1
		awk -v wanted="$1" '
		BEGIN { for (n = split(wanted, name); n; n--) is[name[n]] }
		$1 in is { print NR }' $TRACING/available_filter_functions \
			>$TRACING/set_ftrace_filter
	fi
	echo function_graph >$TRACING/current_tracer
	echo 1 >$TRACING/options/funcgraph-tail
	echo 1 >$TRACING/options/funcgraph-proc
	: >$TRACING/trace
	echo 1 >$TRACING/tracing_on
}

# summarise a trace ("CPU) TASK-PID | 1.5 us | func() {") as
# "FUNCTION=CALLS:NS:OWN ", where OWN excludes other traced functions it calls
graph_sums() {
	awk -F '|' '
	/^#/ || NF < 3 { next }
	{
		who = $1
		sub(/^ *[0-9]+\)/, "", who)
		us = match($2, /[0-9.]+ us/) ? substr($2, RSTART) + 0 : 0
	}
	$3 ~ /[)] [{]/ { inner[who, ++depth[who]] = 0; next }
	{
		name = $3
		gsub(/[^A-Za-z0-9_.]/, "", name)
		own = us
		if ($3 ~ /[}]/) {
			if (!depth[who]) next
			own -= inner[who, depth[who]--]
		}
		inner[who, depth[who]] += us
		n[name]++; all[name] += us; self[name] += own < 0 ? 0 : own
	}
	END {
		for (f in n)
			printf "%s=%d:%.0f:%.0f ", f, n[f], all[f] * 1000,
				self[f] * 1000
	}' $TRACING/trace
}

# report the trace of an operation that took NS: OPERATION NS
graph_end() {
	echo 0 >$TRACING/tracing_on
	report graph arm="$ARM" operation="$1" ns="$2" functions="$(graph_sums)" \
		lost="$(cat $TRACING/per_cpu/cpu*/stats |
			awk '/^overrun/ { n += $2 } END { print n + 0 }')"
	echo nop >$TRACING/current_tracer
}
