// SPDX-License-Identifier: GPL-2.0-only OR MIT
//! Ranges that threads share: populating mappings, and clearing.
#![allow(clippy::result_large_err)] // a large range costs more

use crate::{sys, Element};
use std::any::Any;
use std::ffi::{c_int, c_void};
use std::fmt;
use std::mem::{size_of, size_of_val};
use std::ops::{self, ControlFlow};
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::time::Duration;

/// Why a range could not be served, or why a piece of it was slow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    Unknown,
    Argument,
    Node,
    Hole,
    Protected,
    Special,
    Pool,
    Backing,
    Poisoned,
    Memory,
    Cancelled,
    Forked,
    Compaction,
    Reclaim,
    Guard,
    Key,
    Userfault,
    Limit,
    Kernel,
    Filter,
    Preempted,
    Range,
    Overlap,
    Ready,
    Fragmented,
    NoHuge,
    File,
    Changed,
    Seal,
    Size,
    Newer,
    Flags,
    Option,
    Count,
    Page,
    Fd,
    Total,
}

impl Cause {
    /// Maps enum bmm_cause, which counts from 1 after BMM_CAUSE_NONE.
    fn of(number: c_int) -> Self {
        use Cause::*;
        const ALL: [Cause; 37] = [
            Unknown, Argument, Node, Hole, Protected, Special, Pool, Backing, Poisoned, Memory,
            Cancelled, Forked, Compaction, Reclaim, Guard, Key, Userfault, Limit, Kernel, Filter,
            Preempted, Range, Overlap, Ready, Fragmented, NoHuge, File, Changed, Seal, Size, Newer,
            Flags, Option, Count, Page, Fd, Total,
        ];
        let at = usize::try_from(number - 1).unwrap_or(0);
        ALL.get(at).copied().unwrap_or(Unknown)
    }
}

/// A piece that took more than eight times as long as the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slow {
    pub range: ops::Range<usize>,
    pub took: Duration,
    pub usual: Duration,
    pub cause: Cause,
}

/// What was done; addresses are integers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Bytes done.
    pub done: usize,
    /// Everything before this address is done.
    pub reached: usize,
    pub took: Duration,
    /// Most threads that worked at once, the caller included.
    pub threads: u32,
    /// Pages were touched one by one: the kernel is older than 5.14, or
    /// forbids or ignores MADV_POPULATE_WRITE.
    pub touched: bool,
    /// Bytes in huge pages, as far as the kernel tells: bmm_populate(3).
    pub huge: usize,
    /// Bytes that have small pages, as memory was compacted in vain.
    pub small: usize,
    pub slow: Option<Slow>,
}

/// What went wrong, and how far the work got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    pub errno: i32,
    pub cause: Cause,
    /// The lowest page that failed, the range that was refused, or the piece
    /// that `ready` refused.
    pub failed: Option<ops::Range<usize>>,
    pub report: Report,
    text: String,
}

impl fmt::Display for Error {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.text)
    }
}

impl std::error::Error for Error {}

type Progress<'a> = dyn FnMut(usize, usize) -> ControlFlow<()> + 'a;
type Ready<'a> = dyn FnMut(*mut u8, usize) -> ControlFlow<()> + 'a;

/// How threads share ranges.
#[derive(Default)]
pub struct Options<'a> {
    flags: u32,
    threads: u32,
    node: u32,
    piece: usize,
    progress: Option<Box<Progress<'a>>>,
    ready: Option<Box<Ready<'a>>>,
}

/// A range of [`Options::populate_ranges`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PopulateRange {
    pub addr: *mut u8,
    pub len: usize,
    /// Takes new pages from this memory node only.
    pub node: Option<u32>,
}

/// What the callbacks' context points to.
struct Callbacks<'t, 'a> {
    progress: Option<&'t mut Progress<'a>>,
    ready: Option<&'t mut Ready<'a>>,
    panic: Option<Box<dyn Any + Send>>,
}

