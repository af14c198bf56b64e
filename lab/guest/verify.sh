# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
# memmap/verify, in a build for production: a word of a struct page is broken
# after stamping, and the kernel's own function has to find it.

# how often bulkmm has logged a device
devices() {
	dmesg | grep -c ' bulkmm: memmap: PFNs 0x'
}

# the device goes down and comes up: NAME HITS VERIFIED MISMATCHES in all,
# and the words of its line in the log
brought_up() {
	before=$(devices)
	down
	check "$1: device comes up" up
	check "$1: hits" [ "$(counter hits)" = "$2" ]
	check "$1: verified" [ "$(counter verified)" = "$3" ]
	check "$1: mismatches" [ "$(counter fallback_mismatch)" = "$4" ]
	check "$1: one line for the device" [ $(($(devices) - before)) = 1 ]
	last=$(dmesg | grep ' bulkmm: memmap: PFNs 0x' | tail -n 1)
	check "$1: its words" matches "$last" "$5"
}

case_verify() {
	load
	check "break: is armed" write "$LAB/break_stamped" "$MIDDLE 5"
	brought_up "off, broken" 1 0 0 'served by [a-z0-9]*$'
	check "off, broken: goes unnoticed" refused same
	check "once is taken" write "$MEMMAP/verify" once
	brought_up "once, broken" 1 0 1 'original used: verification failed.* (PFN'
	check "once, broken: same bytes" same
	write "$LAB/break_stamped" ""
	brought_up "mismatch before" 1 0 2 'original used: verification failed.*written$'
	check "mismatch before: same bytes" same
	check "once again is taken" write "$MEMMAP/verify" once
	brought_up "once" 2 1 2 ', verified$'
	check "once: same bytes" same
	brought_up "once, second time" 3 1 2 'served by [a-z0-9]*$'
	check "always is taken" write "$MEMMAP/verify" always
	brought_up "always" 4 2 2 ', verified$'
	brought_up "always, second time" 5 3 2 ', verified$'
	check "always: same bytes" same
}

case_verify_parameter() {
	check "a bad parameter is refused" \
		refused insmod /lib/modules/bulkmm.ko memmap_verify=bad
	load memmap_verify=once
	check "parameter: shown" reads "$MEMMAP/verify" "off [once] always"
	check "a bad word is refused" refused write "$MEMMAP/verify" bad
}

# every request has a record, the kernel's too; hotplug's of the device's zone
case_verify_records() {
	load
	write "$HOTPLUG/mode" on
	write "$TRACING/events/bulkmm/enable" 1
	brought_up "traced" 1 0 0 'served by [a-z0-9]*$'
	write "$MEMMAP/verify" once
	brought_up "traced, verified" 2 1 0 ', verified$'
	echo 1000000000 >"$PARAMETERS/memmap_min_pages"
	down
	up
	for result in served verified small; do
		check "records: memmap $result" \
			grep -q " memmap: start_pfn=.* ns=.* result=$result$" \
			"$TRACING/trace"
	done
	check "records: hotplug" grep -q \
		" hotplug: start_pfn=.* nr_pages=[1-9].* result=served$" \
		"$TRACING/trace"
	last=$(dmesg | grep ' bulkmm: hotplug: [1-9][0-9]* PFNs from 0x' | tail -n 1)
	check "records: hotplug in the log" [ "$last" ]
	write "$TRACING/events/enable" 0
}

verify() {
	[ -e "$DRIVER/$DEVICE" ] || up
	snapshot
	each_case verify verify_parameter verify_records
}
