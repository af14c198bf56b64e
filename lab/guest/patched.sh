# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
# What kernels with the patches in upstream/ do themselves.

PAST=/sys/kernel/debug/bulkmm_lab/past

# bring folios in, and count the pages that are cleared past the caches: KIND WAY
# PROGRAM [ARGUMENT...]
past() {
	kind=$1 way=$2
	shift 2
	must_write $PAST "$1"
	must "$@" >/dev/null
	pages=$(cat $PAST)
	report past kind="$kind" way="$way" "$pages"
}

# the same for memory that cannot get advice
past_by_all() {
	must_write "$THP_2M" always
	past "$@"
	must_write "$THP_2M" madvise
}
