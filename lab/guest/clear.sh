# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
# Commands of the jobs of path clear.

HUGE=/sys/kernel/mm/transparent_hugepage
THP_2M=$HUGE/hugepages-2048kB/enabled
[ -e $THP_2M ] || THP_2M=$HUGE/enabled # 6.1 has this size only
POOLS=/sys/kernel/mm/hugepages

# allow folios of this kind and of no other size: KIND (thp or hugetlb) KIB POOL
# (hugetlb pages)
folios() {
	KIND=$1 KIB=$2
	for at in "$HUGE"/hugepages-*/enabled; do
		[ ! -e "$at" ] || echo never >"$at"
	done
	# readers get folios of their own, not the shared zero page
	echo 0 >$HUGE/use_zero_page
	echo defer+madvise >$HUGE/defrag
	if [ "$KIND" = thp ]; then
		at=$HUGE/hugepages-${KIB}kB/enabled
		[ "$KIB" != 2048 ] || at=$THP_2M
		echo madvise >"$at" ||
			fail "no huge pages of $KIB KiB"
	else
		pool "$3"
	fi
}

# set the number of hugetlb pages
pool() {
	echo "$1" >"$POOLS/hugepages-${KIB}kB/nr_hugepages"
	read -r have <"$POOLS/hugepages-${KIB}kB/nr_hugepages"
	[ "$have" = "$1" ] || fail "$have of $1 hugetlb pages of $KIB KiB"
}

# does the allocator clear pages too (boot parameter or build option)?
zeroing() {
	case $(dmesg | grep 'mem auto-init:') in
	*'heap alloc:on'*) ALLOCATOR=on ;;
	*'heap alloc:off'*) ALLOCATOR=off ;;
	*) fail "the kernel log does not say if the allocator clears" ;;
	esac
	report zeroing allocator="$ALLOCATOR"
}

# switch path clear, and alloc where the allocator clears: MODE
clear_state() {
	if [ "$ALLOCATOR" = on ]; then
		state "$1" "clear=$1" "alloc=$1?"
	else
		state "$1" "clear=$1"
	fi
}

# start a process that keeps dirtying MIB of free memory
dirty() {
	bmmfault dirty "$1" &
	# shellcheck disable=SC2034 # soak() ends it
	DIRTY=$!
}

# untimed visits use memory tags, where the CPU has them: LABEL
tags() {
	case $1 in
	first | round) ;;
	*) grep -qw mte /proc/cpuinfo && echo -m ;;
	esac
}

# fault folios in by one way: LABEL WAY OPTION... (of bmmfault)
visit() {
	label=$1 way=$2
	shift 2
	# shellcheck disable=SC2046 # nothing, or one option
	visited "visit label=$label backend=$FORCED kib=$KIB way=$way" \
		bmmfault $(tags "$label") "$@" "$KIND" "$KIB" "$way"
}

# make folios resident by a way of bmmfault, counted, and free them dirty; a byte that
# is corrupted on purpose must be seen: FOLIOS WAY
resident() {
	resident=$1
	shift
	[ "$1" != corrupted ] || set -- madvise -p
	bmmfault -c -n "$resident" -b "$resident" "$KIND" "$KIB" "$@"
}

# with each backend of a list forced in turn: LIST (cached or streaming) COMMAND...
forced() {
	list=$CLEAR/backend_$1
	shift
	for FORCED in $(backend_names "$list"); do
		must_write "$list" "$FORCED"
		"$@"
	done
	echo fastest >"$list"
	FORCED=
}

# visit with each backend, and folios of every size served: LIST WAY OPTION...
each_backend() {
	pages=$(cat "$CLEAR/min_pages") which=$1
	shift
	echo 0 >"$CLEAR/min_pages"
	forced "$which" visit forced "$@"
	echo "$pages" >"$CLEAR/min_pages"
}

