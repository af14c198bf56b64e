# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
# What the module is loaded with, shows in sysfs, and leaves behind: cases of a
# test build (BMM_FAULTS=1).

# references to removed sysfs objects do not keep their names in use
case_held() {
	for at in "$BULKMM" "$MEMMAP"; do
		load memmap=on
		check "held ${at##*/}: is held" write "$LAB/hold" "$at"
		must remove
		check "held ${at##*/}: gone" [ ! -e "$BULKMM" ]
		check "held ${at##*/}: loads again" \
			insmod /lib/modules/bulkmm.ko memmap=on
		write "$LAB/hold" " "
		check "held ${at##*/}: files work" hook_says 0
	done
}

# no memory at each step of loading in turn, or each N-th; invalid parameters:
# [N]
case_load_fails() {
	step=1
	until insmod /lib/modules/bulkmm.ko memmap=on fault_alloc=$step \
		2>/dev/null || [ -e "$BULKMM" ] || [ $step -ge 100 ] ||
		grep -q "$DIRECT" "$HOOKED"; do
		step=$((step + ${1-1}))
	done
	check "load fails at each of its steps, nothing is left" \
		grep -q '^bulkmm ' /proc/modules
	# a path takes two steps: its object and its files
	check "load fails: all of it was tried" \
		[ $step -gt $((2 * $(find "$BULKMM" -name mode | wc -l))) ]
	check "load fails: and then it loads" hook_says 0
	must remove
	for bad in memmap=2 hotplug=yes clear= vmap=blocks alloc=on,off inert=2 \
		memmap_min_pages=-1 memmap_min_pages=1e9; do
		check "$bad: refused" refused insmod /lib/modules/bulkmm.ko $bad
		check "$bad: nothing left" [ ! -e "$BULKMM" ]
	done
}

# no memory to measure with, at load and later; then there is some
case_not_calibrated() {
	said='no memory to measure with'
	before=$(dmesg | grep -c "$said")
	load memmap=on fault=nomem
	check "not calibrated: a line for each operation" \
		[ $(($(dmesg | grep -c "$said") - before)) = 3 ]
	file=$CLEAR/backend_cached
	for at in "$BULKMM"/*/backend*; do
		check "not calibrated: the first serves (${at##*/})" \
			grep -q '^\[[a-z0-9-]*\] [^=[]*$' "$at"
	done
	if write "$COPY/mode" on 2>/dev/null; then # not on every architecture
		check "not calibrated: a line for copies" \
			[ $(($(dmesg | grep -c "$said") - before)) = 4 ]
		write "$COPY/mode" off
	fi
	check "not calibrated: nor when asked to" refused write "$file" fastest
	check "not calibrated: one can be forced" write "$file" generic
	check "forced: it says so" grep -q '^fastest .*\[generic\]' "$file"
	write "$PARAMETERS/fault" none
	check "calibrated later" write "$file" fastest
	check "calibrated later: rates are known" \
		grep -q '^[^[]*\[[a-z0-9-]*=[0-9.]*\]' "$file"
	check "calibrated later: not forced" refused grep -q fastest "$file"
	! write "$COPY/mode" on 2>/dev/null || check "calibrated later: copies, too" \
		eval "dmesg | grep -q 'copy: kernel [0-9].* MB/s: .* serves'"
}

# PMD mappings are used if the kernel says that it may; if that cannot be found,
# they are not; booted with nohugevmalloc, the variable is 0, as another one is
case_no_blocks() {
	said='mode block maps as mode pte'
	load memmap=off vmap=block
	check "blocks: nothing against them is said" \
		[ "$(dmesg | grep "$said" | grep -vc "built by Clang: ")" = 0 ]
	for other in '' oops_in_progress; do
		before=$(dmesg | grep -c "$said")
		load memmap=off vmap=off fault_symbol=vmap_allow_huge \
			fault_other=$other
		must_write "$VMAP/mode" block
		check "no blocks (${other:-not found}): it says so" \
			[ "$(dmesg | grep -c "$said")" = $((before + 1)) ]
	done
}

# a file has a number, a word or a choice; except hook: a line per function, stats:
# a line per counter, and known: a line per size and node
case_files() {
	load memmap=on clear=auto vmap=pte
	many=$(find "$BULKMM" -type f | wc -l)
	check "files: $many" [ "$many" -gt 15 -a "$many" -le 60 ]
	find "$BULKMM" -type f ! -name hook ! -name off ! -name stats \
		! -name known ! -name zero >/tmp/files
	# all in one process, which does not notice a missing end of line
	# shellcheck disable=SC2046 # names without blanks
	odd=$(awk -v word='[0-9a-z.+_=-]+' '
	BEGIN { choice = "(" word " )*\\[" word "\\]( " word ")*" }
	FNR > 1 || $0 !~ "^(" word "|" choice ")$" { print " " FILENAME }
	' $(cat /tmp/files))
	check "one value a file:$odd" [ -z "$odd" ]
	check "one value a file: and one line" \
		[ "$(xargs cat </tmp/files | wc -l)" = "$(wc -l </tmp/files)" ]
	check "stats: a counter a line, each once" [ -z "$(cat "$BULKMM"/*/stats |
		grep -Evx '[a-z][a-z_]* -?[0-9]+')$(for at in "$BULKMM"/*/stats; do
			cut -d ' ' -f 1 "$at" | sort | uniq -d
		done)" ]
	check "stats: of every path" [ "$(cat "$BULKMM"/*/stats |
		grep -c '^hits ')" = "$(cat "$BULKMM"/*/mode | wc -l)" ]
}

# a CPU's share of the last-level cache, as the kernel knows it: BYTES
cache_share() {
	bytes=0
	for at in /sys/devices/system/cpu/cpu0/cache/index*; do
		[ -e "$at/size" ] || continue
		sharing=$(tr ',' '\n' <"$at/shared_cpu_list" | awk -F - '
			{ n += NF > 1 ? $2 - $1 + 1 : 1 }
			END { print n }')
		bytes=$(($(sed 's/K//' "$at/size") * 1024 / sharing))
	done
	[ $bytes -gt 2097152 ] || bytes=2097152
}

# the default of cached_max
case_cached_max() {
	# on AMD the kernel reads CPUID leaves that describe all caches together
	grep -qw GenuineIntel /proc/cpuinfo || return 0
	load memmap=off clear=off
	cache_share
	check "cached_max: a CPU's share, $bytes" \
		[ "$(cat "$CLEAR/cached_max")" = "$bytes" ]
}
