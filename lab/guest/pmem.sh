# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
# Commands of a persistent-memory job. The host writes the job: it decides the
# order of binds, and where to compare.

LAB=/sys/kernel/debug/bulkmm_lab

# load the modules in the order given (the host has resolved dependencies)
modules() {
	for module in "$@"; do
		must insmod "/lib/modules/$module.ko"
	done
}

# make all persistent memory one namespace: MODE (fsdax or devdax) MAP (dev or mem)
# ALIGN
one_namespace() {
	ndctl destroy-namespace -f all >/dev/null 2>&1
	must ndctl create-namespace -m "$1" -M "$2" -a "$3"
	find_device "$1"
}

# likewise; this is also the device's first bring-up, which faults in the host's pages
namespace() {
	must_write "$LAB/calls" 0
	one_namespace "$@"
	calls_read
	report bind arm=absent label=first pages="$PAGES" start="$START" ns="$NS"
	unbind
}

# only a region with labels can be split
labels() {
	must ndctl disable-region all
	must ndctl init-labels -f all
	must ndctl enable-region all
}

# device-private memory of BYTES: the lab's module is its driver, with files of
# its own instead of a device node
private_node() {
	DRIVER=$LAB DEVICE=$1 NODE=$LAB/calls
	[ -e "$DRIVER/bind" ] || fail "the kernel has no device-private memory"
}

# likewise; and bring it up once
private() {
	private_node "$1"
	bind first
	unbind
}

# a field of ndctl's output in SAID
json() {
	echo "$SAID" | sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p" | tail -n 1
}

# set DRIVER, DEVICE and NODE: driver directory, device and node to bind, of the
# namespace that ndctl has just made: MODE
find_device() {
	MODE=$1
	if [ "$MODE" = fsdax ]; then
		DRIVER=/sys/bus/nd/drivers/nd_pmem NODE=/dev/$(json blockdev)
		for at in "$DRIVER"/pfn*; do
			reads "$at/namespace" "$(json dev)" && DEVICE=${at##*/}
		done
	else
		DRIVER=/sys/bus/dax/drivers/device_dax DEVICE=$(json chardev)
		NODE=/dev/$DEVICE
	fi
	[ -e "$NODE" ] || fail "no $MODE device came up: $DEVICE $NODE"
}

# read finished calls of memmap_init_zone_device, by a clock independent of the
# module: CALLS, NS and PAGES in all, START of the last
calls_all() {
	CALLS=0 NS=0 START=0 PAGES=0
	while read -r start pages ns; do
		CALLS=$((CALLS + 1)) NS=$((NS + ns)) PAGES=$((PAGES + pages))
		START=$start
	done <"$LAB/calls"
}

# there must be one
calls_read() {
	calls_all
	[ "$CALLS" = 1 ] || fail "$CALLS calls of memmap_init_zone_device in a bind"
	MIDDLE=$((START + PAGES / 2))
}

# bring the device up and time it: LABEL
bind() {
	LABEL=$1
	must_write "$LAB/calls" 0
	record before
	must bmmguest write "$DRIVER/bind" "$DEVICE" "$NODE"
	bind_ns=$SAID
	record after
	calls_read
	report bind arm="$ARM" label="$1" pages="$PAGES" start="$START" ns="$NS" \
		bind_ns="$bind_ns"
}

unbind() {
	must bmmguest write "$DRIVER/unbind" "$DEVICE"
	report unbind arm="$ARM" label="${LABEL-first}" ns="$SAID"
}

# time of merely storing the same bytes: UNIT-PAGES BYTES-PER-UNIT
limit() {
	must_write "$LAB/limit" $((PAGES * $2 / $1))
	read -r ns <"$LAB/limit"
	report limit ns="$ns"
}

snapshot() {
	must_write "$LAB/snapshot" "$MIDDLE"
}

# compare with the snapshot and report the result under a name
compare() {
	must_write "$LAB/compare" "$MIDDLE"
	read -r verdict <"$LAB/compare"
	report compare label="$1" verdict="$verdict"
}

# flip the lowest bit of a word of the struct page in the middle; nothing reads
# word 5 (private) while the device is idle
flip() {
	must_write "$LAB/flip" "$MIDDLE 5"
}

# use the device as its users do, and report what that proved
use_device() {
	if [ "$MODE" = fsdax ]; then use_file_system; else use_mapping; fi
	report used bytes="$used"
}

# make a file system on NODE, and mount it
file_system() {
	must /usr/sbin/mke2fs -q -F -t ext4 -b 4096 -N 1024 -J size=8 \
		-E lazy_itable_init=1,lazy_journal_init=1,nodiscard "$NODE"
	mount_dax
}

mount_dax() {
	must mount -t ext4 -o dax,noinit_itable "$NODE" /mnt
}

use_file_system() {
	file_system
	must dd if=/dev/urandom of=/tmp/stored bs=1M count=32
	must cp /tmp/stored /mnt/file
	must umount /mnt
	mount_dax
	must cmp /tmp/stored /mnt/file
	rm /tmp/stored
	must bmmguest mapping write /mnt/file 33554432 2
	must umount /mnt
	mount_dax
	must bmmguest mapping read /mnt/file 33554432 2
	used=$((33554432 + SAID))
	must umount /mnt
}

use_mapping() {
	read -r size <"/sys/bus/dax/devices/$DEVICE/size"
	must bmmguest mapping write "$NODE" "$size" 3
	must bmmguest mapping read "$NODE" "$size" 3
	used=$SAID
}

# the kernel's own lib/test_hmm.c as a user of device-private memory: load it, drive
# it (bmmhmm.c) and unload it: SEED [broken]
hmm_visit() {
	# its chunks of 256 MiB are smaller than what memmap serves by default
	least=$PARAMETERS/memmap_min_pages
	[ ! -e "$least" ] || echo 32768 >"$least"
	must_write "$LAB/calls" 0
	record before
	must insmod /lib/modules/test_hmm.ko
	must bmmhmm "$@"
	echo "$SAID" | while read -r wrong name; do
		report hmm-case arm="$ARM" name="$name" wrong="$wrong"
	done
	must rmmod test_hmm
	calls_all
	record after
	report hmm-visit arm="$ARM" calls="$CALLS" pages="$PAGES"
}
