// SPDX-License-Identifier: GPL-2.0-only OR MIT
//! One call, one slice. What bypasses the cache is drained on return; to drain
//! once for several: streaming.rs.
use crate::{streaming, sys, Element, Pod};
use std::ffi::c_void;
use std::mem::{size_of, size_of_val};
use std::ops::Range;
use std::ptr::from_ref;

/// The values that the elements are now.
///
/// # Safety
///
/// All of them must have been written.
pub(crate) unsafe fn written<E: Element>(dst: &mut [E]) -> &mut [E::Value] {
    std::slice::from_raw_parts_mut(dst.as_mut_ptr().cast(), dst.len())
}

/// Zeroes memory that is used right away.
pub fn clear<E: Element>(dst: &mut [E]) -> &mut [E::Value] {
    // SAFETY: the slice is borrowed exclusively, and zeroes are values.
    unsafe {
        sys::bmm_clear(dst.as_mut_ptr().cast(), size_of_val(dst));
        written(dst)
    }
}

/// Zeroes memory that is prepared ahead of use, bypassing the cache.
pub fn clear_streaming<E: Element>(dst: &mut [E]) -> &mut [E::Value] {
    // SAFETY: as for clear(); the C function drains.
    unsafe {
        sys::bmm_clear_streaming(dst.as_mut_ptr().cast(), size_of_val(dst));
        written(dst)
    }
}

/// Copies data that is used right away.
///
/// # Panics
///
/// If the slices are not equally long.
#[track_caller]
pub fn copy<'d, E: Element>(dst: &'d mut [E], src: &[E::Value]) -> &'d mut [E::Value] {
    assert_eq!(dst.len(), src.len(), "lengths of destination and source");
    // SAFETY: as long as each other, and apart, as one is exclusive.
    unsafe {
        let len = size_of_val(dst);
        sys::bmm_copy(dst.as_mut_ptr().cast(), src.as_ptr().cast(), len);
        written(dst)
    }
}

/// Copies data that is written once and not read soon, bypassing the cache.
///
/// # Panics
///
/// If the slices are not equally long.
pub fn copy_streaming<'d, E: Element>(dst: &'d mut [E], src: &[E::Value]) -> &'d mut [E::Value] {
    streaming(|writes| writes.copy(dst, src));
    // SAFETY: all of it was written.
    unsafe { written(dst) }
}

/// Copies values to another place in their slice, which is used right away. The
/// places may overlap.
///
/// # Panics
///
/// If either place is not all in the slice.
#[track_caller]
pub fn copy_within<T: Pod>(memory: &mut [T], from: Range<usize>, to: usize) {
    let (dst, src, len) = places(memory, from, to);
    // SAFETY: both places are in the slice, which is borrowed exclusively.
    unsafe { sys::bmm_move(dst, src, len) }
}

/// The same for what is not read soon, bypassing the cache.
///
/// # Panics
///
/// If either place is not all in the slice.
#[track_caller]
pub fn copy_within_streaming<T: Pod>(memory: &mut [T], from: Range<usize>, to: usize) {
    let (dst, src, len) = places(memory, from, to);
    // SAFETY: as above; drained before the borrow ends.
    streaming(|_| unsafe { sys::bmm_move_streaming(dst, src, len) });
}

#[track_caller]
fn places<T>(
    memory: &mut [T],
    from: Range<usize>,
    to: usize,
) -> (*mut c_void, *const c_void, usize) {
    let len = size_of_val(&memory[from.clone()]);
    let _also_in_it = &memory[to..][..from.len()];
    let all = memory.as_mut_ptr();
    // SAFETY: both places are in the slice.
    unsafe { (all.add(to).cast(), all.add(from.start).cast(), len) }
}

/// Writes `value` to all elements, which are used right away.
pub fn fill_cached<E: Element>(dst: &mut [E], value: E::Value) -> &mut [E::Value] {
    let (len, size) = (size_of_val(dst), size_of::<E>());
    // SAFETY: the slice is borrowed exclusively, and a value is `size` bytes.
    unsafe {
        let at = dst.as_mut_ptr().cast();
        let error = sys::bmm_fill_cached(at, from_ref(&value).cast(), size, len);
        debug_assert!(error == 0 || size == 0);
        written(dst)
    }
}

/// Writes `value` to all elements, bypassing the cache.
pub fn fill<E: Element>(dst: &mut [E], value: E::Value) -> &mut [E::Value] {
    streaming(|writes| writes.fill(dst, value));
    // SAFETY: all of it was written.
    unsafe { written(dst) }
}

#[cfg(test)]
mod tests;
