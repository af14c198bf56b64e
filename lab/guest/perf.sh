# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
# The kernel's perf as a client outside this project.

PERF=/lib/perf

perf() {
	LD_LIBRARY_PATH=$PERF must $PERF/perf "$@"
}

perf_version() {
	perf --version
	report perf-version version="${SAID#perf version }"
}

# map once, with pages of this size: SIZE (as perf has it) PAGES FUNCTION
perf_mmap() {
	counted
	# shellcheck disable=SC2153 # set by counted
	hits=$HITS
	perf bench -f simple mem mmap -p "$1" -s "$(($2 * KIB))KB" -f "$3"
	counted
	for rate in $SAID; do :; done # the last word
	report perf arm="$ARM" kib="$KIB" function="$3" folios="$2" \
		hits=$((HITS - hits)) rate="$rate"
}
