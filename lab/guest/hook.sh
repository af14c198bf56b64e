# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
# What can go wrong between the module and ftrace, provoked on a test build
# (BMM_FAULTS=1): each case ends in checks, as in faults.sh.

FTRACE=/proc/sys/kernel/ftrace_enabled
HOOKED=/sys/kernel/debug/tracing/enabled_functions

# kernel.ftrace_enabled at 0 while the module comes and goes; nothing else may
# use a kprobe meanwhile. 7.3 refuses the 0.
case_toggled_around_loads() {
	write $FTRACE 0 2>/dev/null || return 0
	load memmap=on
	check "loaded with ftrace off: hook says so" \
		grep -q '^-6 memmap_init_zone_device: ' "$MEMMAP/hook"
	must rmmod bulkmm
	write $FTRACE 1
	load memmap=on
	check "loaded with ftrace on again: attached" \
		grep -q '^0 memmap_init_zone_device: ' "$MEMMAP/hook"
	must rmmod bulkmm
}

# before bulkmm_lab, which has a kprobe of its own, is loaded
hook_faults_alone() {
	case_toggled_around_loads
}

# what the module says of a path: SYMBOL's line of its hook begins with ERRNO
says_of() {
	grep -q "^$2 $3: " "/sys/kernel/bulkmm/$1/hook"
}

# modules may have functions of any name: those are never hooked
case_namesake() {
	must insmod /lib/modules/bulkmm_namesake.ko
	load memmap=off alloc=auto
	name=clear_highpages_kasan_tagged
	if grep -q " $name\$" /proc/kallsyms; then
		check "namesake: the kernel's own is hooked" says_of alloc 0 $name
	else
		check "namesake: a module's is none" says_of alloc -2 $name
	fi
	check "namesake: no function of the module is hooked" \
		refused grep -q bulkmm_namesake "$HOOKED"
	must rmmod bulkmm
	load fault_symbol=memmap_init_zone_device \
		fault_other=bulkmm_namesake_only
	check "namesake: a module's alone is none" \
		says_of memmap -2 memmap_init_zone_device
	check "namesake: that one is not hooked either" \
		refused grep -q bulkmm_namesake "$HOOKED"
	must rmmod bulkmm
	must rmmod bulkmm_namesake
}

# a name must stand for one function: what else there is, kallsyms tells
case_ambiguous() {
	twice=$(awk '$2 == "t" && NF == 3 && seen[$3]++ { print $3; exit }' \
		/proc/kallsyms)
	check "ambiguous: the kernel has such a name" [ "$twice" ]
	for other in "$twice=-99" jiffies_64=-14 no_such_function=-2; do
		load fault_symbol=memmap_init_zone_device "fault_other=${other%=*}"
		check "${other%=*}: hook says ${other#*=}" \
			says_of memmap "${other#*=}" memmap_init_zone_device
		check "${other%=*}: mode is off" \
			[ "$(cat "$MEMMAP/mode")" = "[off] on" ]
		must rmmod bulkmm
	done
}

hook_faults() {
	[ -e "$DRIVER/$DEVICE" ] || up
	snapshot
	case_namesake
	case_ambiguous
}
