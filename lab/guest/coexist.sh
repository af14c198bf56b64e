# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
# Other users of the functions that the module hooks, attached before and after
# it, with a path on and off: those that share a function still see every call;
# exclusive ones are refused while the module has it hooked, and keep the module
# out while they have it. Every folio must be zero, whoever clears it.

HOOKED_CLEAR=folio_zero_user
case $(uname -r) in # looking it up in kallsyms would cost every guest a second
6.1.*) HOOKED_CLEAR=clear_huge_page ;;
esac
FOLIOS=4 # faulted in for each check of who is called
PIN=/sys/fs/bpf/bmm
PATCHED=/sys/kernel/livepatch/bulkmm_livepatch
AGAIN=bulkmm_again # on the command line of the kernel that kexec starts

# KIND FUNCTION
user_begin() {
	case $1 in
	function | function_graph)
		write "$TRACING/set_ftrace_filter" "$2" &&
			write "$TRACING/current_tracer" "$1"
		;;
	kprobe | kretprobe)
		letter=${1%%probe}
		[ "$letter" = k ] && letter=p || letter=r
		write "$TRACING/kprobe_events" "$letter:bmm $2" &&
			write "$TRACING/events/kprobes/bmm/enable" 1
		;;
	fentry) bmmbpf attach "$2" $PIN $PIN-calls ;;
	livepatch) insmod /lib/modules/bulkmm_livepatch.ko && transition ;;
	esac
}

user_end() {
	case $1 in
	function | function_graph) write "$TRACING/current_tracer" nop ;;
	kprobe | kretprobe)
		write "$TRACING/events/kprobes/bmm/enable" 0
		write "$TRACING/kprobe_events" ""
		;;
	fentry)
		rm $PIN $PIN-calls
		await refused grep -q "^$2 " "$TRACING/enabled_functions"
		;;
	livepatch)
		write $PATCHED/enabled 0
		while [ -e $PATCHED ]; do usleep 10000; done
		must rmmod bulkmm_livepatch
		;;
	esac
}

# wait until every task uses the patch
transition() {
	while [ "$(cat $PATCHED/transition)" = 1 ]; do usleep 10000; done
}

# print how many calls of HOOKED_CLEAR a user has seen: KIND
user_calls() {
	case $1 in
	function) grep -c " $HOOKED_CLEAR <-" "$TRACING/trace" ;;
	function_graph) grep -c "$HOOKED_CLEAR()\|$HOOKED_CLEAR();" "$TRACING/trace" ;;
	kprobe | kretprobe)
		awk '$1 == "bmm" { print $2 }' "$TRACING/kprobe_profile"
		;;
	fentry) bmmbpf calls $PIN-calls ;;
	livepatch) cat /sys/module/bulkmm_livepatch/parameters/calls ;;
	none) echo 0 ;;
	esac
}

# fault folios in; a user of KIND and the module must have seen this many calls:
# NAME KIND CALLS HITS
used() {
	hits=$(stat_of clear hits) calls=$(user_calls "$2")
	must bmmfault -n $FOLIOS -b $FOLIOS hugetlb 2048 write-middle
	# shellcheck disable=SC2153 # set by must
	check "$1: every byte zero" matches "$SAID" "^folios=$FOLIOS .* wrong=0 "
	calls=$(($(user_calls "$2") - calls))
	[ "$2" = none ] ||
		check "$1: $2 sees $3 of $FOLIOS calls" [ $calls = "$3" ]
	check "$1: the module serves $4" [ $(($(stat_of clear hits) - hits)) = "$4" ]
}

# COMMAND is refused as the kernel does when a function is busy (on 7.3 BPF
# reports an invalid argument): COMMAND...
says_busy() {
	if said=$("$@" 2>&1); then return 1; fi
	case $said in
	*"Device or resource busy"* | *"attach: Invalid argument"*) return 0 ;;
	esac
	return 1
}

# KIND: a user that shares the function attaches before, then after the module
coexist_shared() {
	load clear=off
	check "$1 first, path off: attaches" user_begin "$1" $HOOKED_CLEAR
	used "$1 first, path off" "$1" $FOLIOS 0
	check "$1 first: on is taken" write "$CLEAR/mode" auto
	used "$1 first, path on" "$1" $FOLIOS $FOLIOS
	check "$1 first: off is taken" write "$CLEAR/mode" off
	used "$1 first, path off again" "$1" $FOLIOS 0
	user_end "$1" $HOOKED_CLEAR
	check "$1 gone: on is taken" write "$CLEAR/mode" auto
	check "$1 last, path on: attaches" user_begin "$1" $HOOKED_CLEAR
	used "$1 last, path on" "$1" $FOLIOS $FOLIOS
	must remove
	used "$1 stays, the module goes" "$1" $FOLIOS 0
	load clear=auto
	used "$1 stays, the module is back" "$1" $FOLIOS $FOLIOS
	user_end "$1" $HOOKED_CLEAR
	used "$1 gone, path on" none 0 $FOLIOS
}

