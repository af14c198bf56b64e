# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
# Everything at once, and all of it verified: stress-ng's memory workers, which
# check what they stored; huge pages that must be zero; a device that goes down
# and up; while paths and backends are switched and the module is reloaded.

STRESS_TURNS=5 # through all modes, each time the module is loaded

# SECONDS
stress_workers() {
	(
		/usr/bin/stress-ng --verify --timeout "$1" --vm 2 \
			--vm-bytes 96m --vm-method all --mmap 1 \
			--mmap-bytes 64m \
			--mremap 1 --mremap-bytes 32m --fork 1 --pipe 1 \
			--yaml /tmp/stress.yaml --metrics >/tmp/stress.said 2>&1
		echo $? >/tmp/stress.code
	) &
}

# a device goes down and up until the end
stress_binds() {
	binds=0
	while [ ! -e /tmp/stress.over ]; do
		down
		up || : >/tmp/stress.unbound
		binds=$((binds + 1))
		echo $binds >/tmp/stress.binds
	done
}

# switch every path through every mode
stress_turn() {
	turn
	for mode in off on; do must_write "$MEMMAP/mode" $mode; done
	for mode in off pte block; do must_write "$VMAP/mode" $mode; done
	must_write "$BULKMM/off" 1
	must_write "$MEMMAP/mode" on
	must_write "$VMAP/mode" block
	must_write "$CLEAR/mode" auto
}

# SECONDS
stress() {
	down
	up
	snapshot
	folios thp 64
	echo madvise >"$HUGE/hugepages-2048kB/enabled"
	echo always >"$HUGE/enabled"
	stress_workers "$1"
	stress_binds &
	(
		bmmfault -t "$1" -u /tmp/stress.over -b 4 thp 2048 write-middle \
			read fork >/tmp/soaker.1.said 2>&1
		echo $? >/tmp/soaker.1.code
	) &
	loads=0 turns=0 served=0
	while [ ! -e /tmp/stress.code ] || [ $loads -lt 2 ]; do
		suite_arm on
		for _ in $(seq $STRESS_TURNS); do
			stress_turn
			turns=$((turns + 1))
		done
		counted
		served=$((served + HITS))
		suite_arm absent
		loads=$((loads + 1))
	done
	: >/tmp/stress.over
	wait
	read -r code </tmp/stress.code
	check "stress-ng verifies all that it stored" [ "$code" = 0 ]
	[ "$code" = 0 ] || report stress-said what="$(tail -n 5 /tmp/stress.said)"
	awk '/stressor:/ { name = $3 } /bogo-ops:/ { print name, $2 }' \
		/tmp/stress.yaml >/tmp/stress.ops
	while read -r name ops; do
		check "stress-ng $name worked" [ "$ops" -gt 0 ]
		report stress-ops name="$name" ops="$ops"
	done </tmp/stress.ops
	read -r code </tmp/soaker.1.code
	read -r said </tmp/soaker.1.said
	[ "$code" = 0 ] || fail "$said"
	case " $said " in *" wrong=0 "*) ok=yes ;; *) ok=no ;; esac
	report check name="huge pages: every byte zero" ok=$ok detail="$said"
	check "huge pages: served meanwhile" [ $served -gt 0 ]
	read -r binds </tmp/stress.binds
	check "device: always came up" [ ! -e /tmp/stress.unbound ]
	check "device: same bytes" same
	report stress loads=$loads turns=$turns binds="$binds" hits=$served
}
