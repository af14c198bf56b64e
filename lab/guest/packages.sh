# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
# The Debian packages on a Debian of their own (in a snapshot of a disk), where they
# are installed: kept inert, used, upgraded, purged. Steps end in checks.

DEBIAN=/mnt
NOTES=/var/cache/bulkmm # lab/machine/disk.py
PURGED="bulkmm bulkmm-dkms libbulkmm-dev libbulkmm0"

inside() {
	chroot $DEBIAN /usr/bin/env -i HOME=/root LC_ALL=C.UTF-8 \
		DEBIAN_FRONTEND=noninteractive \
		PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"
}

# a command inside the Debian must succeed; if not, print its whole output
inside_must() {
	inside "$@" >/tmp/said 2>&1 && return
	report output of="$*" said="$(tail -c 3000 /tmp/said)"
	fail "$*: $(tail -n 1 /tmp/said)"
}

enter_debian() {
	must mount -t ext4 /dev/vda $DEBIAN
	must mount -t proc proc $DEBIAN/proc
	must mount -t sysfs sysfs $DEBIAN/sys
	must mount -t devtmpfs dev $DEBIAN/dev
	must mount -t tmpfs tmpfs $DEBIAN/tmp
	must mount -t tmpfs tmpfs $DEBIAN/run
	# as udev makes it: the dkms of Debian 12 removes nothing without
	must ln -s /proc/self/fd $DEBIAN/dev/fd
}

step() {
	read -r now _ </proc/uptime
	report step name="$1" seconds="$((${now%.*} - began))"
	began=${now%.*}
}

has() {
	grep -q -- "$1" "$2"
}

says() {
	inside "$@" 2>/dev/null
}

# the MODE in brackets of each path
modes() {
	sed 's/.*\[\(.*\)\].*/\1/' "$BULKMM"/*/mode | sort -u | xargs
}

hooked() {
	cat "$TRACING/enabled_functions"
}

check_built() {
	check "$1: DKMS has built it" \
		[ "$(says dkms status)" = "bulkmm/$1, $(uname -r), x86_64: installed" ]
	check "$1: modprobe finds it" [ "$(says modinfo -F version bulkmm)" = "$1" ]
	check "$1: it is signed" \
		[ "$(says modinfo -F signer bulkmm)" = "DKMS module signing key" ]
	check "$1: one module, not the lab's" \
		[ "$(inside find /lib/modules/ -name 'bulkmm*' | wc -l)" = 1 ]
	check "$1: the command's version" [ "$(says bulkmm --version)" = "bulkmm $1" ]
}

# as with the boot parameter: modprobe reads the kernel's command line
rescue() {
	before=$(hooked)
	inside_must modprobe bulkmm memmap=on clear=auto alloc=auto \
		vmap=block hotplug=on
	check "inert: every path is off" [ "$(modes)" = off ]
	check "inert: no function is hooked" [ "$(hooked)" = "$before" ]
	# the kernel itself only logs that the module taints it
	dmesg | grep ' bulkmm: ' | grep -v -e taint -e ': backend.*\[' >/tmp/said
	check "inert: one line says so" [ "$(wc -l </tmp/said)" = 1 ]
	check "inert: it is the line" has "inert: no function is hooked" /tmp/said
	check "inert: every hook says so" \
		[ "$(cat "$BULKMM"/*/hook | grep -vc '^-125 .*the module is inert')" = 0 ]
	for path in memmap clear alloc vmap hotplug; do
		check "inert: bulkmm on $path is refused" \
			[ "$(says sh -c "bulkmm on $path; echo \$?")" = 3 ]
	done
	check "inert: still no function is hooked" [ "$(hooked)" = "$before" ]
	check "inert: status works" says bulkmm status
	check "inert: doctor says why" \
		eval "says bulkmm doctor | grep -q 'clear: .*the module is inert'"
	check "inert: the parameter" [ "$(cat "$PARAMETERS/inert")" = Y ]
	inside_must rmmod bulkmm # no path is on
	inside_must modprobe bulkmm inert=0
	check "inert=0 by hand: attached" has "^0 " "$BULKMM/memmap/hook"
	hooked >/tmp/said
	check "inert=0 by hand: hooked" has memmap_init_zone_device /tmp/said
	inside_must bulkmm off
	inside_must rmmod bulkmm
}

