#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# In a Debian with initramfs-tools, dracut and DKMS: install the module's package, and
# leave in /out the initramfs from before and after, and that of dracut.
# RELEASE of a kernel whose module is /bulkmm.ko
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
cp "/boot/initrd.img-$1" /out/before

dpkg -i /bulkmm-dkms.deb
cp "/boot/initrd.img-$1" /out/after # by the trigger
echo 'options bulkmm clear=auto' >/etc/modprobe.d/bulkmm.conf # as by --persist
dracut --add nvdimm --no-hostonly --kver "$1" \
	--include /seen.sh /usr/lib/dracut/hooks/pre-mount/50-bulkmm.sh /out/dracut
