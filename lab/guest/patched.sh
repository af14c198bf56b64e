# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
# What kernels with the patches in upstream/ do themselves.

# pages cleared past the caches are counted from now on: the kernel's function has
# their number as its second argument
past_caches() {
	past=$(awk '$2 == "T" && $3 ~ /^(__)?clear_pages_nt$/ { print $3 }' /proc/kallsyms)
	[ "$past" ] || fail "no clear_pages_nt() in this kernel"
	must_write "$TRACING/kprobe_events" "p:past $past pages=%si:u32"
	must_write "$TRACING/events/kprobes/past/enable" 1
}

# bring folios in, and count those pages: KIND WAY PROGRAM [ARGUMENT...]
past() {
	kind=$1 way=$2
	shift 2
	must_write "$TRACING/trace" ""
	must "$@" >/dev/null
	report past kind="$kind" way="$way" pages="$(awk -F'pages=' -v by="${1##*/}" \
		'$1 ~ "^ *" by "-" { sum += $2 } END { print sum + 0 }' "$TRACING/trace")"
}
