# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
# The kernel's own lib/test_hmm.c as a user of device-private memory.

# load it, drive it (bmmhmm.c) and unload it: SEED [broken]
hmm_visit() {
	# its chunks of 256 MiB are smaller than what memmap serves by default
	least=/sys/module/bulkmm/parameters/memmap_min_pages
	[ ! -e $least ] || echo 32768 >$least
	calls_clear
	record before
	must insmod /lib/modules/test_hmm.ko
	bmmhmm "$@" >/tmp/hmm 2>/tmp/said || fail "bmmhmm: $(cat /tmp/said)"
	must rmmod test_hmm
	while read -r wrong name; do
		report hmm-case arm="$ARM" name="$name" wrong="$wrong"
	done </tmp/hmm
	# what the kernel brought up, by a clock independent of the module
	calls=0 brought=0
	while read -r _ pages _; do
		calls=$((calls + 1)) brought=$((brought + pages))
	done <"$LAB/calls"
	record after
	report hmm-visit arm="$ARM" calls=$calls pages=$brought
}
