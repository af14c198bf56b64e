# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
# Huge pages allocated zeroed in atomic context (module/selftest/irq.c).

# the allocator may be called in atomic context: FILE CONTEXT
case_interrupt() {
	[ -e "$LAB/$1" ] || return 0
	load memmap=off alloc=auto
	before=$(stat_of alloc hits)
	check "$2: 50 huge pages are asked for" write "$LAB/$1" 50
	check "$2: 50 huge pages, all zero" \
		[ "$(cat "$LAB/$1")" = "seen=1 got=50 wrong=0" ]
	after=$(stat_of alloc hits)
	if says_of alloc 0 clear_highpages_kasan_tagged; then
		# twice 50: the page to dirty was cleared, too
		check "$2: served" [ $((after - before)) = 100 ]
	else
		check "$2: no path" [ "$after" = 0 ]
	fi
	must remove
}