/// Nothing may unwind through C.
fn call_back(
    context: *mut c_void,
    call: impl FnOnce(&mut Callbacks<'_, '_>) -> Option<ControlFlow<()>>,
) -> c_int {
    // SAFETY: it is the Callbacks of the current call, on the calling thread.
    let callbacks = unsafe { &mut *context.cast::<Callbacks<'_, '_>>() };
    if callbacks.panic.is_some() {
        return 1;
    }
    match catch_unwind(AssertUnwindSafe(|| call(callbacks))) {
        Ok(flow) => c_int::from(flow.is_some_and(|flow| flow.is_break())),
        Err(panic) => {
            callbacks.panic = Some(panic);
            1
        }
    }
}

extern "C" fn report_progress(context: *mut c_void, done: usize, len: usize) -> c_int {
    call_back(context, |to| {
        to.progress.as_mut().map(|call| call(done, len))
    })
}

extern "C" fn pass_piece(context: *mut c_void, addr: *mut c_void, len: usize) -> c_int {
    call_back(context, |to| {
        to.ready.as_mut().map(|call| call(addr.cast(), len))
    })
}

impl<'a> Options<'a> {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// At most this many threads, the caller included; 0: as many as pay off.
    #[must_use]
    pub fn threads(mut self, most: u32) -> Self {
        self.threads = most;
        self
    }

    /// Takes new pages from this memory node only.
    #[must_use]
    pub fn node(mut self, node: u32) -> Self {
        self.flags |= sys::BMM_ON_NODE;
        self.node = node;
        self
    }

    /// Populates for reading: pages of shared files stay clean.
    #[must_use]
    pub fn reading(mut self) -> Self {
        self.flags |= sys::BMM_READ;
        self
    }

    /// Calls `told` on this thread with bytes done and in all; `Break` cancels.
    #[must_use]
    pub fn progress(mut self, told: impl FnMut(usize, usize) -> ControlFlow<()> + 'a) -> Self {
        self.progress = Some(Box::new(told));
        self
    }

    /// Calls `ready` on this thread with address and bytes of each piece that has
    /// been done, one at a time, while threads do the rest; `Break` stops it.
    #[must_use]
    pub fn ready(mut self, ready: impl FnMut(*mut u8, usize) -> ControlFlow<()> + 'a) -> Self {
        self.ready = Some(Box::new(ready));
        self
    }

    /// Most bytes of a piece; 0: 256 MiB.
    #[must_use]
    pub fn piece(mut self, bytes: usize) -> Self {
        self.piece = bytes;
        self
    }

    /// Calls `ready` in ascending order of addresses.
    #[must_use]
    pub fn in_order(mut self) -> Self {
        self.flags |= sys::BMM_IN_ORDER;
        self
    }

    /// Goes on compacting memory for huge pages, even if it is in vain.
    #[must_use]
    pub fn compact(mut self) -> Self {
        self.flags |= sys::BMM_COMPACT;
        self
    }

    /// Makes a mapping resident. Safe for any address: contents do not change,
    /// and unmapped memory and that of a device are errors.
    ///
    /// # Errors
    ///
    /// Those of bmm_populate(3).
    pub fn populate(&mut self, addr: *mut u8, len: usize) -> Result<Report, Error> {
        // SAFETY: only the kernel accesses the range, and checks it; options and
        // report outlive the call.
        self.call(|options, report| unsafe { sys::bmm_populate(addr.cast(), len, options, report) })
    }

    /// Makes several mappings resident, by the same threads.
    ///
    /// # Errors
    ///
    /// Those of bmm_populate_ranges(3).
    pub fn populate_ranges(&mut self, ranges: &[PopulateRange]) -> Result<Report, Error> {
        let all: Vec<_> = ranges
            .iter()
            .map(|range| sys::bmm_range {
                addr: range.addr.cast(),
                len: range.len,
                flags: range.node.map_or(0, |_| sys::BMM_ON_NODE),
                node: range.node.unwrap_or(0),
            })
            .collect();
        // SAFETY: as for populate(); the array outlives the call.
        self.call(|options, report| unsafe {
            sys::bmm_populate_ranges(all.as_ptr(), all.len(), options, report)
        })
    }

