# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
# Commands of the scenario pool-grow: a pool of huge pages on two nodes, grown by the
# kernel and by the command, which is in /command.

KINDS=hugepages/hugepages-2048kB
KEPT=3 # a limit of surplus pages that the operator set

# the pool and its limit, and the pages of each node
pool_state() {
	(
		cd /sys/kernel/mm/$KINDS &&
			cat nr_hugepages free_hugepages surplus_hugepages \
				resv_hugepages nr_overcommit_hugepages &&
			cat /sys/devices/system/node/node[01]/$KINDS/nr_hugepages
	) | tr '\n' ' '
}

surplus() {
	cat /sys/kernel/mm/$KINDS/surplus_hugepages
}

no_surplus() {
	[ "$(surplus)" = 0 ]
}

# the pool has been changed: WHAT PAGES
pool_exact() {
	check "$1: the pool is exact" \
		[ "$(pool_state)" = "$2 $2 0 0 $KEPT $(($2 / 2)) $(($2 / 2)) " ]
}

# replaces the shell: PAGES JOBS
grow() {
	cd /command && exec python3.13 -m bulkmm.cli pool grow --page 2M \
		--size $(($1 * 2))M --jobs "$2" --json
}

uptime_ns() {
	awk '{ printf "%.0f", $1 * 1e9 }' /proc/uptime
}

# grow the pool, report how long it took, and empty it: PAGES JOBS, 0 for the kernel
pool_grow() {
	if [ "$2" = 0 ]; then
		began=$(uptime_ns)
		must_write /sys/kernel/mm/$KINDS/nr_hugepages "$1"
		ns=$(($(uptime_ns) - began))
	else
		must grow "$@"
		# without Python's start, which is emulated
		ns=$(echo "$SAID" | sed -n 's/.*"seconds": *\([0-9.]*\).*/\1/p' |
			awk '{ printf "%.0f", $1 * 1e9 }')
	fi
	report pool-grown jobs="$2" ns="$ns" pages="$1"
	pool_exact "$2 jobs" "$1"
	must_write /sys/kernel/mm/$KINDS/nr_hugepages 0
}

# end it while it grows the pool; a signal that can be caught leaves the pool as it
# was, another one does so once the next run is over: SIGNAL PAGES
pool_ended() {
	(grow "$2" 1) >/tmp/grown 2>&1 &
	until [ "$(surplus)" -gt 8 ]; do
		kill -0 $! || fail "pool grow: ended too early: $(cat /tmp/grown)"
	done
	kill -"$1" $!
	wait $!
	code=$?
	await no_surplus
	case $1 in
	TERM) check "$1: said by the exit code" [ $code = 130 ] ;;
	*)
		must grow 4 2
		pool_exact "$1, next run" 4
		must_write /sys/kernel/mm/$KINDS/nr_hugepages 0
		;;
	esac
	pool_exact "$1" 0
}
