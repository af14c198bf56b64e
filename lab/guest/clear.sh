# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
# Commands of a huge-page job. The host decides what to expect of each visit;
# the guest reports what it did and how the counters moved.

CLEAR=/sys/kernel/bulkmm/clear
ALLOC=/sys/kernel/bulkmm/alloc
HUGE=/sys/kernel/mm/transparent_hugepage
POOLS=/sys/kernel/mm/hugepages
SERVED=no

# allow folios of this kind and of no other size: KIND (thp or hugetlb) KIB POOL
# (hugetlb pages)
folios() {
	KIND=$1 KIB=$2
	for at in "$HUGE"/hugepages-*/enabled; do echo never >"$at"; done
	# readers get folios of their own, not the shared zero page
	echo 0 >$HUGE/use_zero_page
	echo defer+madvise >$HUGE/defrag
	if [ "$KIND" = thp ]; then
		echo madvise >"$HUGE/hugepages-${KIB}kB/enabled" ||
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

# bring bulkmm.ko into the state of an arm: absent or a mode
clear_arm() {
	ARM=$1 FORCED='' ALLOC_ON=no
	if [ "$1" = absent ]; then
		clear_unload
		return
	fi
	[ -d "$CLEAR" ] || must insmod /lib/modules/bulkmm.ko hotplug=off \
		"clear=$1"
	[ -d "$CLEAR" ] || fail "the module has no clear path"
	must_write $CLEAR/mode "$1"
	read -r mode <$CLEAR/mode
	case " $mode " in
	*" [$1] "*) ;;
	*) fail "mode reads '$mode' after writing $1" ;;
	esac
	[ "$1" = off ] || SERVED=yes
	[ "$ALLOCATOR" = off ] || alloc_arm "$1"
}

# where the allocator clears, switch path alloc too, if the kernel has it
alloc_arm() {
	echo "$1" 2>/dev/null >$ALLOC/mode || return 0
	[ "$1" = off ] || ALLOC_ON=yes
}

# the counters go with the module, so they are sent before each unload
clear_unload() {
	[ -d "$CLEAR" ] || return 0
	read -r hook <$CLEAR/hook
	# shellcheck disable=SC2046 # "hits=... bytes=..."
	report clear-counters served=$SERVED hook="$hook" $(stats_of clear) \
		cached="$(cat $CLEAR/backend_cached)" \
		streaming="$(cat $CLEAR/backend_streaming)"
	must remove
	SERVED=no
}

# the module's counters: HITS of folio_zero_user(), hits of the allocator as
# ALLOCATED, SMALL requests, and those that FELL back otherwise (off excepted)
counted() {
	HITS=0 SMALL=0 FELL=0 ALLOCATED=0
	[ -d "$CLEAR" ] || return 0
	while read -r stat value; do
		case $stat in
		hits) HITS=$value ;;
		fallback_off) ;;
		fallback_small) SMALL=$value ;;
		fallback_*) FELL=$((FELL + value)) ;;
		esac
	done <$CLEAR/stats
	ALLOCATED=$(stat_of alloc hits)
}

# start a process that keeps dirtying MIB of free memory
dirty() {
	bmmfault dirty "$1" &
	DIRTY=$!
}

# untimed visits use memory tags, where the CPU has them: LABEL
tags() {
	case $1 in
	first | round) ;;
	*) grep -qw mte /proc/cpuinfo && echo -m ;;
	esac
}

# fault folios in by one way, report the result and how the counters moved:
# LABEL WAY OPTION... (of bmmfault)
visit() {
	label=$1 way=$2
	shift 2
	counted
	hits=$HITS small=$SMALL fell=$FELL alloc=$ALLOCATED least=0
	# shellcheck disable=SC2046 # nothing, or one option
	must bmmfault $(tags "$label") "$@" "$KIND" "$KIB" "$way"
	counted
	[ ! -e $CLEAR/min_pages ] || read -r least <$CLEAR/min_pages
	# shellcheck disable=SC2086,SC2153 # "folios=... ns=...", as must() left it
	report visit label="$label" arm="$ARM" backend="$FORCED" kib="$KIB" \
		way="$way" hits=$((HITS - hits)) small=$((SMALL - small)) \
		fell=$((FELL - fell)) alloc=$((ALLOCATED - alloc)) \
		alloc_on=$ALLOC_ON min_pages="$least" $SAID
}

# visit with each backend of a list forced in turn, and folios of every size
# served: LIST (cached or streaming) WAY OPTION...
each_backend() {
	list=$CLEAR/backend_$1
	shift
	read -r pages <$CLEAR/min_pages
	echo 0 >$CLEAR/min_pages
	for FORCED in $(backend_names "$list"); do
		must_write "$list" "$FORCED"
		visit forced "$@"
	done
	echo "$pages" >$CLEAR/min_pages
	echo fastest >"$list"
	FORCED=
}

# four processes fault folios in at once: SECONDS
soakers() {
	SOAK_SECONDS=$1
	soaker 1 -b 4 thp 2048 write-middle write-last read fork
	soaker 2 -b 8 thp 2048 madv-populate write-first
	soaker 3 -b 4 hugetlb 2048 write-first read madv-populate \
		map-populate memfd fallocate
	soaker 4 -b 32 thp 64 write-middle madv-populate fork
}

# start a process whose output and exit code go to files
soaker() {
	name=/tmp/soaker.$1
	shift
	(
		bmmfault -t "$SOAK_SECONDS" -u /tmp/soaked "$@" >"$name.said" 2>&1
		echo $? >"$name.code"
	) &
}

soaking() {
	for name in 1 2 3 4; do
		[ -e /tmp/soaker.$name.code ] || return 0
	done
	return 1
}

# switch through every mode and every backend
turn() {
	cached=$(backend_names $CLEAR/backend_cached)
	streaming=$(backend_names $CLEAR/backend_streaming)
	for mode in off auto cached streaming; do
		must_write $CLEAR/mode $mode
		[ "$ALLOCATOR" = off ] || alloc_arm $mode
		for name in $cached fastest; do
			must_write $CLEAR/backend_cached "$name"
		done
		for name in $streaming fastest; do
			must_write $CLEAR/backend_streaming "$name"
		done
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

# everything at once, for SECONDS and at least until one load and unload is done
soak() {
	folios thp 64
	echo madvise >$HUGE/hugepages-2048kB/enabled
	turns=0 served=0 loads=0
	soakers "$1"
	(while soaking; do resize; done) &
	while soaking; do
		must insmod /lib/modules/bulkmm.ko hotplug=off clear=auto
		# loading takes seconds; a turn may, where CPUs are slow
		half=$(($(date +%s) + $1 / 2))
		for _ in 1 2 3 4 5 6 7 8 9 10; do
			turn
			turns=$((turns + 1))
			[ "$(date +%s)" -lt $half ] || break
		done
		counted
		served=$((served + HITS))
		must remove
		loads=$((loads + 1))
		: >/tmp/soaked
	done
	kill "$DIRTY"
	wait
	for name in 1 2 3 4; do
		read -r code </tmp/soaker.$name.code
		read -r said </tmp/soaker.$name.said
		[ "$code" = 0 ] || fail "$said"
		# shellcheck disable=SC2086 # "folios=... ns=... wrong=..."
		report soaked process=$name $said
	done
	report soak turns=$turns loads=$loads hits=$served
	echo 0 >$POOLS/hugepages-2048kB/nr_hugepages
}
