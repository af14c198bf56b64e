#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Runs: io-uring 0.7.16, a crate, on the running kernel (seen with Linux 6.18)
#
# Guess: The request opcode::Madvise, whose length is an off_t, 64 bits, gives its advice
# for the whole length, as madvise() does, or fails: MADV_POPULATE_READ of 4 and of 5 GiB
# populates as much.
#
# Behaviour: The crate cuts the length to 32 bits without a word. The result is 0,
# success: of 4 GiB nothing is populated, of 5 GiB the first. A program that starts on
# a big pool this way believes that all of it is there.
#
# Seen:
#   4 GiB: madvise() 0, 4096 MiB populated; Madvise 0, 0 MiB populated
#   5 GiB: madvise() 0, 5120 MiB populated; Madvise 0, 1024 MiB populated
#
# Needs cargo, libc6-dev and Linux 5.14 with io_uring. Exits 0: as described; 1: changed; 3: the
# crate cannot be had, or the kernel lacks something.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
cd "$work"

mkdir -p program/src
cd program
cat >Cargo.toml <<'END'
[package]
name = "program"
version = "0.1.0"
edition = "2021"

[dependencies]
io-uring = "=0.7.16"
libc = "0.2"
END
cat >src/main.rs <<'END'
use io_uring::{opcode, IoUring};
use libc::{c_int, c_void};
use std::ptr;

const POPULATE_READ: c_int = 22;

/// Give the advice by a request to io_uring; return its result.
fn request(memory: *mut c_void, length: usize) -> c_int {
    let mut ring = IoUring::new(8).unwrap();
    let entry = opcode::Madvise::new(memory, length as libc::off_t, POPULATE_READ).build();
    unsafe { ring.submission().push(&entry).unwrap() };
    ring.submit_and_wait(1).unwrap();
    let result = ring.completion().next().unwrap().result();
    result
}

/// Map so much, give the advice; return its result and how many MiB are populated.
fn populate(length: usize, advise: fn(*mut c_void, usize) -> c_int) -> (c_int, usize) {
    let mut resident = vec![0u8; length / 4096];
    unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let memory = libc::mmap(ptr::null_mut(), length, libc::PROT_READ, flags, -1, 0);
        assert_ne!(memory, libc::MAP_FAILED);
        let result = advise(memory, length);
        assert_eq!(libc::mincore(memory, length, resident.as_mut_ptr()), 0);
        libc::munmap(memory, length);
        (result, resident.iter().filter(|page| *page & 1 != 0).count() >> 8)
    }
}

fn main() {
    if IoUring::new(8).is_err() {
        return println!("this kernel has no io_uring for this user");
    }
    if populate(4096, |memory, length| unsafe {
        libc::madvise(memory, length, POPULATE_READ)
    }) != (0, 0)
    {
        return println!("this kernel has no MADV_POPULATE_READ");
    }
    let mut as_described = true;
    for gib in [4, 5] {
        let call = populate(gib << 30, |memory, length| unsafe {
            libc::madvise(memory, length, POPULATE_READ)
        });
        let uring = populate(gib << 30, request);
        println!(
            "{gib} GiB: madvise() {}, {} MiB populated; Madvise {}, {} MiB populated",
            call.0, call.1, uring.0, uring.1
        );
        as_described &= call == (0, gib << 10) && uring == (0, (gib - 4) << 10);
    }
    if as_described {
        println!("as described");
    }
}
END
export CARGO_TARGET_DIR=$work/target
cargo fetch -q 2>log || {
	echo "cannot be had: io-uring 0.7.16: $(grep -m 1 error log)" >&2
	exit 3
}
nice -n 10 cargo build -q
"$work/target/debug/program" | tee seen
if grep -q "^this kernel" seen; then
	exit 3
fi
grep -Fxq "as described" seen || {
	echo "changed: the whole length is advised, or the request fails"
	exit 1
}
