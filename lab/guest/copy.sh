# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
# Commands of a job of path copy: hugetlb pages copied in a way, and what became
# of one that is broken.

BROKEN=/sys/kernel/debug/bulkmm_lab/poison

# copies are compared with a model: LABEL WAY break|keep
copied() {
	record before
	must bmmcopy "$2" "$3"
	record after
	# shellcheck disable=SC2086 # "copies=... wrong=..."
	report copied label="$1" arm="$ARM" way="$2" $SAID
}

# a page of the source is broken, for whoever copies it: WAY
broken() {
	dmesg -c >/dev/null
	record before
	must bmmcopy "$1" poison $BROKEN
	record after
	# shellcheck disable=SC2086 # "pfn=... copies=..."
	set -- way="$1" $SAID
	echo none >$BROKEN
	told=$(dmesg | grep -c "Memory failure: 0x$(printf %x "${2#pfn=}"): ")
	report broken arm="$ARM" told="$((told > 0))" "$@"
}

# the same for a page that everybody knows to be broken
known_broken() {
	record before
	must bmmcopy hwpoison keep
	record after
	# shellcheck disable=SC2086 # "copies=... wrong=..."
	report broken arm="$ARM" way=hwpoison $SAID
}