# show the command line of a boot without the switch: WORD
without_rescue() {
	sed "s/ $1//" /proc/cmdline >/tmp/cmdline
	cp /tmp/cmdline $DEBIAN/tmp/cmdline
	must mount --bind $DEBIAN/tmp/cmdline $DEBIAN/proc/cmdline
}

examples() {
	from=/usr/share/doc/bulkmm-dkms/examples
	mkdir -p $DEBIAN/etc/modprobe.d $DEBIAN/etc/modules-load.d
	inside_must cp $from/modprobe.d-bulkmm.conf /etc/modprobe.d/bulkmm.conf
	inside_must cp $from/modules-load.d-bulkmm.conf /etc/modules-load.d/bulkmm.conf
	grep -v '^#' $DEBIAN/etc/modules-load.d/bulkmm.conf >/tmp/names
	while read -r name; do
		inside_must modprobe "$name"
	done </tmp/names
	check "examples: memmap on, clear auto" [ "$(cat "$BULKMM/memmap/mode")-$(
		cat "$BULKMM/clear/mode"
	)" = "off [on]-off [auto] cached streaming" ]
	rm $DEBIAN/etc/modprobe.d/bulkmm.conf $DEBIAN/etc/modules-load.d/bulkmm.conf
}

use() {
	examples
	check "attached" has "^0 memmap_init_zone_device: attached" \
		"$BULKMM/memmap/hook"
	check "hotplug attached" has "^0 set_zone_contiguous: attached" \
		"$BULKMM/hotplug/hook"
	check "hotplug is on by itself" has "\[on\]" "$BULKMM/hotplug/mode"
	check "status" says bulkmm status
	check "off" says bulkmm off clear
	check "off was heard" has "\[off\]" "$BULKMM/clear/mode"
	program=/usr/share/doc/libbulkmm-dev/examples/pool.c
	# shellcheck disable=SC2016 # for the shell inside
	inside_must sh -c 'cc -O2 "$1" -o /tmp/pool $(pkg-config --cflags --libs bulkmm)' \
		sh $program
	check "a program with the library" says /tmp/pool
	for page in man1/bulkmm.1 man4/bulkmm.4 man3/bulkmm.3; do
		check "page $page" [ -s $DEBIAN/usr/share/man/$page.gz ]
	done
}

upgrade() {
	must cp -r /debs $DEBIAN/tmp
	inside_must sh -c "dpkg -i /tmp/debs/*.deb"
	check_built "$2"
	check "$1 stays loaded" has "^$1$" "$BULKMM/version"
	inside_must bulkmm off
	inside_must rmmod bulkmm
	inside_must modprobe bulkmm
	check "$2 is loaded" has "^$2$" "$BULKMM/version"
	check "$1 is gone" [ ! -e "$DEBIAN/var/lib/dkms/bulkmm/$1" ]
	check "$2 attaches" has "^0 " "$BULKMM/memmap/hook"
}

purge() {
	# shellcheck disable=SC2086 # a list
	inside_must dpkg --purge $PURGED
	check "purged: not loaded" [ ! -e /sys/module/bulkmm ]
	check "purged: no DKMS tree" [ ! -e $DEBIAN/var/lib/dkms/bulkmm ]
	inside sh $NOTES/files >/tmp/after
	check "purged: no file is left" \
		[ "$(diff $DEBIAN$NOTES/before /tmp/after 2>&1)" = "" ]
	# shellcheck disable=SC2086 # a list
	check "purged: dpkg has forgotten them" eval "! says dpkg-query -W $PURGED"
}

# VERSION RESCUE [NEXT]: RESCUE is the word on the command line, NEXT the version
# to upgrade to
packages() {
	read -r began _ </proc/uptime
	began=${began%.*}
	enter_debian
	check_built "$1"
	step install
	rescue
	step rescue
	without_rescue "$2"
	use
	step use
	if [ "${3-}" ]; then
		upgrade "$1" "$3"
		step upgrade
	fi
	purge
	step purge
	umount $DEBIAN/proc/cmdline
	sync
}
