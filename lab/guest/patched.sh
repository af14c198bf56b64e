# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
# What kernels with the patches in upstream/ do themselves.

PAST=/sys/kernel/debug/bulkmm_lab/past

# a counter of the kernel's: NAME
vmstat() {
	sed -n "s/^$1 //p" /proc/vmstat
}

# bring folios in, and count the pages that are cleared past the caches and the huge
# pages that there are for it, of no file and of tmpfs: KIND WAY PROGRAM [ARGUMENT...]
past() {
	kind=$1 way=$2
	shift 2
	anonymous=$(vmstat thp_fault_alloc) shared=$(vmstat thp_file_alloc)
	must_write $PAST "$1"
	must "$@" >/dev/null
	pages=$(cat $PAST)
	report past kind="$kind" way="$way" "$pages" \
		anonymous=$(($(vmstat thp_fault_alloc) - anonymous)) \
		shared=$(($(vmstat thp_file_alloc) - shared))
}

# the same for memory that cannot get advice
past_by_all() {
	must_write "$THP_2M" always
	past "$@"
	must_write "$THP_2M" madvise
}
