# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
# What the suites share: all paths of bulkmm.ko at once, and its counters.

# bring bulkmm.ko into the state of an arm: absent, on (every path that the
# kernel has) or streaming (huge pages of all sizes bypass the cache)
suite_arm() {
	suite_unload
	ARM=$1
	case $1 in
	absent) ;;
	on)
		must insmod /lib/modules/bulkmm.ko memmap=on clear=auto \
			alloc=auto vmap=block hotplug=on
		;;
	streaming)
		must insmod /lib/modules/bulkmm.ko memmap=off clear=streaming \
			alloc=streaming
		must_write "$BULKMM/clear/min_pages" 2
		;;
	*) fail "no arm $1" ;;
	esac
}

# the counters go with the module, so they are sent before each unload
suite_unload() {
	[ -d "$BULKMM" ] || return 0
	for at in "$BULKMM"/*/stats; do
		path=${at%/stats}
		path=${path##*/}
		# shellcheck disable=SC2046 # "hits=... bytes=..."
		report suite-hits arm="$ARM" path="$path" $(stats_of "$path") \
			hook="$(cat "$BULKMM/$path/hook")"
	done
	must remove
}
