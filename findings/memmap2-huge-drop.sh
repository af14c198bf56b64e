#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Runs: memmap2 0.9.12, a crate, on Linux 7.3.4 (linux-binary-7.3.4+deb13-cloud-amd64
# 7.3.4-1~bpo13+1 of Debian's trixie-backports) in QEMU 10.0.13 (qemu-system-x86
# 1:10.0.13+ds-0+deb13u1), emulated by TCG
#
# Guess: An anonymous mapping of 5 MiB by MmapOptions::huge(), on huge pages of 2 MiB,
# fails, as the crate's documentation says of a length that is no multiple; or else,
# when it is dropped, its huge pages are free again.
#
# Behaviour: It succeeds, takes three huge pages, and dropping it frees none: mmap()
# rounds the length up, munmap() of the length that the crate keeps fails with EINVAL,
# and the crate ignores that. Each such mapping takes its pages from the pool until the
# process ends.
#
# Seen:
#   4 MiB: 2 huge pages in use while mapped, 0 when dropped
#   5 MiB: 3 huge pages in use while mapped, 3 when dropped
#
# Needs apt, cargo and libc6-dev. Exits 0: as described; 1: changed; 3: a version cannot be had.
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
fetch qemu trixie install qemu-system-x86=1:10.0.13+ds-0+deb13u1 cpio=2.15+dfsg-2
fetch kernel "trixie trixie-backports" download \
	linux-binary-$version=7.3.4-1~bpo13+1
kernel=kernel/usr/lib/modules/$version/vmlinuz
mkdir -p guest/proc program/src

cat >program/Cargo.toml <<'END'
[package]
name = "program"
version = "0.1.0"
edition = "2021"

[dependencies]
libc = "0.2"
memmap2 = "=0.9.12"
END
cat >program/src/main.rs <<'END'
use memmap2::MmapOptions;
use std::fs;

const HUGE: usize = 2 << 20;

/// Return how many huge pages of the pool are in use or reserved.
fn pages_used() -> i32 {
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap();
    let field = |name: &str| -> i32 {
        let line = meminfo.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    };
    field("HugePages_Total:") - field("HugePages_Free:") + field("HugePages_Rsvd:")
}

/// Map so much on huge pages, touch all, drop; return the pages in use before and after.
fn map_and_drop(mib: usize) -> (i32, i32) {
    let mut memory = MmapOptions::new().len(mib << 20).huge(Some(21)).map_anon().unwrap();
    for at in (0..memory.len()).step_by(HUGE) {
        memory[at] = 1;
    }
    let mapped = pages_used();
    drop(memory);
    let dropped = pages_used();
    println!("{mib} MiB: {mapped} huge pages in use while mapped, {dropped} when dropped");
    (mapped, dropped)
}

fn main() {
    unsafe {
        libc::mount(c"proc".as_ptr(), c"/proc".as_ptr(), c"proc".as_ptr(), 0, std::ptr::null());
    }
    fs::write("/proc/sys/vm/nr_hugepages", "8").unwrap();
    let whole = map_and_drop(4);
    let odd = map_and_drop(5);
    if whole == (2, 0) && odd == (3, 3) {
        println!("as described");
    }
    unsafe { libc::reboot(libc::RB_POWER_OFF) };
}
END
(
	cd program
	export CARGO_TARGET_DIR=$work/target RUSTFLAGS="-C target-feature=+crt-static"
	cargo fetch -q 2>log || {
		echo "cannot be had: memmap2 0.9.12: $(grep -m 1 error log)" >&2
		exit 3
	}
	nice -n 10 cargo build -q
)
cp target/debug/program guest/init

guest "$kernel" "" -m 1G || :

grep -Fxq "as described" seen || {
	echo "changed: the guest saw something else"
	exit 1
}
