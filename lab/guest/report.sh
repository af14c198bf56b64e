# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
# What every job needs: report to the host, fail, end; the module.

BULKMM=/sys/kernel/bulkmm
# shellcheck disable=SC2034 # for all scripts
MEMMAP=$BULKMM/memmap CLEAR=$BULKMM/clear VMAP=$BULKMM/vmap HOTPLUG=$BULKMM/hotplug \
	PREZERO=$BULKMM/prezero COPY=$BULKMM/copy PARAMETERS=/sys/module/bulkmm/parameters
export ARM=absent # what the module is in

# send one JSON line to the host, its fields given as name=value; a value that
# is not a plain number is quoted
report() {
	line="{\"event\":\"$1\""
	shift
	for field in "$@"; do
		value=${field#*=}
		case $value in
		'' | *[!0-9]*)
			case $value in # start two processes only if needed
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

# report an event whose further fields must() has left: EVENT FIELD...
report_said() {
	# shellcheck disable=SC2086 # "folios=... ns=..."
	report "$@" arm="$ARM" $SAID
}

# the job cannot go on: report why and end
fail() {
	report fail what="$*"
	finish 1
}

# run a command and keep its output in SAID; if it fails, the job ends
must() {
	SAID=$("$@" 2>&1) || fail "$*: $SAID"
}

# write to a file; if it is refused, the job ends: FILE TEXT
must_write() {
	echo "$2" >"$1" || fail "$2 is refused by $1"
}

# wait until COMMAND succeeds, for half a minute at most: COMMAND...
await() {
	tries=0
	until "$@"; do
		tries=$((tries + 1))
		[ $tries -lt 1500 ] || return 1
		usleep 20000
	done
}

# unload bulkmm.ko, after all paths are off: one that is on holds it
remove() {
	echo 1 >$BULKMM/off && rmmod bulkmm
}

# names of the backends in a FILE that lists them: "generic [movnti=12.3]"
backend_names() {
	sed 's/[][]//g;s/=[0-9.]*//g;s/^fastest //' "$1"
}

# switch through the backends of such a FILE
every_backend() {
	for name in $(backend_names "$1") fastest; do must_write "$1" "$name"; done
}

# a counter, without starting a program: PATH NAME
stat_of() {
	[ -d "$BULKMM" ] || return 0
	while read -r stat value; do
		[ "$stat" != "$2" ] || echo "$value"
	done <"$BULKMM/$1/stats"
}

# write a line to the kernel log that separates what follows
mark() {
	echo "<5>bulkmm-lab: $*" >/dev/kmsg
}

# write a line that the console shows too, so that the host can match both
warnings() {
	echo "<4>bulkmm-lab: warnings $1" >/dev/kmsg
}

# send the kernel log and the end marker, then power off; an unintended reboot
# never gets here
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
