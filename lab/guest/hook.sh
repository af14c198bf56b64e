# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
# What can go wrong between the module and ftrace, provoked on a test build
# (BMM_FAULTS=1): symbols, other users, switching a path. Each case ends in
# checks, as in faults.sh. hook-faults also runs cases of load.sh.

FTRACE=/proc/sys/kernel/ftrace_enabled
HOOKED=/sys/kernel/tracing/enabled_functions
DIRECT="direct-->bmm_memmap_trampoline"

# kernel.ftrace_enabled is 0 while the module is loaded. It must register nothing
# then, or ftrace shuts down later (6.12; 7.3 never takes the 0): when another path is
# switched off, or when a kprobe of somebody else goes. bulkmm_lab comes later,
# for it has a kprobe.
case_toggled_around_loads() {
	write $FTRACE 0 2>/dev/null || return 0
	load memmap=on
	check "loaded with ftrace off: hook says so" hook_says -6
	write $FTRACE 1
	must_write "$VMAP/mode" pte
	must_write "$VMAP/mode" off
	must_write "$MEMMAP/mode" on
	check "ftrace on again: attached" hook_says 0
	# or the hook would go, though it is reported as attached
	check "knob: 0 is refused while a path is on" refused write $FTRACE 0
	must remove
	write $FTRACE 0
	load memmap=on
	must remove
	write $FTRACE 1
	user_begin kprobe do_sys_openat2
	user_end kprobe
	load memmap=on
	check "loaded with ftrace off, and a kprobe elsewhere: attached" \
		hook_says 0
	must remove
}

# modules may have functions of any name: these are never hooked, nor do they
# keep the kernel's own from being hooked
case_namesake() {
	load memmap=off alloc=auto vmap=pte
	hooks=$(cat "$BULKMM/alloc/hook" "$BULKMM/vmap/hook")
	must remove
	must insmod /lib/modules/bulkmm_namesake.ko
	names='clear_highpages_kasan_tagged|vmap_range_noflush|bulkmm_namesake_only'
	[ "$(grep -Ec " ($names).\[bulkmm_namesake\]" /proc/kallsyms)" = 3 ] ||
		fail "bulkmm_namesake lacks one of its names"
	load memmap=off alloc=auto vmap=pte
	check "namesake: hooks of alloc and vmap as without it" [ "$hooks" = \
		"$(cat "$BULKMM/alloc/hook" "$BULKMM/vmap/hook")" ]
	check "namesake: no function of the module is hooked" \
		refused grep -q bulkmm_namesake "$HOOKED"
	load fault_symbol=memmap_init_zone_device \
		fault_other=bulkmm_namesake_only
	check "namesake: a module's alone is none" hook_says -2
	check "namesake: that one is not hooked either" \
		refused grep -q bulkmm_namesake "$HOOKED"
	must remove
	must rmmod bulkmm_namesake
}

# a name must stand for exactly one function, according to kallsyms
case_ambiguous() {
	twice=$(awk '$2 == "t" && NF == 3 && seen[$3]++ { print $3; exit }' \
		/proc/kallsyms)
	check "ambiguous: the kernel has such a name" [ "$twice" ]
	for other in "$twice=-99" jiffies_64=-14 no_such_function=-2 \
		vmap_range_noflush=-91 get_vm_area_caller=-91; do
		load fault_symbol=memmap_init_zone_device "fault_other=${other%=*}"
		check "${other%=*}: hook says ${other#*=}" \
			hook_says "${other#*=}"
		check "${other%=*}: mode is off" reads "$MEMMAP/mode" "[off] on"
	done
}

