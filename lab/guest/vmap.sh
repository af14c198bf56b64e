# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
# Commands of a vmap job: the host decides shapes, order and what to expect;
# bulkmm_vmaptest.ko maps, times and judges.

VMAP=/sys/kernel/bulkmm/vmap
VMAPTEST=/sys/kernel/debug/bulkmm_vmap

# run a command of the test module; its answer goes to stdout
ask() {
	exec 4<>$VMAPTEST || fail "no $VMAPTEST"
	echo "$*" >&4 || fail "$* is refused"
	cat <&4
	exec 4>&-
}

# bring bulkmm.ko into the state of an arm: absent or a mode
vmap_arm() {
	ARM=$1
	if [ "$1" = absent ]; then
		vmap_unload
		return
	fi
	[ -d $VMAP ] || must insmod /lib/modules/bulkmm.ko memmap=off hotplug=off \
		"vmap=$1"
	[ -d $VMAP ] || fail "the module has no vmap path"
	must_write $VMAP/mode "$1"
	read -r mode <$VMAP/mode
	case " $mode " in
	*" [$1] "*) ;;
	*) fail "mode reads '$mode' after writing $1" ;;
	esac
	report vmap-hooks arm="$1" hook="$(tr '\n' ' ' <$VMAP/hook)"
}

# the counters go with the module, so they are sent before each unload
vmap_unload() {
	[ -d $VMAP ] || return 0
	# shellcheck disable=SC2046 # "hits=... bytes=..."
	report vmap-counters mode="$(cat $VMAP/mode)" \
		hook="$(tr '\n' ' ' <$VMAP/hook)" $(stats_of vmap)
	must remove
}

# the path's counters of requests: HITS served, SEEN in all
vmap_counted() {
	HITS=0 SEEN=0
	[ -d $VMAP ] || return 0
	while read -r stat value; do
		case $stat in
		hits) HITS=$value ;;
		fallback_*) SEEN=$((SEEN + value)) ;;
		esac
	done <$VMAP/stats
	SEEN=$((SEEN + HITS))
}

# set the page array to map from now on
shape() {
	said=$(ask shape "$@") || exit
	# shellcheck disable=SC2086 # "pages=... runs=..."
	report shape words="$*" $said
}

# time samples of several calls each: LABEL RESULT WHAT CALLS SAMPLES...
timed() {
	label=$1 result=$2
	shift 2
	vmap_counted
	before=$HITS
	said=$(ask time "$@") || exit
	vmap_counted
	# shellcheck disable=SC2086 # "map=1,2,3 unmap=4,5,6"
	report visit label="$label" arm="$ARM" result="$result" \
		hits=$((HITS - before)) $said
}

# compare random page arrays with the model: LABEL LARGE ARRAYS SEED...
checked() {
	label=$1
	shift
	vmap_counted
	before=$HITS
	said=$(ask check "$@") || exit
	vmap_counted
	# shellcheck disable=SC2086 # "arrays=... first=none"
	report checked label="$label" arm="$ARM" hits=$((HITS - before)) $said
}

# call each public entry once: PHYSICAL ADDRESS (for ioremap) ENTRY...
entries() {
	phys=$1
	shift
	for entry in "$@"; do
		vmap_counted
		hits=$HITS seen=$SEEN
		ask enter "$entry" "$phys" || exit
		vmap_counted
		report entry arm="$ARM" name="$entry" hits=$((HITS - hits)) \
			seen=$((SEEN - seen))
	done
}

# report the test module's verdicts, one event each: COMMAND...
ktap() {
	ask "$@" >/tmp/ktap || exit
	while read -r verdict line; do
		case $verdict in
		ok | not) report ktap arm="$ARM" of="$1" line="$verdict $line" ;;
		[0-9]*) report ktap-plan arm="$ARM" of="$1" plan="${verdict#1..}" ;;
		esac
	done </tmp/ktap
}

# make a request that the kernel warns of; the host reads the log between marks
bad() {
	warnings "of $1 in $ARM begin"
	ktap bad "$1"
	warnings end
}

# run the kernel's own lib/test_vmalloc.c, which never stays loaded: OPTION...
upstream() {
	warnings "of test_vmalloc in $ARM begin"
	dmesg | grep -c 'Summary: ' >/tmp/before
	bmmguest load /lib/modules/test_vmalloc.ko "$*" >/tmp/said 2>&1
	grep -q 'Resource temporarily unavailable' /tmp/said ||
		fail "test_vmalloc: $(cat /tmp/said)"
	warnings end
	read -r before </tmp/before
	dmesg | grep -o 'Summary: .*' | tail -n +$((before + 1)) >/tmp/summary
	while read -r line; do
		report upstream arm="$ARM" line="$line"
	done </tmp/summary
}

# start a process that maps and unmaps until told to stop: NUMBER SEED
mapper() {
	piece=0
	until [ -e /tmp/soaked ]; do
		ask soak 1 $((2 * ($2 + piece) + $1)) >>/tmp/soaker."$1" || exit
		piece=$((piece + 1))
	done
}

# two processes map and unmap for SECONDS and until two loads are done, while
# modes are switched and the module reloaded: SECONDS SEED MODE... (none: the
# module is not loaded)
vmap_soak() {
	seed=$2 loads=0 turns=0 served=0 end=$(($(date +%s) + $1))
	shift 2
	least=$(($# ? 2 : 0))
	for one in 1 2; do
		mapper $one "$seed" &
	done
	while [ "$(date +%s)" -lt $end ] || [ $loads -lt $least ]; do
		[ $# -gt 0 ] || { sleep 1; continue; }
		vmap_arm "$1"
		for _ in 1 2 3 4 5; do
			for mode in "$@"; do
				must_write $VMAP/mode "$mode"
				usleep 20000 # a few arrays in each
			done
			turns=$((turns + 1))
		done
		vmap_counted
		served=$((served + HITS))
		vmap_arm absent
		loads=$((loads + 1))
	done
	: >/tmp/soaked
	wait
	for one in 1 2; do
		while read -r said; do
			# shellcheck disable=SC2086 # "arrays=... first=none"
			report checked label="soak-$one" arm=toggled hits=0 $said
		done </tmp/soaker.$one
	done
	report soak turns=$turns loads=$loads hits=$served
}
