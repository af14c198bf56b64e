# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
# Commands of a job of the populate family: folios made resident in every state of
# the module, and what the library reports of memory that only such a guest has.
# The host decides what to expect.

SHARED=/sys/kernel/mm/transparent_hugepage/hugepages-64kB/shmem_enabled
POOLED=/sys/fs/cgroup # where the library looks for cgroups

# one store per element, whatever is fastest on this CPU
pool_backends() {
	tune backend_streaming movnti
	tune backend_cached plain
}

# trace each folio that the module clears from now on, or (0) stop, if it is there
pool_trace() {
	[ ! -d "$CLEARS" ] || must_write "$CLEARS/enable" "$1"
}

# populate by a WAY: LABEL KIND MIB WAY
pool_visit() {
	label=$1 kind=$2 way=$4
	record before
	echo >"$TRACING/trace"
	must resident $(($3 * 1024 / KIB)) "$way"
	record after
	report_said visit label="$label" kind="$kind" way="$way" \
		streaming="$(grep -c streaming=1 "$TRACING/trace")" \
		cached="$(grep -c streaming=0 "$TRACING/trace")"
}

# pass on what the library reports: NAME KIND MIB OPTION... (of bmmpool), or what the
# kernel lacks to break a page
pool_case() {
	name=$1
	shift
	case " $* " in *" poison "*)
		if [ ! -e /proc/sys/vm/memory_failure_recovery ]; then
			report pool-case name="$name" lacks=CONFIG_MEMORY_FAILURE
			return
		fi
		;;
	esac
	must bmmpool "$@"
	report_said pool-case name="$name"
}

# a file system on pmem that has its files in the page cache, and one in memory that
# has huge pages; page faults on shared memory get folios of 64 KiB if the kernel can
stage_begin() {
	must mount -t ext4 -o noinit_itable "$NODE" /mnt
	must mkdir -p /tmp/huge
	must mount -t tmpfs -o huge=always tmpfs /tmp/huge
	must_write /proc/sys/vm/unprivileged_userfaultfd 0
	[ ! -e $SHARED ] || must_write $SHARED always
}

stage_end() {
	[ ! -e $SHARED ] || must_write $SHARED never
	must umount /tmp/huge
	must umount /mnt
}

# pass on what the library makes of a file: NAME FILE OPTION... (of bmmstage)
stage_case() {
	name=$1
	shift
	must bmmstage "$@"
	report_said stage-case name="$name"
}

# allocate hugetlb pages on one node and on no other: KIB NODE COUNT
pool_on_node() {
	for at in /sys/devices/system/node/node*; do
		echo 0 >"$at/hugepages/hugepages-$1kB/nr_hugepages"
	done
	must_write "/sys/devices/system/node/node$2/hugepages/hugepages-$1kB/nr_hugepages" \
		"$3"
}

# create the namespace again: MODE (fsdax or devdax); DAX is its device node
pool_dax() {
	one_namespace "$1" mem 2M
	DAX=$NODE
}

# make a file system on it: DAX becomes a file there
pool_dax_file() {
	file_system
	# shellcheck disable=SC2034 # for the job
	DAX=/mnt/pool
}

pool_groups() {
	must mount -t cgroup2 cgroup2 $POOLED
	must_write $POOLED/cgroup.subtree_control "+cpu +memory +hugetlb"
}

# the same in a cgroup, which may kill it: NAME FILE VALUE KIND MIB OPTION...
pool_grouped() {
	name=$1 file=$2 value=$3
	shift 3
	mkdir $POOLED/pool
	[ "$file" = - ] || must_write "$POOLED/pool/$file" "$value"
	# shellcheck disable=SC2034 # for report_said
	SAID=$(
		echo 0 >$POOLED/pool/cgroup.procs
		exec bmmpool "$@" 2>/dev/null
	)
	code=$?
	report_said pool-case name="$name" code=$code \
		killed="$(sed -n 's/^oom_kill //p' $POOLED/pool/memory.events)" \
		left="$(grep -c . $POOLED/pool/cgroup.procs)"
	rmdir $POOLED/pool || fail "the cgroup is not empty"
}

# the same where the kernel's log will report that it killed a process
pool_killed() {
	warnings "of cgroup in $1 begin"
	pool_grouped "$@"
	warnings end
}

# resident memory of a file: FILE
pool_held() {
	report pool-held bytes=$(($(stat -c %b "$1") * 512))
}

# fragment free memory but for some of it: MIB, and of so many PAGES one stays
fragment() {
	must_write /proc/sys/vm/compact_unevictable_allowed 0
	bmmguest fragment "$1" "$2" >/tmp/fragmented &
	await test -s /tmp/fragmented || fail "memory was not fragmented"
	report fragment bytes="$(cat /tmp/fragmented)"
}

# populate where memory is fragmented: WAY KIND MIB OPTION... (of bmmpool)
fragmented() {
	way=$1
	shift
	must bmmpool "$@"
	report_said fragmented way="$way"
}