# a struct of the kernel that is not as the module was built for: the size differs,
# the offset does, or there is no such member
case_layout() {
	x86="alloc auto thread_info.status"
	[ "$(uname -m)" = x86_64 ] || x86=
	for row in "memmap on vmem_altmap.base_pfn page.flags" \
		"memmap on mem_section.section_mem_map" \
		"clear auto task_struct.flags thread_info.flags" \
		"prezero on page.page_type" \
		"vmap pte vm_struct.flags vm_struct.size" \
		"prezero on hstate.order hstate.demote_order" \
		"hotplug on zone.contiguous" ${x86:+"$x86"}; do
		# shellcheck disable=SC2086 # words
		set -- $row
		load memmap=off hotplug=off
		before=$(lines)
		load memmap=off hotplug=off "$1=$2" fault_symbol="$3" \
			fault_other="${4-}"
		check "layout of $3: one line" [ $(($(lines) - before)) = 1 ]
		check "layout of $3: hook says so" says_of "$1" -117 "$3" \
			"the kernel's struct has another layout"
		check "layout of $3: on is refused" \
			refused write "$BULKMM/$1/mode" "$2"
		check "layout of $3: mode is off" grep -q '^\[off\] ' \
			"$BULKMM/$1/mode"
	done
	load memmap=on clear=auto alloc=auto copy=on vmap=block prezero=on \
		hotplug=on
	check "layout as built: no path says otherwise" \
		refused grep -h '^-117 ' "$BULKMM"/*/hook
	check "layout as built: clear is attached" says_of clear 0 "$HOOKED_CLEAR"
}

# a hooked function has lost a caller, or one has another name; a path can do without
# the last of them: PATH ERRNO CALL and, of what is missing, CALL OTHER
case_callers() {
	new=memory_block_online
	for row in \
		"memmap -67 memremap_pages->memmap_init_zone_device" \
		"memmap -78 $new->memmap_init_zone_device memremap_pages $new" \
		"hotplug -78 $new->set_zone_contiguous move_pfn_range_to_zone $new" \
		"hotplug -67 memunmap_pages->remove_pfn_range_from_zone"; do
		# shellcheck disable=SC2086 # words
		set -- $row
		load memmap=off hotplug=off "$1=on" fault_other="${5-}" \
			fault_symbol="${4-${3%->*}}->${3#*->}"
		if dmesg | grep -q " bulkmm: $1: not refused: $3: "; then
			check "callers: built for any kernel: attached" hook_says 0
			must remove
			return
		fi
		check "callers: $3: one line" \
			[ "$(dmesg | grep -c " bulkmm: $1: .*: $3: a call that ")" = 1 ]
		check "callers: $3: hook says so" says_of "$1" "$2" "$3" "a call that"
		case $3 in *remove_pfn*) continue ;; esac
		check "callers: $3: on is refused" refused write "$BULKMM/$1/mode" on
		check "callers: $3: mode is off" reads "$BULKMM/$1/mode" "[off] on"
	done
	check "callers: in part: on" reads "$BULKMM/hotplug/mode" "off [on]"
	must remove
}

# a kernel with a function of upstream/ or a member of Linux 7.4, whichever one plays
# it: PATH ITS-NAME PLAYED-BY MODE...
case_replaced() {
	nt="__clear_pages_nt memmap_init_zone_device auto cached streaming"
	[ "$(uname -m)" = x86_64 ] || nt=
	for row in "memmap __memmap_init_zone_device memmap_init_zone_device on" \
		"memmap mem_section.compound_page_order mem_section.usage on" \
		${nt:+"clear $nt" "alloc $nt"} \
		"hotplug zone.pages_with_online_memmap zone.contiguous on"; do
		# shellcheck disable=SC2086 # words
		set -- $row
		path=$1 name=$2 player=$3
		shift 3
		load "fault_symbol=$name" "fault_other=$player" "$path=$1"
		check "replaced: hook says $name" says_of "$path" -114 "$name" \
			"the kernel does the path's work itself"
		check "replaced: one line in the log says $name" \
			[ "$(dmesg | grep -c " bulkmm: $path: off: $name: ")" = 1 ]
		check "replaced: on is refused" refused write "$BULKMM/$path/mode" "$1"
		check "replaced: mode is off" reads "$BULKMM/$path/mode" "[off] $*"
		[ "$path" != memmap ] || comes_up "replaced by $name" 0
		# else clear could be switched on by the hook that prezero attached
		[ "$path" != clear ] || check "replaced: so is prezero, which needs its hook" \
			refused write "$PREZERO/mode" on
	done
	must remove
}

# a kernel of a series that the module was not built for: Ubuntu's 6.8 among them
case_other_series() {
	for release in 6.8.0-45-generic 7.4.0 unknown; do
		check "$release: does not load" refused insmod \
			/lib/modules/bulkmm.ko "fault_symbol=$(uname -r)" \
			"fault_other=$release"
		dmesg >/tmp/log
		check "$release: the log says why" grep -q "built for Linux $(uname -r |
			cut -d. -f1,2), and this is $release: " /tmp/log
		check "$release: nothing left" [ ! -e "$BULKMM" ]
	done
}

# a path that is off has no hook: others can attach to the function
case_off_detaches() {
	load memmap=on
	check "on: hooked" grep -q "$DIRECT" "$HOOKED"
	check "on: the module is in use" refused rmmod bulkmm
	check "off is taken" write "$MEMMAP/mode" off
	check "off: not hooked" refused grep -q "$DIRECT" "$HOOKED"
	check "off: hook says so" hook_says -19
	check "off: others can have it" write "$LAB/squat" 1
	write "$LAB/squat" 0
	check "on again is taken" write "$MEMMAP/mode" on
	comes_up "on again" 1
	check "all off" write "$BULKMM/off" 1
	for word in x y on 0; do
		check "all off: '$word' is refused" refused write "$BULKMM/off" "$word"
	done
	check "off: the module can go" rmmod bulkmm
}

# COMMAND does not end within SECONDS and is interrupted: SECONDS COMMAND...
interrupted() {
	seconds=$1
	shift
	timeout -s INT "$seconds" "$@" 2>/dev/null
	[ $? -gt 123 ]
}

# a call that never ends, as after a BUG() in the handler: waiting for it can be
# interrupted, other paths are not affected, and the module stays
case_stuck_call() {
	load memmap=on
	before=$(lines)
	begin_bringup stuck
	check "stuck: off can be interrupted" interrupted 3 \
		sh -c "echo off >$MEMMAP/mode"
	check "stuck: mode is off" reads "$MEMMAP/mode" "[off] on"
	check "stuck: hook says detaching" hook_says -115
	check "stuck: not hooked" refused grep -q "$DIRECT" "$HOOKED"
	check "stuck: the module is in use" refused rmmod bulkmm
	check "stuck: on waits, and can be interrupted" interrupted 3 \
		sh -c "echo on >$MEMMAP/mode"
	check "stuck: another path is switched on" write "$VMAP/mode" pte
	check "stuck: and off" write "$VMAP/mode" off
	check "stuck: no line so far" [ "$(lines)" = "$before" ]
	echo 4 >"$PARAMETERS/fault_patience" # longer than the interrupted waits
	check "stuck: off ends by itself" refused write "$MEMMAP/mode" off
	check "stuck: one line says what it waits for" eval \
		"[ $(($(lines) - before)) = 1 ] && dmesg | grep -q \
		'still detaching after 4 s, waits for calls that are inside'"
	echo none >"$PARAMETERS/fault"
	wait
	settle
	check "no longer stuck: hook says off" hook_says -19
	check "no longer stuck: same bytes" same
	check "no longer stuck: the module can go" rmmod bulkmm
}

# no memory for detaching: calls pass at once, and the hook goes when there is
case_off_fails() {
	load memmap=on vmap=pte
	echo 2 >"$PARAMETERS/fault_patience"
	echo ask >"$PARAMETERS/fault"
	check "no memory: off does not wait for ever" \
		refused write "$MEMMAP/mode" off
	check "no memory: mode is off" reads "$MEMMAP/mode" "[off] on"
	check "no memory: hook says detaching" hook_says -115
	check "no memory: all off does not either" refused write "$BULKMM/off" 1
	check "no memory: the module is in use" refused rmmod bulkmm
	comes_up "no memory" 0
	echo none >"$PARAMETERS/fault"
	settle
	check "memory again: hook says off" hook_says -19
	check "memory again: on" write "$MEMMAP/mode" on
	comes_up "memory again" 1
	check "memory again: the module can go" remove
}

# concurrent writes to one setting and to all of them
case_two_writers() {
	load memmap=on
	echo 600 >"$PARAMETERS/fault_patience" # no matter how slow the machine
	for _ in 1 2 3; do
		(for mode in off on off on off on off on off; do
			write "$MEMMAP/mode" $mode 2>>/tmp/refused
		done) &
	done
	(for _ in 1 2 3; do write "$BULKMM/off" 1 2>>/tmp/refused; done) &
	wait
	check "two writers: none is refused" [ -z "$(cat /tmp/refused)" ]
	write "$MEMMAP/mode" on
	comes_up "two writers" 1
	check "two writers: nobody inside" [ "$(counter inflight)" = 0 ]
}

# the allocator may be called in atomic context (lab/guest/module/irq.c): FILE CONTEXT
case_interrupt() {
	[ -e "$LAB/$1" ] || return 0
	load memmap=off alloc=auto
	before=$(stat_of alloc hits)
	check "$2: 50 huge pages are asked for" write "$LAB/$1" 50
	check "$2: 50 huge pages, all zero" \
		[ "$(cat "$LAB/$1")" = "seen=1 got=50 wrong=0" ]
	after=$(stat_of alloc hits)
	if says_of alloc 0 clear_highpages_kasan_tagged; then
		# twice 50: the page to dirty was cleared, too
		check "$2: served" [ $((after - before)) = 100 ]
	else
		check "$2: no path" [ "$after" = 0 ]
	fi
}

# the last case: ftrace stays dead from here on
case_ftrace_dead() {
	load memmap=on vmap=pte prezero=on
	before=$(lines)
	write "$LAB/kill_ftrace" 1
	check "dead: hook says attached" hook_says 0
	check "dead: all off is refused" refused write "$BULKMM/off" 1
	check "dead: every path is off" \
		refused grep -v '^\[off\] ' "$BULKMM"/*/mode
	check "dead: off is refused" refused write "$MEMMAP/mode" off
	check "dead: mode is off" reads "$MEMMAP/mode" "[off] on"
	check "dead: hook says for good" \
		hook_says 0 "attached for good: ftrace has shut down"
	check "dead: off again is refused" refused write "$MEMMAP/mode" off
	check "dead: one line says so" [ $(($(lines) - before)) = 1 ]
	check "dead: the module stays" refused rmmod bulkmm
	comes_up "dead" 0
	check "dead: on serves" write "$MEMMAP/mode" on
	comes_up "dead again" 1
	# its hooks may be off their functions, and a page that it knows be dirty
	check "dead: prezero stays off" refused write "$PREZERO/mode" on
	check "dead: prezero is off" reads "$PREZERO/mode" "[off] on"
	check "dead: another path says why" refused write "$HOTPLUG/mode" on
	check "dead: it has" says_of hotplug -108 set_zone_contiguous
}

