# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
# Memory that becomes ordinary RAM, and is removed again: a DAX device bound to
# kmem, on an NVDIMM or a CXL device, or a virtio-mem device. It has a node of its
# own, HOT, so that its zones do not depend on what else the guest does.

HOT=1
BLOCKS=/sys/devices/system/memory
KMEM=/sys/bus/dax/drivers/kmem
CXL=/sys/bus/cxl
# set what new blocks become: online, online_movable, online_kernel or offline
hot_policy() {
	must_write $BLOCKS/auto_online_blocks "$1"
}

# make the DAX devices known to kmem and unbind them; list them in DAX. A device
# that is unbound when kmem learns of another is bound at once.
hot_dax() {
	DAX=
	for at in /sys/bus/dax/drivers/device_dax/dax*; do
		device=${at##*/}
		[ ! -e "$at" ] || DAX="$DAX$device "
	done
	[ -n "$DAX" ] || fail "no DAX device came up"
	for device in $DAX; do must_write $KMEM/new_id "$device"; done
	for device in $DAX; do
		must_write /sys/bus/dax/drivers/device_dax/unbind "$device"
	done
}

# make all persistent memory one DAX device
hot_device() {
	one_namespace devdax mem 2M
	hot_dax
}

# the blocks before a device of NODE is plugged
hot_before() {
	NODE=$1
	set -- /sys/devices/system/node/node"$NODE"/memory[0-9]*
	FEWEST=0
	[ ! -e "$1" ] || FEWEST=$#
	read -r size <$BLOCKS/block_size_bytes
	BLOCK_KIB=$((0x$size >> 10))
}

# wait until KIB more are plugged, after TEXT was written to FILE: KIB FILE TEXT
hot_wait() {
	must bmmplug wait "$2" "$3" "$NODE" $((FEWEST + $1 / BLOCK_KIB))
}

# its ports are found in the background
hot_decoder() {
	for DECODER in "$CXL"/devices/endpoint*/decoder*.0; do :; done
	[ -e "$DECODER" ]
}

# make all memory of the CXL device one region, as "cxl create-region" does. kmem
# has it at once, as in any machine; it is taken back.
hot_cxl() {
	hot_before $HOT
	await hot_decoder || fail "no CXL device came up"
	window=$CXL/devices/decoder0.0
	must_write "$DECODER/mode" ram
	# shellcheck disable=SC2153 # by the job
	must_write "$DECODER/dpa_size" $((SIZE << 10))
	read -r region <$window/create_ram_region
	must_write $window/create_ram_region "$region"
	for set in interleave_granularity=256 interleave_ways=1 \
		size=$((SIZE << 10)) target0="${DECODER##*/}" commit=1; do
		must_write "$CXL/devices/$region/${set%=*}" "${set#*=}"
	done
	hot_wait "$SIZE" $CXL/drivers/cxl_region/bind "$region"
	for at in "$KMEM"/dax*; do DAX=${at##*/}; done
	must bmmplug offline $HOT
	must_write $KMEM/unbind "$DAX"
}

# the port of QEMU's monitor, and the blocks before the device is plugged
hot_virtio() {
	MONITOR=$(port monitor)
	hot_before "$1"
}

# plug KIB of the virtio-mem device; its time in NS
hot_request() {
	hot_wait "$1" "$MONITOR" \
		"qom-set /machine/peripheral/hot0 requested-size $1K"
	NS=$SAID
}

# list the numbers of the node's blocks by address in LIST
hot_list() {
	LIST=
	for at in /sys/devices/system/node/node"$HOT"/memory[0-9]*; do
		[ -d "$at" ] && LIST="$LIST${at##*/memory}
"
	done
	LIST=$(echo "$LIST" | sort -n)
}

# set NUMBER to the block at this place in the list
hot_nth() {
	# shellcheck disable=SC2086 # numbers
	set -- "$1" $LIST
	shift $(($1 % ($# - 1) + 1))
	NUMBER=$1
}

# read the state of all zones into ZONES, without a process: an emulated guest takes
# 10 ms to start one, and a run does this a hundred times
hot_zones() {
	ZONES=
	while read -r line; do ZONES="$ZONES$line "; done <"$LAB/zones"
	[ "$ZONES" ] || fail "no zones in $LAB/zones"
}

# report the zones, and in one process the node's free lists, migration types and
# sizes: STEP
hot_state() {
	hot_zones
	# shellcheck disable=SC2016 # awk's own
	lists=$(awk -v hot="$HOT," -v ORS=' ' '
		/^Node/ { on = $2 == hot }
		on && /^Node|spanned|present|managed|start_pfn/ { $1 = $1; print }
		' /proc/buddyinfo /proc/pagetypeinfo /proc/zoneinfo)
	report hot-state arm="$ARM" label="$LABEL" step="$1" zones="$ZONES" \
		lists="$lists"
}

# write STATE (offline, online_movable, online_kernel) to the block at PLACE
hot_write() {
	hot_nth "$2"
	echo "$1" 2>/dev/null >"$BLOCKS/memory$NUMBER/state"
}

# set a block, which may be refused, as a step of the comparison: STATE PLACE
hot_block() {
	hot_write "$1" "$2" || :
	hot_state "$1 $2"
}

# fill MIB of the node, take the blocks that hold it offline, and check that the
# data has moved intact: MIB
hot_use() {
	must bmmplug use $HOT "$1" "$ONLINE"
	report_said hot-used
}

# plug by KIND of device: time in PLUG
hot_plug() {
	if [ "$KIND" = virtio ]; then
		# shellcheck disable=SC2153 # by the job
		hot_request "$SIZE"
	else
		NS=0
		for device in $DAX; do
			must bmmguest write $KMEM/bind "$device"
			NS=$((NS + SAID))
		done
	fi
	PLUG=$NS
	hot_list
}

hot_unplug() {
	UNPLUG=0
	if [ -n "$OFFLINE" ]; then
		must bmmplug offline $HOT
		UNPLUG=$SAID
		hot_state offline
	fi
	if [ "$KIND" = virtio ]; then
		hot_request 0
		UNPLUG=$((UNPLUG + NS))
		return
	fi
	for device in $DAX; do
		must bmmguest write $KMEM/unbind "$device"
		UNPLUG=$((UNPLUG + SAID))
	done
}

# one visit: plug, run MIDDLE, unplug: LABEL MIDDLE
hot_visit() {
	LABEL=$1 middle=$2
	record before
	hot_plug
	hot_state plugged
	[ -z "$middle" ] || $middle
	hot_unplug
	hot_state unplugged
	record after
	report hot-visit arm="$ARM" label="$LABEL" plug_ns="$PLUG" \
		unplug_ns="$UNPLUG"
}
