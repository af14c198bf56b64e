# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
# The module's state: set, recorded, toggled. The host alone judges what is
# recorded (lab/state.py).

# bring the module into a state, named ARM: ARM [PATH=MODE or PATH/FILE=VALUE]...
# Without any it is unloaded. What ends in "?" may be refused, where a kernel
# lacks the path's functions.
state() {
	[ $# -gt 1 ] || unload
	ARM=$1
	shift
	[ $# = 0 ] || [ -d "$BULKMM" ] ||
		must insmod /lib/modules/bulkmm.ko memmap=off hotplug=off
	for set; do
		file=${set%%=*} value=${set#*=}
		[ "$file" != "${file#*/}" ] || file=$file/mode
		echo "${value%\?}" 2>/dev/null >"$BULKMM/$file" && continue
		case $set in
		*\?) ;;
		*/backend*)
			report unknown-backend known="$(backend_names "$BULKMM/$file")"
			finish 1
			;;
		*) fail "$value is refused by $file" ;;
		esac
	done
}

# every path that the kernel has, and whose work it does not do itself
ALL_ON="memmap=on? clear=auto? prezero=on? alloc=auto? copy=on? vmap=block? hotplug=on"
all_on() {
	# shellcheck disable=SC2086 # words
	state on $ALL_ON
}

# the counters go with the module
unload() {
	[ -d "$BULKMM" ] || return 0
	record unload
	must remove
}

# report all that the module shows: before and after (a visit, whose own report
# follows), or at unload
record() {
	[ -d "$BULKMM" ] || return 0
	# shellcheck disable=SC2035 # no name begins with a dash
	shown=$(cd "$BULKMM" && awk '
	BEGIN {
		for (i = 1; i < ARGC; i++) {
			printf "%s\"%s\":\"", (i > 1 ? "," : ""), ARGV[i]
			while ((getline line < ARGV[i]) > 0) {
				gsub(/[[:cntrl:]"\\]/, " ", line)
				printf "%s%s", line, "\\n"
			}
			printf "\""
		}
	}' version */*) || fail "no state"
	# in one piece, which others do not interrupt
	echo "{\"event\":\"state\",\"when\":\"$1\",\"arm\":\"$ARM\",\"files\":{$shown}}" >&3
}

# a visit, with the fields that COMMAND prints: "EVENT FIELD..." COMMAND...
visited() {
	visit=$1
	shift
	record before
	must "$@"
	record after
	# shellcheck disable=SC2086 # words
	report_said $visit
}

# start a process of a soak; its output and exit code go to files: NAME COMMAND...
worker() {
	worker=/tmp/worker.$1
	SOAKERS="$SOAKERS $1"
	shift
	(
		"$@" >"$worker.said" 2>&1
		echo $? >"$worker.code"
	) &
}

working() {
	for worker in $SOAKERS; do
		[ -e "/tmp/worker.$worker.code" ] || return 0
	done
	return 1
}

# load, take turns and unload again and again while workers work, and LEAST times;
# from then on /tmp/soaked tells them so. Then report what they said:
# SECONDS LEAST TURN STATE...
soak() {
	half=$(($1 / 2)) least=$2 turn=$3 loads=0 turns=0
	shift 3
	while working || [ $loads -lt "$least" ]; do
		state toggled "$@"
		# loading takes seconds; a turn may, where CPUs are slow
		end=$(($(date +%s) + half))
		for _ in 1 2 3 4 5 6 7 8 9 10; do
			$turn
			turns=$((turns + 1))
			[ "$(date +%s)" -lt $end ] || break
		done
		state absent
		loads=$((loads + 1))
		[ $loads -lt "$least" ] || : >/tmp/soaked
	done
	[ -z "$DIRTY" ] || kill "$DIRTY"
	wait
	for name in $SOAKERS; do
		read -r code <"/tmp/worker.$name.code"
		[ "$code" = 0 ] || fail "$name: $(cat "/tmp/worker.$name.said")"
		while read -r said; do
			# shellcheck disable=SC2086 # "folios=... wrong=..."
			report soaked process="$name" $said
		done <"/tmp/worker.$name.said"
	done
	report soak turns=$turns loads=$loads
}
