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

# names of the backends in a FILE that lists them: "LABEL: generic [movnti=9.8]",
# a line for each pick, the same names in all
backend_names() {
	sed -n '1{s/.*: //;s/=[0-9.]*//g;s/[][]//g;p;}' "$1"
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
	report end code="$1" taint="$(cat /proc/sys/kernel/tainted)"
	sync
	poweroff -f
	sleep 60
}
