# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
# Commands of a vmap job: the host decides the order and what to expect;
# bulkmm_vmaptest.ko maps and judges.

VMAPTEST=/sys/kernel/debug/bulkmm_vmap

# run a command of the test module; its answer goes to stdout
ask() {
	exec 4<>$VMAPTEST || fail "no $VMAPTEST"
	echo "$*" >&4 || fail "$* is refused"
	cat <&4
	exec 4>&-
}

# compare random page arrays with the model: LABEL LARGE ARRAYS SEED...
checked() {
	label=$1
	shift
	must ask check "$@"
	report_said checked label="$label"
}

# call a public function: PHYSICAL ADDRESS (for ioremap) NAME PAGES CALLS
enter() {
	visited "entry name=$2 pages=$3" ask enter "$@"
}

# report the test module's verdicts, one event each: COMMAND...
ktap() {
	ask "$@" >/tmp/ktap || exit
	while read -r verdict line; do
		case $verdict in
		ok | not) report ktap arm="$ARM" of="$1" line="$verdict $line" ;;
		[0-9]*) report ktap-plan arm="$ARM" of="$1" plan="${verdict#1..}" ;;
		esac
	done </tmp/ktap
}

# make a request that the kernel warns of; the host reads the log between marks
bad() {
	warnings "of $1 in $ARM begin"
	ktap bad "$1"
	warnings end
}

# run the kernel's own lib/test_vmalloc.c, which never stays loaded: OPTION...
upstream() {
	warnings "of test_vmalloc in $ARM begin"
	before=$(dmesg | grep -c 'Summary: ')
	SAID=$(bmmguest load /lib/modules/test_vmalloc.ko "$*" 2>&1)
	matches "$SAID" 'Resource temporarily unavailable' ||
		fail "test_vmalloc: $SAID"
	warnings end
	dmesg | grep -o 'Summary: .*' | tail -n +$((before + 1)) >/tmp/summary
	while read -r line; do
		report upstream arm="$ARM" line="$line"
	done </tmp/summary
}

# map and unmap for SECONDS, and until the module was loaded often enough:
# NUMBER SEED SECONDS
mapper() {
	piece=0 end=$(($(date +%s) + $3))
	until [ -e /tmp/soaked ] && [ "$(date +%s)" -ge $end ]; do
		ask soak 1 $((2 * ($2 + piece) + $1)) || return 1
		piece=$((piece + 1))
	done
}

# switch through the MODES of the job
vmap_turn() {
	for mode in $MODES; do
		must_write "$VMAP/mode" "$mode"
		usleep 20000 # a few arrays in each
	done
}
