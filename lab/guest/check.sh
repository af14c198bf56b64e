# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
# Checks, and what they look at: the module, its lines in the kernel log, and
# the device of a persistent-memory job.

# report a check, ok if COMMAND succeeds: NAME COMMAND...
check() {
	checked=$1
	shift
	if "$@"; then ok=yes; else ok=no; fi
	report check name="$checked" ok=$ok detail="$*"
}

refused() {
	! "$@" 2>/dev/null
}

# a file has one line, with this text: FILE TEXT
reads() {
	read -r line <"$1" && [ "$line" = "$2" ]
}

# loaded where a symbol is missing that a path needs: PATH SYMBOL
symbol_missing() {
	before=$(lines)
	load memmap=off "$1=on" fault_symbol="$2"
	settle
	check "$2 missing: one line" [ $(($(lines) - before)) = 1 ]
	check "$2 missing: off" reads "$BULKMM/$1/mode" "[off] on"
	check "$2 missing: hook says so" says_of "$1" -2 "$2"
	check "$2 missing: on is refused" refused write "$BULKMM/$1/mode" on
}

# TEXT PATTERN
matches() {
	echo "$1" | grep -q "$2"
}

write() {
	echo "$2" >"$1"
}

# load the module, again if it is there: OPTION... Hotplug is on by default, and the
# cases of other paths do without it.
load() {
	gone
	must insmod /lib/modules/bulkmm.ko hotplug=off "$@"
}

gone() {
	[ ! -d "$BULKMM" ] || must remove
}

# after each case the module goes: "NAME ARGUMENT..."...
each_case() {
	for each; do
		# shellcheck disable=SC2086 # words
		case_$each || [ $? != 127 ] || fail "there is no case_$each"
		gone
	done
}

# count the module's lines in the kernel log so far, but for calibration's
lines() {
	dmesg | grep ' bulkmm: ' | grep -vce ': backend[a-z_]*: .*\[' -e 'built by Clang: '
}

# in the path's file hook, SYMBOL's line begins with ERRNO, and a TEXT follows:
# PATH ERRNO SYMBOL [TEXT]
says_of() {
	grep -q "^$2 $3: ${4-}" "$BULKMM/$1/hook"
}

# ERRNO [TEXT]
hook_says() {
	says_of memmap "$1" memmap_init_zone_device "${2-}"
}

# is a call inside? PATH
has_calls() {
	[ "$(stat_of "$1" inflight)" -gt 0 ] 2>/dev/null
}

# wait until no hook is detaching
settle() {
	while grep -q '^-115 ' "$BULKMM"/*/hook; do sleep 0.1; done
}

counter() {
	stat_of memmap "$1"
}

# the device comes up just as with the kernel's own function
same() {
	echo "$MIDDLE" >"$LAB/compare" || return 1
	read -r verdict <"$LAB/compare"
	matches "$verdict" " words_differ=0 pageblocks_differ=0 "
}

# the device, brought up by a program that runs others: [PROGRAM...]
up() {
	"$@" bmmguest write "$DRIVER/bind" "$DEVICE" "$NODE" >/dev/null
}

down() {
	bmmguest write "$DRIVER/unbind" "$DEVICE" >/dev/null
}

# the device goes down and comes up as with the kernel's own function, and the
# module has served it so often in all ("-": any number): NAME HITS
comes_up() {
	down
	check "$1: device comes up" up
	[ "$2" = - ] || check "$1: hits $2" [ "$(counter hits)" = "$2" ]
	check "$1: same bytes" same
}
