#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Runs: psutil 7.2.2 of PyPI with Python 3.13.5 (python3.13-minimal 3.13.5-2+deb13u5 of
# Debian 13), on Linux 7.3.4 (linux-binary-7.3.4+deb13-cloud-amd64 7.3.4-1~bpo13+1 of
# Debian's trixie-backports) in QEMU 10.0.13 (qemu-system-x86 1:10.0.13+ds-0+deb13u1),
# emulated by TCG
#
# Guess: memory_full_info() gives three sizes of one process that include each other:
# what is its own, its share, what is resident: uss <= pss <= rss. 64 MiB of huge pages
# of hugetlb are in all of them or in none.
#
# Behaviour: They are in uss alone, which is then far above rss. psutil adds up every
# line of smaps that begins with "Private", so Private_Hugetlb too; in Rss and Pss the
# kernel does not count these pages. memory_maps() has them nowhere.
#
# Seen:
#   64 MiB of small pages: rss +64, pss +64, uss +64 MiB; memory_maps() +64 MiB
#   64 MiB of huge pages: rss +0, pss +0, uss +64 MiB; memory_maps() +0 MiB
#
# Needs apt, python3 with pip, gcc and libc6-dev. Exits 0: as described; 1: changed; 3: a version
# cannot be had.
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
python=3.13.5-2+deb13u5
fetch qemu trixie install qemu-system-x86=1:10.0.13+ds-0+deb13u1 cpio=2.15+dfsg-2 \
	python3.13-minimal=$python libpython3.13-stdlib=$python
fetch kernel "trixie trixie-backports" download \
	linux-binary-$version=7.3.4-1~bpo13+1
kernel=kernel/usr/lib/modules/$version/vmlinuz
python3 -m pip download -q --no-deps --only-binary :all: -d . \
	--platform manylinux_2_28_x86_64 psutil==7.2.2 2>log || {
	echo "cannot be had: psutil 7.2.2: $(grep -m 1 ERROR log)" >&2
	exit 3
}
mkdir -p guest/proc guest/sys guest/lib64 guest/usr/bin guest/usr/lib/x86_64-linux-gnu
python3 -m zipfile -e psutil-*.whl guest
for library in libc.so.6 libm.so.6 libpthread.so.0 libz.so.1 libexpat.so.1; do
	cp -L "qemu/usr/lib/x86_64-linux-gnu/$library" guest/usr/lib/x86_64-linux-gnu
done
cp -L qemu/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2 guest/lib64
cp qemu/usr/bin/python3.13 guest/usr/bin
cp -R qemu/usr/lib/python3.13 guest/usr/lib

cat >guest/report.py <<'END'
import mmap

import psutil

SIZE = 64 << 20
HUGETLB = 0x40000


def sizes():
    process = psutil.Process()
    full = process.memory_full_info()
    maps = sum(part.rss for part in process.memory_maps())
    return full.rss, full.pss, full.uss, maps


def growth(what, flags):
    before = sizes()
    memory = mmap.mmap(-1, SIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | flags)
    for at in range(0, SIZE, 4096):
        memory[at] = 1
    rss, pss, uss, maps = (round((b - a) / 2**20) for a, b in zip(before, sizes()))
    memory.close()
    print(f"{what}: rss +{rss}, pss +{pss}, uss +{uss} MiB; memory_maps() +{maps} MiB")
    return rss, pss, uss, maps


sizes()  # what the first call needs itself
with open("/proc/sys/vm/nr_hugepages", "w") as pool:
    pool.write("32")
small = growth("64 MiB of small pages", 0)
huge = growth("64 MiB of huge pages", HUGETLB)
if small == (64, 64, 64, 64) and huge == (0, 0, 64, 0):
    print("as described")
END

gcc -O1 -Wall -static -o guest/init -x c - <<'END'
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
	mount("proc", "/proc", "proc", 0, NULL);
	mount("sysfs", "/sys", "sysfs", 0, NULL);
	if (!fork()) {
		execl("/usr/bin/python3.13", "python3.13", "/report.py", NULL);
		_exit(255);
	}
	wait(NULL);
	reboot(RB_POWER_OFF);
}
END

guest "$kernel" "" -m 1G || :

grep -Fxq "as described" seen || {
	echo "changed: the guest saw something else"
	exit 1
}
