#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# In a Debian with initramfs-tools, dracut and DKMS: install the module's package, and
# leave the initramfs /before and /after, that of /dracut, and what DKMS /said.
# RELEASE of a kernel whose module is /bulkmm.ko, VERSION of the package
set -e

cd /lib/modules
for release in *; do
	[ "$release" = "$1" ] || rm -r "$release"
done
rm /boot/vmlinuz-*
touch "/boot/vmlinuz-$1" # by which a kernel is known to be installed
touch /etc/dkms/no-autoinstall
install -D -m 0644 -t "$1/updates/dkms" /bulkmm.ko
depmod "$1"

# as where the root file system is on such a disk
printf '%s\n' nd_e820 nd_pmem >>/etc/initramfs-tools/modules
echo MODULES=list >/etc/initramfs-tools/conf.d/list
cp /seen.sh /etc/initramfs-tools/scripts/bulkmm
update-initramfs -c -k "$1"
cp "/boot/initrd.img-$1" /before

dpkg -i /bulkmm-dkms.deb
cp "/boot/initrd.img-$1" /after # by the trigger
echo 'options bulkmm clear=auto' >/etc/modprobe.d/bulkmm.conf # as by --persist
dracut --add nvdimm --no-hostonly --kver "$1" \
	--include /seen.sh /usr/lib/dracut/hooks/pre-mount/50-bulkmm.sh /dracut

# what DKMS does with other kernels, whose headers are not here: 77 if it skips
# them, 21 if it looks for the headers
dkms add -q bulkmm/"$2"
while read -r arch release; do
	code=0
	dkms build -q bulkmm/"$2" -k "$release" -a "$arch" || code=$?
	echo "$arch $release $code" >>/said
done <<END
x86_64 6.11.9
x86_64 6.12.3+deb13-cloud-amd64
x86_64 6.99.1
x86_64 7.3.1
x86_64 7.4.0
x86_64 7.30.1
x86_64 5.12.1
aarch64 6.12.3+deb13-cloud-arm64
aarch64 7.0.1
aarch64 7.3.1
END
