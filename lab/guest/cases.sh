# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
# Calls folio_zero_user() as no fault does (module/selftest/zero.c), and times
# such calls.

ZERO=/sys/kernel/debug/bulkmm_lab/zero

# clear folios of these orders, with every hint: LABEL CORRUPT ORDER...
cases() {
	label=$1 corrupt=$2
	shift 2
	record before
	for order in "$@"; do
		must_write $ZERO "$order $corrupt"
		must cat $ZERO
		report_said case label="$label" backend="$FORCED"
	done
	record after
	report cases label="$label" arm="$ARM" orders="$*"
}

# likewise with each backend of the mode in turn: ORDER...
cases_by_backend() {
	forced "$ARM" cases forced 0 "$@"
}

# set a file of the clear path: NAME VALUE
tune() {
	must_write "$CLEAR/$1" "$2"
}

# force the backend that stores register by register
plain_stores() {
	case $(uname -m) in
	aarch64) tune backend_cached stp ;;
	*) tune backend_cached plain ;;
	esac
}

# times calls on folios of these orders: CALLS ORDER...
call_times() {
	many=$1
	shift
	for order in "$@"; do
		must_write ${ZERO}_time "$order $many"
		must cat ${ZERO}_time
		report_said calls
	done
}
