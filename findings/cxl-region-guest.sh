#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Runs: cxl of ndctl 81 (cxl 81-1 of Debian 13) on Linux 7.3.4
# (linux-binary-7.3.4+deb13-cloud-amd64 7.3.4-1~bpo13+1 of Debian's trixie-backports) in
# QEMU 10.0.13 (qemu-system-x86 1:10.0.13+ds-0+deb13u1), emulated by TCG, with a CXL
# memory device of 512 MiB
#
# Guess: In a guest, cxl create-region makes a region of the volatile memory of a CXL
# device that QEMU emulates, whatever CPU the guest has.
#
# Behaviour: With a CPU that says it is a hypervisor's, as those of QEMU do, the kernel
# will not flush the CPU's caches and so commits no region: ENXIO, "no such device or
# address", and the reason only in the kernel's log. With -cpu max,-hypervisor it works.
#
# Seen:
#   -cpu max
#   cxl region: create_region: region0: failed to commit decode: No such device or address
#   cxl region: cmd_create_region: created 0 regions
#   regions: 0
#   -cpu max,-hypervisor
#   cxl region: cmd_create_region: created 1 region
#   regions: 1
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

fetch guest trixie install cxl=81-1 busybox-static=1:1.37.0-6+b9
rm -r guest/usr/share
ln -s usr/lib64 usr/lib guest
ln -s usr/bin guest/bin
modules="libnvdimm cxl_pmem cxl_mem cxl_acpi cxl_pci"
for module in nvdimm/libnvdimm cxl/cxl_pmem cxl/cxl_mem cxl/cxl_acpi cxl/cxl_pci; do
	unpacked qemu usr/bin/xz -dc \
		"kernel/usr/lib/modules/$version/kernel/drivers/$module.ko.xz" \
		>"guest/$(basename "$module").ko"
done
cat >guest/init <<END
#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
dmesg -n 1
for module in $modules; do
	insmod "/\$module.ko"
done
for try in 1 2 3 4 5 6 7 8 9 10; do
	[ -e /sys/bus/cxl/devices/decoder2.0 ] || sleep 1
done
cxl create-region -m -t ram -d decoder0.0 -w 1 -s 256M mem0 2>&1 >/dev/null | grep create_region:
[ ! -e /sys/bus/cxl/drivers/cxl_region/region0 ] || regions=1
echo "regions: \${regions:-0}"
poweroff -f
END
chmod 755 guest/init

# CPU: boot with a CXL device
boot() {
	echo "-cpu $1"
	guest "$kernel" "" -cpu "$1" -M q35,cxl=on -m 1G,maxmem=8G,slots=8 \
		-object memory-backend-ram,id=memory,share=on,size=512M \
		-device pxb-cxl,id=cxl,bus=pcie.0,bus_nr=12 \
		-device cxl-rp,id=link,bus=cxl,chassis=0,slot=2,port=0 \
		-device cxl-type3,bus=link,volatile-memdev=memory \
		-M cxl-fmw.0.targets.0=cxl,cxl-fmw.0.size=4G || :
}

boot max
cp seen first
boot max,-hypervisor

if ! grep -Fq "failed to commit decode: No such device or address" first ||
	! grep -Fxq "regions: 0" first || ! grep -Fxq "regions: 1" seen; then
	echo "changed: a CPU of a hypervisor makes another difference"
	exit 1
fi
echo "as described"
