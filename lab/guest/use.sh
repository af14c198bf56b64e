# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
# The expected use of a folio: which ways to allocate it count as populating.

# an arm's folios of 2 MiB, as the tracepoint reports them: WAY [ARGUMENT...]
# of bmmpin
brought() {
	clearing bmmpin "$@"
	grep ' order=9 ' "$TRACING/trace" | grep '^ *bmmpin-' >/tmp/brought
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

# the same with the huge zero page in use
brought_over_zeros() {
	must_write "$HUGE/use_zero_page" 1
	brought "$@"
	must_write "$HUGE/use_zero_page" 0
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
