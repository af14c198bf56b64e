# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
# What every job needs: reporting to the host, failing, ending.

# one JSON line to the host, its fields as name=value; a value that is no
# plain number is quoted
report() {
	line="{\"event\":\"$1\""
	shift
	for field in "$@"; do
		value=${field#*=}
		case $value in
		'' | *[!0-9]*)
			case $value in # two processes only where they are needed
			*[[:cntrl:]\"\\]*)
				value=$(printf '%s' "$value" |
					tr -s '[:cntrl:]"\134' ' ')
				;;
			esac
			value="\"$value\""
			;;
		esac
		line="$line,\"${field%%=*}\":$value"
	done
	printf '%s}\n' "$line" >&3
}

# the job cannot go on: say why and end
fail() {
	report fail what="$*"
	finish 1
}

# run a command and keep what it said in SAID; when it fails, the job ends
must() {
	SAID=$("$@" 2>&1) || fail "$*: $SAID"
}

# bulkmm.ko goes: a path that is on holds it
remove() {
	echo 1 >/sys/kernel/bulkmm/off && rmmod bulkmm
}

# names of the backends in a FILE that lists them: "[fastest] generic movnti"
backend_names() {
	sed 's/[][]//g;s/^fastest //' "$1"
}

# what serves where FILE is what that forces a backend, and the MB/s of those
# that were measured: "node0 movnti generic=9800 movnti=36100; ..."
backend_picks() {
	for at in "$1"_*/serving; do
		[ -e "$at" ] || continue
		printf '%s %s' "${at%/serving}" "$(cat "$at")"
		for rate in "${at%/serving}"/*; do
			[ "$rate" = "$at" ] || [ "$(cat "$rate")" = 0 ] ||
				printf ' %s=%s' "${rate##*/}" "$(cat "$rate")"
		done
		printf '; '
	done | sed "s,$1_,,g;s/; \$//"
}

# a line in the kernel log, so that what follows can be told from what was
mark() {
	echo "<5>bulkmm-lab: $*" >/dev/kmsg
}

# the kernel log, the end marker, and off; a reboot that is not the guest's
# own never gets here
finish() {
	trap '' EXIT
	mark "end"
	dmesg >"$(port klog)"
	report end code="$1" taint="$(cat /proc/sys/kernel/tainted)" \
		debug_locks="$(sed -n 's/^ debug_locks: *//p' \
			/proc/lockdep_stats 2>/dev/null)"
	sync
	poweroff -f
	sleep 60
}
