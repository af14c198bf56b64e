// SPDX-License-Identifier: GPL-2.0-only OR MIT
//! Tests against the library itself. mmap() and others are declared here, as the
//! crate has no dependencies.
use super::*;

const PAGE: usize = 4096;
const LEN: usize = 96 << 20;

extern "C" {
    fn mmap(a: *mut c_void, l: usize, p: c_int, f: c_int, fd: c_int, o: i64) -> *mut c_void;
    fn munmap(a: *mut c_void, l: usize) -> c_int;
    fn mprotect(a: *mut c_void, l: usize, p: c_int) -> c_int;
    fn mincore(a: *mut c_void, l: usize, there: *mut u8) -> c_int;
}

struct Mapping(*mut u8, usize);

impl Mapping {
    fn new(len: usize) -> Self {
        // SAFETY: private anonymous memory at an address that the kernel chooses.
        let at = unsafe { mmap(std::ptr::null_mut(), len, 3, 0x22, -1, 0) };
        assert_ne!(at as isize, -1);
        Self(at.cast(), len)
    }

    fn there(&self) -> usize {
        let mut pages = vec![0u8; self.1 / PAGE];
        // SAFETY: there is a byte for each page.
        unsafe { mincore(self.0.cast(), self.1, pages.as_mut_ptr()) };
        pages.iter().filter(|page| **page & 1 == 1).count() * PAGE
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: no reference to it is left.
        unsafe { munmap(self.0.cast(), self.1) };
    }
}

#[test]
fn all_of_a_mapping_is_there() {
    let memory = Mapping::new(LEN);
    assert_eq!(memory.there(), 0);
    let report = Options::new().populate(memory.0, LEN).unwrap();
    assert_eq!(report.done, LEN);
    assert_eq!(report.reached, memory.0 as usize + LEN);
    assert!(report.threads >= 1 && !report.took.is_zero());
    assert_eq!(memory.there(), LEN);
}

#[test]
fn options_reach_the_library() {
    let memory = Mapping::new(LEN);
    let one = Options::new().threads(1).node(0).populate(memory.0, LEN);
    assert_eq!(one.unwrap().threads, 1);
    let none = Options::new().node(999).populate(memory.0, LEN);
    assert_eq!(none.unwrap_err().cause, Cause::Node);
    let read = Options::new().reading().populate(memory.0, LEN);
    assert_eq!(read.unwrap().done, LEN);
}

#[test]
fn small_pages_become_huge_ones_or_it_says_why_not() {
    let memory = Mapping::new(LEN);
    let report = Options::new().compact().populate(memory.0, LEN).unwrap();
    assert!(report.huge <= LEN && report.small == 0);
    match Options::new().collapse(memory.0, LEN) {
        Ok(report) => assert_eq!(report.huge + report.small, report.done),
        Err(error) => assert!(matches!(
            error.cause,
            Cause::Kernel | Cause::Fragmented | Cause::NoHuge
        )),
    }
}

#[test]
fn an_error_says_which_page_and_why() {
    let memory = Mapping::new(LEN);
    // SAFETY: a page of this test's own mapping, which it does not write to.
    unsafe { mprotect(memory.0.add(LEN / 2).cast(), PAGE, 1) };
    let error = Options::new().populate(memory.0, LEN).unwrap_err();
    let page = memory.0 as usize + LEN / 2;
    assert_eq!(error.cause, Cause::Protected);
    assert_eq!(error.errno, 22);
    assert_eq!(error.failed, Some(page..page + PAGE));
    assert_eq!(error.report.reached, page);
    assert!(error.to_string().contains("does not allow"));
    let error = Options::new().populate(memory.0.wrapping_add(1), 1);
    assert_eq!(error.unwrap_err().cause, Cause::Range);
    let error = Options::new().populate(memory.0, usize::MAX).unwrap_err();
    assert_eq!(error.cause, Cause::Range);
    assert_eq!(error.failed, Some(memory.0 as usize..usize::MAX));
}

#[test]
fn progress_is_told_and_can_cancel() {
    let memory = Mapping::new(LEN);
    let mut last = 0;
    let mut options = Options::new().progress(|done, len| {
        assert!(done >= last && done <= len && len == LEN);
        last = done;
        ControlFlow::Continue(())
    });
    options.populate(memory.0, LEN).unwrap();
    drop(options);
    assert_eq!(last, LEN);
}

#[test]
fn a_panic_in_progress_comes_out() {
    let memory = Mapping::new(LEN);
    let panic = catch_unwind(AssertUnwindSafe(|| {
        let mut options = Options::new().progress(|_, _| panic!("told"));
        let _ = options.populate(memory.0, LEN);
    }));
    assert_eq!(panic.unwrap_err().downcast_ref(), Some(&"told"));
}

#[test]
fn a_slice_is_cleared() {
    let mut memory = vec![7u8; (65 << 20) + 3];
    let report = Options::new().clear(&mut memory[1..]).unwrap();
    assert_eq!(report.done, memory.len() - 1);
    assert_eq!(memory[0], 7);
    assert!(memory[1..].iter().all(|byte| *byte == 0));
    let error = Options::new().node(0).clear(&mut memory).unwrap_err();
    assert_eq!(error.cause, Cause::Flags);
}

#[test]
fn causes_are_those_of_the_header() {
    assert_eq!(Cause::of(1), Cause::Unknown);
    assert_eq!(Cause::of(14), Cause::Reclaim);
    assert_eq!(Cause::of(21), Cause::Preempted);
    assert_eq!(Cause::of(99), Cause::Unknown);
    assert_eq!(Cause::of(-1), Cause::Unknown);
}

#[test]
fn each_piece_of_the_ranges_is_ready_once() {
    let memory = Mapping::new(LEN);
    let half = LEN / 2;
    // SAFETY: within the mapping.
    let second = unsafe { memory.0.add(half) };
    let ranges = [second, memory.0].map(|addr| PopulateRange {
        addr,
        len: half,
        node: None,
    });
    let mut next = memory.0;
    let report = Options::new()
        .piece(16 << 20)
        .in_order()
        .ready(|addr, len| {
            assert_eq!((addr, len), (next, 16 << 20));
            next = next.wrapping_add(len);
            ControlFlow::Continue(())
        })
        .populate_ranges(&ranges);
    assert_eq!(report.unwrap().done, LEN);
    assert_eq!(next as usize, memory.0 as usize + LEN);
    let overlapping = Options::new().populate_ranges(&[ranges[0], ranges[0]]);
    assert_eq!(overlapping.unwrap_err().cause, Cause::Overlap);
    let refused = Options::new()
        .ready(|_, _| ControlFlow::Break(()))
        .populate(memory.0, LEN);
    assert_eq!(refused.unwrap_err().cause, Cause::Ready);
}
