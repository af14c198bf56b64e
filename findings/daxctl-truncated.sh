#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Runs: ndctl and daxctl 81 (81-1 of Debian 13) on Linux 7.3.4
# (linux-binary-7.3.4+deb13-cloud-amd64 7.3.4-1~bpo13+1 of Debian's trixie-backports) in
# QEMU 10.0.13 (qemu-system-x86 1:10.0.13+ds-0+deb13u1), emulated by TCG, with an NVDIMM
# of 512 MiB
#
# Guess: daxctl reconfigure-device -m system-ram turns a device of 502 MiB (what is left
# of the 512 after its struct pages) into about 502 MiB of memory, or says how much is
# left out.
#
# Behaviour: 384 MiB become memory, as the kernel takes whole memory blocks of 128 MiB
# only and the metadata has moved the device's start off their grid: 118 MiB serve
# nothing. daxctl reports success and a system-ram device of 526385152 bytes; only the
# kernel's log has the loss.
#
# Seen:
#       "chardev":"dax0.0",
#       "size":526385152,
#       "mode":"system-ram",
#       "online_memblocks":3,
#       "total_memblocks":3,
#   reconfigured 1 device
#   the device has 502 MiB, of which 384 MiB became memory
#
# Needs apt. Exits 0: as described; 1: changed; 3: a version cannot be had.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
cd "$work"

# FOLDER SUITES install|download PACKAGE=VERSION...: unpack packages of the host's
# Debian mirror, with their dependencies or alone
fetch() {
	local folder=$1 suites=$2 how=$3 mirror suite
	shift 3
	# shellcheck disable=SC2016 # fields of apt's format
	mirror=$(apt-get indextargets --format '$(LABEL) $(REPO_URI)' \
		'Created-By: Packages' | sed -n 's/^Debian //p' | sort -u | head -n 1)
	mkdir -p "$folder" apt/none apt/lists/partial apt/cache/archives/partial
	: >apt/status
	for suite in $suites; do
		echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]" \
			"$mirror $suite main"
	done >apt/sources.list
	cat >apt/conf <<-END
		Dir::State "$work/apt";
		Dir::State::status "$work/apt/status";
		Dir::Cache "$work/apt/cache";
		Dir::Etc::sourcelist "$work/apt/sources.list";
		Dir::Etc::sourceparts "$work/apt/none";
		Dir::Etc::preferencesparts "$work/apt/none";
		APT::Install-Recommends "false";
		APT::Sandbox::User "root";
		Debug::NoLocking "true";
	END
	export APT_CONFIG=$work/apt/conf
	(
		cd apt/cache/archives
		apt-get update -qq
		if [ "$how" = install ]; then
			apt-get install -qq -y --download-only "$@"
		else
			apt-get download -qq "$@"
		fi
	) >apt/log 2>&1 || {
		echo "cannot be had: $*: $(grep -m 1 '^E:' apt/log)" >&2
		exit 3
	}
	unset APT_CONFIG
	for package in apt/cache/archives/*.deb; do
		dpkg -x "$package" "$folder"
	done
	rm -r apt
}

# FOLDER PROGRAM ARGUMENT...: run a program of unpacked packages with their libraries
unpacked() {
	local libraries=$1/usr/lib/x86_64-linux-gnu program=$1/$2
	shift 2
	"$libraries/ld-linux-x86-64.so.2" --library-path "$libraries" "$program" "$@"
}

# KERNEL PARAMETERS ARGUMENT...: boot a kernel with the files below guest/, whose /init
# prints on the console (its check of the timer fails at times on a busy host)
guest() {
	local kernel=$1 parameters=$2
	shift 2
	(cd guest && find . | unpacked ../qemu usr/bin/cpio --quiet -o -H newc) >initramfs
	timeout --foreground 300 nice -n 10 \
		qemu/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2 \
		--library-path qemu/usr/lib/x86_64-linux-gnu \
		qemu/usr/bin/qemu-system-x86_64 -L qemu/usr/share/qemu \
		-L qemu/usr/share/seabios -accel tcg -cpu max -display none \
		-no-reboot -nic none -monitor none -serial stdio -kernel "$kernel" \
		-initrd initramfs \
		-append "console=ttyS0 quiet panic=-1 no_timer_check $parameters" \
		"$@" </dev/null | tr -d '\r' | tee seen
}

version=7.3.4+deb13-cloud-amd64
fetch qemu trixie install qemu-system-x86=1:10.0.13+ds-0+deb13u1 cpio=2.15+dfsg-2 \
	xz-utils=5.8.1-1+deb13u2
fetch kernel "trixie trixie-backports" download \
	linux-binary-$version=7.3.4-1~bpo13+1 \
	linux-modules-$version=7.3.4-1~bpo13+1
kernel=kernel/usr/lib/modules/$version/vmlinuz
mkdir -p guest/proc guest/sys guest/dev guest/tmp

fetch guest trixie install ndctl=81-1 daxctl=81-1 busybox-static=1:1.37.0-6+b9
rm -r guest/usr/share
ln -s usr/lib64 usr/lib guest
ln -s usr/bin guest/bin
for module in acpi/nfit/nfit dax/dax_pmem dax/device_dax dax/kmem nvdimm/libnvdimm \
	nvdimm/nd_btt nvdimm/nd_pmem; do
	unpacked qemu usr/bin/xz -dc \
		"kernel/usr/lib/modules/$version/kernel/drivers/$module.ko.xz" \
		>"guest/$(basename "$module").ko"
done
cat >guest/init <<'END'
#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
for module in libnvdimm nfit nd_btt nd_pmem dax_pmem device_dax kmem; do
	insmod "/$module.ko"
done
for try in 1 2 3 4 5 6 7 8 9 10; do
	[ -e /sys/bus/nd/devices/namespace0.0 ] || sleep 1
done

ndctl create-namespace -f -e namespace0.0 -m devdax -M dev >/dev/null
# daxctl refuses where the kernel puts new memory online itself
echo offline >/sys/devices/system/memory/auto_online_blocks
total() {
	sed -n 's/MemTotal: *\([0-9]*\) kB/\1/p' /proc/meminfo
}
before=$(total)
daxctl reconfigure-device -m system-ram dax0.0
size=$(($(cat /sys/bus/dax/devices/dax0.0/size) >> 20))
added=$((($(total) - before) >> 10))
echo "the device has $size MiB, of which $added MiB became memory"
[ "$size" -lt 500 ] || [ "$added" -ne 384 ] || echo "as described"
poweroff -f
END
chmod 755 guest/init

guest "$kernel" "" -machine pc,nvdimm=on -m 1G,slots=1,maxmem=4G \
	-object memory-backend-ram,id=ram,size=1G -numa node,memdev=ram \
	-object memory-backend-ram,id=pmem,size=514M \
	-device nvdimm,memdev=pmem,label-size=2M || :

grep -Fxq "as described" seen || {
	echo "changed: the guest saw something else"
	exit 1
}
