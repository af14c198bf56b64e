// SPDX-License-Identifier: GPL-2.0-only OR MIT
//! The declarations of bulkmm.h that this crate uses.
#![allow(non_camel_case_types)]

use std::ffi::{c_char, c_int, c_void};

pub const BMM_ON_NODE: u32 = 1;
pub const BMM_READ: u32 = 2;

pub type progress_fn = extern "C" fn(context: *mut c_void, done: usize, len: usize) -> c_int;

#[repr(C)]
pub struct bmm_options {
    pub size: usize,
    pub flags: u32,
    pub threads: u32,
    pub node: u32,
    pub progress: Option<progress_fn>,
    pub context: *mut c_void,
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
}

extern "C" {
    pub fn bmm_populate(
        addr: *mut c_void,
        len: usize,
        options: *const bmm_options,
        report: *mut bmm_report,
    ) -> c_int;
    pub fn bmm_clear_parallel(
        dst: *mut c_void,
        len: usize,
        options: *const bmm_options,
        report: *mut bmm_report,
    ) -> c_int;
    pub fn bmm_report_text(report: *const bmm_report, buf: *mut c_char, size: usize) -> usize;
}