    /// Replaces resident small pages by huge ones. Safe for any address:
    /// contents do not change.
    ///
    /// # Errors
    ///
    /// Those of bmm_collapse(3).
    pub fn collapse(&mut self, addr: *mut u8, len: usize) -> Result<Report, Error> {
        // SAFETY: as for populate().
        self.call(|options, report| unsafe { sys::bmm_collapse(addr.cast(), len, options, report) })
    }

    /// Zeroes a resident range.
    ///
    /// # Errors
    ///
    /// Those of bmm_clear_parallel(3); what was not cleared is unchanged.
    pub fn clear<E: Element>(&mut self, range: &mut [E]) -> Result<Report, Error> {
        // SAFETY: the slice is borrowed exclusively, and zeroes are values.
        self.call(|options, report| unsafe {
            let len = size_of_val(range);
            sys::bmm_clear_parallel(range.as_mut_ptr().cast(), len, options, report)
        })
    }

    pub(crate) fn call(
        &mut self,
        work: impl FnOnce(*const sys::bmm_options, *mut sys::bmm_report) -> c_int,
    ) -> Result<Report, Error> {
        let mut options = sys::bmm_options {
            size: size_of::<sys::bmm_options>(),
            flags: self.flags,
            threads: self.threads,
            node: self.node,
            progress: self
                .progress
                .as_ref()
                .map(|_| report_progress as sys::progress_fn),
            context: std::ptr::null_mut(),
            ready: self.ready.as_ref().map(|_| pass_piece as sys::ready_fn),
            piece: self.piece,
        };
        let mut callbacks = Callbacks {
            progress: self.progress.as_deref_mut(),
            ready: self.ready.as_deref_mut(),
            panic: None,
        };
        options.context = std::ptr::from_mut(&mut callbacks).cast();
        // SAFETY: all zero bits are a valid report: numbers and null pointers.
        let mut report: sys::bmm_report = unsafe { std::mem::zeroed() };
        report.size = size_of::<sys::bmm_report>();
        let error = work(&options, &mut report);
        if let Some(panic) = callbacks.panic {
            resume_unwind(panic);
        }
        match error {
            0 => Ok(Report::of(&report)),
            _ => Err(Error::of(&report)),
        }
    }
}

/// One that was refused may wrap around: it ends where addresses do.
fn range(start: *mut c_void, len: usize) -> Option<ops::Range<usize>> {
    (len != 0).then(|| start as usize..(start as usize).saturating_add(len))
}

impl Report {
    fn of(said: &sys::bmm_report) -> Self {
        Self {
            done: said.done,
            reached: said.reached as usize,
            took: Duration::from_nanos(said.ns),
            threads: said.threads,
            touched: said.touched != 0,
            huge: said.huge,
            small: said.small,
            slow: range(said.slow, said.slow_len).map(|range| Slow {
                range,
                took: Duration::from_nanos(said.slow_ns),
                usual: Duration::from_nanos(said.usual_ns),
                cause: Cause::of(said.slow_cause),
            }),
        }
    }
}

impl Error {
    fn of(said: &sys::bmm_report) -> Self {
        let mut text = [0u8; 512];
        // SAFETY: at most text.len() bytes are written.
        let len = unsafe { sys::bmm_report_text(said, text.as_mut_ptr().cast(), text.len()) };
        Self {
            errno: -said.error,
            cause: Cause::of(said.cause),
            failed: range(said.failed, said.failed_len),
            report: Report::of(said),
            text: String::from_utf8_lossy(&text[..len.min(text.len() - 1)]).into_owned(),
        }
    }
}

#[cfg(test)]
mod tests;
