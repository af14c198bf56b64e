// SPDX-License-Identifier: GPL-2.0-only OR MIT
//! The declarations of bulkmm.h; each function has a man page in section 3.
#![no_std]
#![allow(non_camel_case_types)]

use core::ffi::{c_char, c_int, c_uint, c_void};

pub const BMM_EINVAL: c_int = 22;
pub const BMM_EOPNOTSUPP: c_int = 95;

pub const BMM_RECORD_MIN: usize = 32;
pub const BMM_RECORD_MAX: usize = 128;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct bmm_image {
    pub size: u32,
    pub stepping: u32,
    pub word: [u64; BMM_RECORD_MAX / 8],
    pub step: [u64; BMM_RECORD_MAX / 8],
}

pub type bmm_op = c_uint;

pub const BMM_STAMP: bmm_op = 0;
pub const BMM_COPY: bmm_op = 1;
pub const BMM_COPY_STREAMING: bmm_op = 2;
pub const BMM_CLEAR: bmm_op = 3;
pub const BMM_CLEAR_STREAMING: bmm_op = 4;

pub const BMM_ON_NODE: u32 = 1;
pub const BMM_READ: u32 = 2;
pub const BMM_IN_ORDER: u32 = 4;
pub const BMM_COMPACT: u32 = 8;
pub const BMM_RANGES_MAX: u32 = 1024;

#[repr(C)]
pub struct bmm_range {
    pub addr: *mut c_void,
    pub len: usize,
    pub flags: u32,
    pub node: u32,
}

pub type progress_fn = extern "C" fn(context: *mut c_void, done: usize, len: usize) -> c_int;
pub type ready_fn = extern "C" fn(context: *mut c_void, addr: *mut c_void, len: usize) -> c_int;

#[repr(C)]
pub struct bmm_options {
    pub size: usize,
    pub flags: u32,
    pub threads: u32,
    pub node: u32,
    pub progress: Option<progress_fn>,
    pub context: *mut c_void,
    pub ready: Option<ready_fn>,
    pub piece: usize,
}

#[repr(C)]
pub struct bmm_report {
    pub size: usize,
    pub done: usize,
    pub reached: *mut c_void,
    pub failed: *mut c_void,
    pub failed_len: usize,
    pub ns: u64,
    pub slow: *mut c_void,
    pub slow_len: usize,
    pub slow_ns: u64,
    pub usual_ns: u64,
    pub error: c_int,
    pub cause: c_int,
    pub slow_cause: c_int,
    pub threads: u32,
    pub touched: u32,
    pub huge: usize,
    pub small: usize,
}

pub const BMM_THP: usize = 1;

#[repr(C)]
pub struct bmm_file {
    pub path: *const c_char,
    pub offset: usize,
    pub len: usize,
}

#[repr(C)]
pub struct bmm_memory {
    pub size: usize,
    pub page: usize,
    pub len: usize,
    pub failed: usize,
    pub at: usize,
    pub fd: c_int,
}

#[rustfmt::skip] // as in C
extern "C" {
    pub fn bmm_image_init(image: *mut bmm_image, record: *const c_void,
                          next: *const c_void, size: usize) -> c_int;
    pub fn bmm_image_at(out: *mut bmm_image, image: *const bmm_image, n: u64);
    pub fn bmm_stamp(dst: *mut c_void, image: *const bmm_image, count: usize) -> c_int;
    pub fn bmm_fill(dst: *mut c_void, pattern: *const c_void, size: usize,
                    len: usize) -> c_int;
    pub fn bmm_fill_cached(dst: *mut c_void, pattern: *const c_void, size: usize,
                           len: usize) -> c_int;
    pub fn bmm_copy(dst: *mut c_void, src: *const c_void, len: usize);
    pub fn bmm_copy_streaming(dst: *mut c_void, src: *const c_void, len: usize);
    pub fn bmm_move(dst: *mut c_void, src: *const c_void, len: usize);
    pub fn bmm_move_streaming(dst: *mut c_void, src: *const c_void, len: usize);
    pub fn bmm_drain();
    pub fn bmm_clear(dst: *mut c_void, len: usize);
    pub fn bmm_clear_streaming(dst: *mut c_void, len: usize);
    pub fn bmm_measure();
    pub fn bmm_backend_select(op: bmm_op, name: *const c_char, len: usize) -> c_int;
    pub fn bmm_backend_selection(op: bmm_op, buf: *mut c_char, size: usize) -> usize;
    pub fn bmm_backend_list(op: bmm_op, len: usize, buf: *mut c_char,
                            size: usize) -> usize;
    pub fn bmm_environment_error(buf: *mut c_char, size: usize) -> usize;
    pub fn bmm_version() -> *const c_char;
    pub fn bmm_version_number() -> c_int;
    pub fn bmm_persist(addr: *const c_void, len: usize) -> c_int;
    pub fn bmm_populate(addr: *mut c_void, len: usize, options: *const bmm_options,
                        report: *mut bmm_report) -> c_int;
    pub fn bmm_populate_ranges(ranges: *const bmm_range, count: usize,
                               options: *const bmm_options,
                               report: *mut bmm_report) -> c_int;
    pub fn bmm_collapse(addr: *mut c_void, len: usize, options: *const bmm_options,
                        report: *mut bmm_report) -> c_int;
    pub fn bmm_stage(memory: *mut bmm_memory, files: *mut bmm_file, count: usize,
                     options: *const bmm_options, report: *mut bmm_report) -> c_int;
    pub fn bmm_report_text(report: *const bmm_report, buf: *mut c_char,
                           size: usize) -> usize;
    pub fn bmm_clear_parallel(dst: *mut c_void, len: usize, options: *const bmm_options,
                              report: *mut bmm_report) -> c_int;
}