# four processes of a soak fault folios in: SECONDS
soakers() {
	kib=64
	[ -e $HUGE/hugepages-${kib}kB ] || kib=2048 # 6.1
	folios thp $kib
	echo madvise >$THP_2M
	set -- bmmfault -t "$1" -u /tmp/soaked
	worker 1 "$@" -b 4 thp 2048 write-middle write-last read fork
	worker 2 "$@" -b 8 thp 2048 madv-populate write-first
	worker 3 "$@" -b 4 hugetlb 2048 write-first read madv-populate \
		map-populate memfd fallocate
	worker 4 "$@" -b $((2048 / kib)) thp $kib write-middle madv-populate fork
	(
		while working; do resize; done
		echo 0 >$POOLS/hugepages-2048kB/nr_hugepages
	) &
}

# switch through every mode and every backend
turn() {
	for mode in off auto cached streaming; do
		clear_state $mode
		every_backend "$CLEAR/backend_cached"
		every_backend "$CLEAR/backend_streaming"
	done
}

# Add and remove hugetlb pages. The pause is for unloading: a task that stays in
# the kernel and never sleeps delays the RCU-tasks grace periods that unloading
# waits for, by minutes.
resize() {
	for pages in 48 4 24; do
		echo $pages >$POOLS/hugepages-2048kB/nr_hugepages
	done
	sleep 0.01
}

# calls folio_zero_user() as no fault does, and times that (lab/guest/module/zero.c)
ZERO=/sys/kernel/debug/bulkmm_lab/zero

# clear folios of these orders, with every hint: LABEL CORRUPT ORDER...
cases() {
	label=$1 corrupt=$2
	shift 2
	record before
	for order in "$@"; do
		must_write $ZERO "$order $corrupt"
		must cat $ZERO
		report_said case label="$label" backend="$FORCED"
	done
	record after
	report cases label="$label" arm="$ARM" orders="$*"
}

# likewise with each backend of the mode in turn: ORDER...
cases_by_backend() {
	forced "$ARM" cases forced 0 "$@"
}

# set a file of the clear path: NAME VALUE
tune() {
	must_write "$CLEAR/$1" "$2"
}

# force the backend that stores register by register
plain_stores() {
	case $(uname -m) in
	aarch64) tune backend_cached stp ;;
	*) tune backend_cached plain ;;
	esac
}

# times calls on folios of these orders: CALLS ORDER...
call_times() {
	many=$1
	shift
	for order in "$@"; do
		must_write ${ZERO}_time "$order $many"
		must cat ${ZERO}_time
		report_said calls
	done
}

# Which ways to allocate a folio count as populating.

# an arm's folios of 2 MiB, as the tracepoint reports them: WAY [ARGUMENT...]
# of bmmpin
brought() {
	# the trace has "<...>" for a name that was not saved, when two CPUs trace
	must_write "$CLEARS/filter" 'comm == "bmmpin"'
	clearing bmmpin "$@"
	must_write "$CLEARS/filter" 0
	grep ' order=9 ' "$TRACING/trace" >/tmp/brought
	report brought way="$1" cached_max="$(cat "$CLEAR/cached_max")" \
		streaming="$(grep -c ' streaming=1 ' /tmp/brought)" \
		cached="$(grep -c ' streaming=0 ' /tmp/brought)"
}

# the same for memory that cannot get advice
brought_by_all() {
	must_write "$THP_2M" always
	brought "$@"
	must_write "$THP_2M" madvise
}

# of a guest, where the kernel can
brought_prefaulted() {
	bmmpin kvm-can-prefault
	case $? in
	0) brought kvm-prefault ;;
	3) report brought way=kvm-prefault lacks=KVM_CAP_PRE_FAULT_MEMORY ;;
	*) fail "KVM does not say whether it can fault memory in" ;;
	esac
}

# by a device assigned to a guest: the IOMMU maps the memory, which is pinned
brought_by_device() {
	for device in /sys/bus/pci/devices/*; do
		[ "$(cat "$device/vendor" "$device/device")" != "0x1234
0x11e8" ] || break
	done
	[ -e "$device/iommu_group" ] || fail "no device behind an IOMMU"
	must_write "$device/driver_override" vfio-pci
	must_write /sys/bus/pci/drivers_probe "${device##*/}"
	group=$(readlink "$device/iommu_group")
	brought vfio "${device##*/}" "/dev/vfio/${group##*/}"
}