hook_faults() {
	[ -e "$DRIVER/$DEVICE" ] || up
	snapshot
	each_case namesake ambiguous layout callers replaced other_series off_detaches off_fails \
		two_writers held stuck_call load_fails not_calibrated no_blocks files cached_max \
		"interrupt zero_irq interrupt" "interrupt zero_nmi NMI"
	case_ftrace_dead
}

# a path that stays off: PATH MODE ERRNO SUBJECT
case_path_refused() {
	at=$BULKMM/$1
	check "$1: hook says why" says_of "$1" "$3" "$4"
	check "$1: one line in the log does" \
		[ "$(dmesg | grep -c " bulkmm: $1: off: $4: ")" = 1 ]
	check "$1: mode is off" grep -q '^\[off\] ' "$at/mode"
	check "$1: switching on is refused" refused write "$at/mode" "$2"
	check "$1: mode is off still" grep -q '^\[off\] ' "$at/mode"
}

# PATH FUNCTION
case_attached() {
	check "$1: attached" says_of "$1" 0 "$2"
}

hook_refused() {
	load memmap=on clear=auto alloc=auto vmap=block hotplug=on
	case $(uname -r) in
	*-kasan.*)
		case_path_refused memmap on -95 CONFIG_KASAN
		case_path_refused clear auto -95 CONFIG_KASAN
		case_path_refused alloc auto -95 CONFIG_KASAN
		;;
	*)
		case_path_refused memmap on -95 CONFIG_KEXEC_HANDOVER
		# a caller that GCC inlines into others in Debian's configurations
		case_path_refused alloc auto -78 \
			"prep_new_page->clear_highpages_kasan_tagged"
		case_attached clear folio_zero_user
		;;
	esac
	case $(uname -r) in
	*-moved.*) case_path_refused hotplug on -78 "zone_grown->set_zone_contiguous" ;;
	*) case_attached hotplug set_zone_contiguous ;;
	esac
	case_attached vmap vmap_small_pages_range_noflush
	check "the module can go" remove
}

# what keeps paths from a kernel that does their work itself, if anything does
hook_patched() {
	load memmap=on clear=auto alloc=auto prezero=on vmap=pte
	for path in memmap clear alloc prezero vmap; do
		read -r errno says <"$BULKMM/$path/hook"
		report patched-hook path=$path errno="$errno" says="$says"
	done
	check "the module can go" remove
}

case_many_loads() {
	for _ in 1 2 3; do
		load memmap=on clear=auto alloc=auto vmap=block
	done
}

# cases that create and remove objects, where each release is delayed by seconds; the
# kernel itself waits for seconds at each module unload
hook_kobject() {
	up
	snapshot
	each_case held two_writers many_loads "load_fails 5"
	down
}
