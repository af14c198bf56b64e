# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
# What kernels with the patches in upstream/ do themselves.

NT_CLEARS=/sys/kernel/debug/bulkmm_lab/nt_clears

# a counter of the kernel's: NAME
vmstat() {
	sed -n "s/^$1 //p" /proc/vmstat
}

# bring folios in, and count the pages that are cleared past the caches and the huge
# pages that there are for it, of no file and of tmpfs: KIND WAY PROGRAM [ARGUMENT...]
count_nt_clears() {
	kind=$1 way=$2
	shift 2
	anonymous=$(vmstat thp_fault_alloc) shared=$(vmstat thp_file_alloc)
	must_write $NT_CLEARS "$1"
	must "$@" >/dev/null
	pages=$(cat $NT_CLEARS)
	report nt-clears kind="$kind" way="$way" "$pages" \
		anonymous=$(($(vmstat thp_fault_alloc) - anonymous)) \
		shared=$(($(vmstat thp_file_alloc) - shared))
}

# the same for memory that cannot get advice
count_nt_clears_by_all() {
	must_write "$THP_2M" always
	count_nt_clears "$@"
	must_write "$THP_2M" madvise
}
