# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
# Commands of the scenario prezero-scarce: the filler asks for a page, and the kernel
# finds none that is free and fit. It then allocates one, which has to go again.

MEMORY=/sys/devices/system/memory
NODE1_POOL=/sys/devices/system/node/node1/hugepages/hugepages-2048kB

# huge pages that the kernel has allocated since it booted
allocated() {
	sed -n 's/^htlb_buddy_alloc_success //p' /proc/vmstat
}

end_fillers() {
	kill_fillers
	wait
}

# the numbers of the node's memory blocks that have free pages of the pool, those with
# the most first: NODE
blocks_of() {
	bytes=$((0x$(cat $MEMORY/block_size_bytes)))
	bmmguest free-pages 2048 |
		awk -v pages=$((bytes / 4096)) '{ count[int($1 / pages)]++ }
			END { for (block in count) print count[block], block }' |
		sort -rn | while read -r _ block; do
		[ ! -e "$MEMORY/memory$block/node$1" ] || echo "$block"
	done
}

# the filler says that it can have no page: NODE
others_need_them() {
	matches "$(bmmguest write "$PREZERO/zero" "2048 $1 1 0" 2>&1)" "temporarily"
}

# a page breaks while all that are free are reserved, so that it stays in the pool;
# the last case, for the kernel's allocator may hand it to the pool again
case_broken_page() {
	set_pool 1
	bmmfault -n 1 -b 1 hugetlb 2048 reserve &
	holder=$!
	await reads "$SMALL_POOL/resv_hugepages" 1
	pfn=$(bmmguest free-pages 2048)
	check "broken: it stays in the pool" \
		refused write "$MEMORY/hard_offline_page" $((pfn * 4096))
	kill $holder
	wait
	before=$(allocated)
	for node in 0 1; do
		check "broken: node $node has no other to zero" others_need_them $node
	done
	check "broken: the kernel allocated one instead" [ "$(allocated)" -gt "$before" ]
	check "broken: the pool is exact" exact
	check "broken: the path goes off" write "$PREZERO/mode" off
	must_write "$PREZERO/mode" on
	set_pool 0
}

# some memory of a node becomes movable: NODE
make_movable() {
	offline=
	for at in "$MEMORY"/memory[0-9]*/node"$1"; do
		at=${at%/*}
		echo offline 2>/dev/null >"$at/state" || continue
		offline="$offline $at"
	done
	for at in $offline; do must_write "$at/state" online_movable; done
}

# the blocks with all of a node's pool go offline, while fillers leave it its margin
case_offline_filled() {
	make_movable 1
	gone=0
	for round in 1 2 3 4 5 6 7 8; do
		must_write "$NODE1_POOL/nr_hugepages" 20
		fill_on 2 1 1
		offline=
		for block in $(blocks_of 1); do
			echo offline 2>/dev/null >"$MEMORY/memory$block/state" || continue
			offline="$offline $block"
			gone=$((gone + 1))
		done
		end_fillers
		for block in $offline; do
			must_write "$MEMORY/memory$block/state" online_movable
		done
		report prezero-offlined round="$round" blocks="$offline"
	done
	check "offline: some blocks went" [ $gone -gt 0 ]
	must_write "$NODE1_POOL/nr_hugepages" 20
	check "offline: ready" ready
	check "offline: zero" all_zero
	set_pool 0
}

# programs take all pages of a pool of which fillers leave no margin: SECONDS
case_all_taken() {
	set_pool 24
	fill_on 0 0 0
	for taker in 1 2; do
		worker $taker bmmfault -t "$1" -n 1000000 -b 12 hugetlb 2048 \
			madvise
	done
	while working; do sleep 0.2; done
	end_fillers
	for taker in $SOAKERS; do
		check "taken: $taker" matches "$(cat "/tmp/worker.$taker.said")" \
			"^folios=[1-9].* wrong=0 "
	done
	check "taken: some were ready" [ "$(stat_of prezero hits)" -gt 0 ]
	check "taken: the pool is exact" exact
	check "taken: zero" all_zero
	set_pool 0
}

# every case: SECONDS
prezero_scarce() {
	# shellcheck disable=SC2034 # for resident
	KIND=hugetlb KIB=2048
	load prezero=on
	case_offline_filled
	case_all_taken "$1"
	case_broken_page
	must_write "$PREZERO/mode" off
	must remove
}
