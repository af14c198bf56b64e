// SPDX-License-Identifier: GPL-2.0-only OR MIT
//! Streaming writes, which must be drained before anybody reads what they wrote.
use crate::{sys, Element, Image};
use std::marker::PhantomData;
use std::mem::{size_of, size_of_val};
use std::ptr::from_ref;

/// Streaming writes that share a drain; see [`streaming()`].
pub struct Streaming<'m> {
    /// Memory is borrowed until after the drain, which is for this thread only.
    borrows: PhantomData<*mut &'m mut ()>,
}

/// Lets `work` make several streaming writes, and drains once, at the end.
///
/// Until then what was written is borrowed, because it must not be read:
///
/// ```
/// let (a, mut b) = ([1u8; 4096], [0u8; 4096]);
/// bulkmm::streaming(|writes| {
///     for part in b.chunks_mut(1024) {
///         writes.copy(part, &a[..1024]);
///     }
/// });
/// assert_eq!(b, [1; 4096]);
/// ```
///
/// ```compile_fail,E0502
/// let (mut a, mut b) = ([1u8; 4096], [0u8; 4096]);
/// bulkmm::streaming(|writes| {
///     writes.copy(&mut b, &a);
///     writes.copy(&mut a, &b);
/// });
/// ```
pub fn streaming<'m, R>(work: impl FnOnce(&mut Streaming<'m>) -> R) -> R {
    struct Drain;
    impl Drop for Drain {
        fn drop(&mut self) {
            // SAFETY: a fence.
            unsafe { sys::bmm_drain() }
        }
    }
    let _after_work = Drain;
    work(&mut Streaming {
        borrows: PhantomData,
    })
}

impl<'m> Streaming<'m> {
    /// See [`copy_streaming()`](crate::copy_streaming()).
    pub fn copy<E: Element>(&mut self, dst: &'m mut [E], src: &[E::Value]) {
        assert_eq!(dst.len(), src.len(), "lengths of destination and source");
        // SAFETY: as long as each other, apart as one is exclusive, and drained
        // before the borrow ends.
        unsafe {
            let len = size_of_val(dst);
            sys::bmm_copy_streaming(dst.as_mut_ptr().cast(), src.as_ptr().cast(), len);
        }
    }

    /// See [`fill()`](crate::fill()).
    pub fn fill<E: Element>(&mut self, dst: &'m mut [E], value: E::Value) {
        let (len, size) = (size_of_val(dst), size_of::<E>());
        // SAFETY: a value is `size` bytes; drained before the borrow ends.
        let error =
            unsafe { sys::bmm_fill(dst.as_mut_ptr().cast(), from_ref(&value).cast(), size, len) };
        debug_assert!(error == 0 || size == 0);
    }

    /// See [`Image::stamp()`].
    pub fn stamp<E: Element>(&mut self, dst: &'m mut [E], image: &Image<E::Value>) {
        // SAFETY: the image's type is as large as its records, and aligned;
        // drained before the borrow ends.
        let error = unsafe { sys::bmm_stamp(dst.as_mut_ptr().cast(), image.raw(), dst.len()) };
        debug_assert_eq!(error, 0);
    }
}