# KIND: a user that needs the function exclusively
coexist_exclusive() {
	load clear=off
	check "$1 first, path off: attaches" user_begin "$1" $HOOKED_CLEAR
	used "$1 first, path off" "$1" $FOLIOS 0
	check "$1 first: on is refused" says_busy write "$CLEAR/mode" auto
	check "$1 first: hook says who has it" says_of clear -16 $HOOKED_CLEAR
	check "$1 first: mode is off" grep -q '^\[off\]' "$CLEAR/mode"
	used "$1 first, on refused" "$1" $FOLIOS 0
	load clear=auto
	check "$1 first: the module loads without the path" \
		says_of clear -16 $HOOKED_CLEAR
	used "$1 first, module loaded with on" "$1" $FOLIOS 0
	user_end "$1" $HOOKED_CLEAR
	check "$1 gone: on is taken" write "$CLEAR/mode" auto
	used "$1 gone, path on" none 0 $FOLIOS
	check "$1 last, path on: is refused" says_busy user_begin "$1" $HOOKED_CLEAR
	used "$1 last, refused" none 0 $FOLIOS
	check "$1 last: off is taken" write "$CLEAR/mode" off
	check "$1 last, path off: attaches" user_begin "$1" $HOOKED_CLEAR
	used "$1 last, path off" "$1" $FOLIOS 0
	must remove
	used "$1 stays, the module goes" "$1" $FOLIOS 0
	user_end "$1" $HOOKED_CLEAR
}

# every function that the module hooks here, not only that of clear
coexist_everywhere() {
	all_on
	hooked=$(cat "$BULKMM"/*/hook |
		awk '$1 == 0 { sub(":", "", $2); print $2 }')
	check "every function: more than $HOOKED_CLEAR" \
		[ "$(echo "$hooked" | wc -l)" -gt 4 ]
	for function in $hooked; do
		check "$function hooked: fentry is refused" \
			says_busy user_begin fentry "$function"
		check "$function hooked: kprobe attaches" \
			user_begin kprobe "$function"
		user_end kprobe
	done
	write "$TRACING/current_tracer" nop
	check "every function hooked: function_graph attaches" \
		user_begin function_graph "$hooked"
	used "every function traced, all on" none 0 $FOLIOS
	user_end function_graph
	check "every function: all off" write "$BULKMM/off" 1
	for function in $hooked; do
		check "$function, path off: fentry attaches" \
			user_begin fentry "$function"
		user_end fentry "$function"
	done
}

# ftrace's own switch: 7.3 never takes the 0, others do while nothing permanent is hooked
coexist_knob() {
	load clear=off
	if write "$FTRACE" 0 2>/dev/null; then
		check "ftrace off: on is refused" refused write "$CLEAR/mode" auto
		check "ftrace off: hook says so" says_of clear -6 $HOOKED_CLEAR
		used "ftrace off" none 0 0
		write "$FTRACE" 1
	fi
	check "ftrace on: on is taken" write "$CLEAR/mode" auto
	used "ftrace on" none 0 $FOLIOS
	check "path on: ftrace off is refused" refused write "$FTRACE" 0
	used "path on, ftrace stays" none 0 $FOLIOS
}

# all paths on, the machine jumps into the same kernel without a reset and runs
# this job again there (coexist_again)
coexist_kexec() {
	all_on
	used "before kexec" none 0 $FOLIOS
	(cd / && find . -xdev | cpio -o -H newc >/tmp/again.cpio 2>/dev/null)
	mark "kexec"
	dmesg >"$(port klog)"
	read -r words </proc/cmdline
	must bmmguest kexec /suite/vmlinuz /tmp/again.cpio "$words $AGAIN"
}

coexist_again() {
	check "after kexec: the module is not there" [ ! -e "$BULKMM" ]
	used "after kexec" none 0 0
	all_on
	used "after kexec, all on" none 0 $FOLIOS
}

# CASE...: kinds of users, everywhere, knob; kexec must come last
coexist() {
	mount -t bpf bpf /sys/fs/bpf
	must_write /proc/sys/kernel/bpf_stats_enabled 1
	folios hugetlb 2048 $FOLIOS
	if grep -qw $AGAIN /proc/cmdline; then
		coexist_again
		gone
		return
	fi
	for one in "$@"; do
		case $one in
		fentry | livepatch) coexist_exclusive "$one" ;;
		everywhere | knob | kexec) "coexist_$one" ;;
		*) coexist_shared "$one" ;;
		esac
		gone
		report step name="$one"
	done
}
