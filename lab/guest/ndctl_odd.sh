# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
# Namespaces of odd sizes, several on one device, which share sections: all come
# up at once, with the module off and with it on, and each is compared in turn.
# The memory of their struct pages is filled before, with another pattern each
# time.

NVDIMMS=/sys/bus/nd/devices
ODD_FREE=192 # MiB of free memory to fill

odd_begin() {
	must ndctl destroy-namespace -f all
	labels
}

# "MODE,MAP,ALIGN,SIZE"...: create these namespaces; a line of /tmp/odd for each: what
# to bind where, which part of it holds struct pages, and the PFN in its middle
odd_layout() {
	: >/tmp/odd
	for words; do
		# shellcheck disable=SC2046 # four words
		set -- $(echo "$words" | tr , ' ')
		must ndctl create-namespace -m "$1" -M "$2" -a "$3" -s "$4"
		find_device "$1"
		odd_place "$2" >>/tmp/odd
	done
}

# MAP
odd_place() {
	read -r from <"$NVDIMMS/$(json dev)/resource"
	# shellcheck disable=SC2153 # by find_device
	read -r start <"$DRIVER/$DEVICE/resource"
	bytes=0
	# after the namespace's superblock
	[ "$1" = mem ] || bytes=$((start - from - 8192))
	echo "$DRIVER $DEVICE $((from + 8192)) $bytes $(middle "$DRIVER/$DEVICE")"
}

# for each namespace run COMMAND with driver, device, from, bytes and pfn set
odd_each() {
	while read -r driver device from bytes pfn; do
		"$1"
	done </tmp/odd
}

odd_bind() {
	(write "$driver/bind" "$device" || : >/tmp/odd.failed) &
}

odd_unbind() {
	write "$driver/unbind" "$device"
}

odd_fill() {
	[ "$bytes" = 0 ] || must bmmguest poison "$from" "$bytes" "$PATTERN"
}

# all come up in MODE, after the memory of their struct pages was filled
odd_up() {
	state "$1" "memmap=$1"
	must bmmguest poison $ODD_FREE "$PATTERN"
	odd_each odd_fill
	odd_each odd_bind
	wait
	[ ! -e /tmp/odd.failed ] || fail "a namespace does not come up, path $1"
}

# check one of the namespaces, which all come up
odd_compare() {
	# shellcheck disable=SC2034 # for snapshot and compare
	MIDDLE=$pfn
	compared=$device
	PATTERN=0x5a5a5a5a5a5a5a5a
	odd_up off
	snapshot
	odd_each odd_unbind
	PATTERN=0xa5a5a5a5a5a5a5a5
	odd_up on
	[ -z "$BROKEN" ] || flip
	compare "$LABEL-$compared"
	[ -z "$BROKEN" ] || flip
	# prove once a layout that a difference would be seen
	if [ -n "$PROOF" ]; then
		PROOF=
		flip
		compare flipped
		flip
	fi
	odd_each odd_unbind
}

# LABEL WORDS...: a layout from creation to removal
odd() {
	LABEL=$1
	shift
	must ndctl destroy-namespace -f all
	odd_layout "$@"
	odd_each odd_unbind
	state off memmap=off
	echo 1 >"$PARAMETERS/memmap_min_pages"
	PROOF=yes
	[ -z "$BROKEN" ] || PROOF=
	odd_each odd_compare
	unload
}
