# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
# Commands of a job of path copy: hugetlb pages copied in a way, and what became
# of one that is broken.

BROKEN=/sys/kernel/debug/bulkmm_lab/poison

# copies are compared with a model: LABEL WAY break|keep
copied() {
	visited "copied label=$1 way=$2" bmmcopy "$2" "$3"
}

# a page of the source is broken, for whoever copies it: WAY
broken() {
	dmesg >/tmp/before
	record before
	must bmmcopy "$1" poison $BROKEN
	record after
	echo none >$BROKEN
	pfn=${SAID#pfn=}
	line="Memory failure: 0x$(printf %x "${pfn%% *}"): "
	told=$(($(dmesg | grep -c "$line") > $(grep -c "$line" /tmp/before)))
	report_said broken told="$told" way="$1"
}

# the same for a page that everybody knows to be broken
known_broken() {
	visited "broken way=hwpoison" bmmcopy hwpoison keep
}
