// SPDX-License-Identifier: GPL-2.0-only OR MIT
//! Images of records, which are stamped.
use crate::write::written;
use crate::{streaming, sys, Element, Pod};
use std::marker::PhantomData;
use std::mem::{align_of, size_of, MaybeUninit};
use std::ptr::from_ref;

/// What to stamp: records of type T, of 32 to 128 bytes and aligned to 8.
///
/// ```compile_fail,E0080
/// bulkmm::Image::new([0u64; 3]);
/// ```
#[derive(Clone, Copy)]
pub struct Image<T: Pod> {
    image: sys::bmm_image,
    records: PhantomData<T>,
}

impl<T: Pod> Image<T> {
    const FITS: () = assert!(
        size_of::<T>() >= sys::BMM_RECORD_MIN
            && size_of::<T>() <= sys::BMM_RECORD_MAX
            && size_of::<T>() % 8 == 0
            && align_of::<T>() % 8 == 0,
        "a record has 32 to 128 bytes, a multiple of 8, and is aligned to 8"
    );

    /// Records that all equal `record`.
    #[must_use]
    pub fn new(record: T) -> Self {
        Self::stepping(record, record)
    }

    /// Records of which each 64-bit word steps as from `record` to `next`.
    #[must_use]
    pub fn stepping(record: T, next: T) -> Self {
        let () = Self::FITS;
        let mut image = MaybeUninit::uninit();
        let (first, second) = (from_ref(&record).cast(), from_ref(&next).cast());
        // SAFETY: both are size_of::<T>() bytes, which is in range.
        let error =
            unsafe { sys::bmm_image_init(image.as_mut_ptr(), first, second, size_of::<T>()) };
        assert_eq!(error, 0);
        Self {
            // SAFETY: it is written unless an error is returned.
            image: unsafe { image.assume_init() },
            records: PhantomData,
        }
    }

    pub(crate) fn raw(&self) -> *const sys::bmm_image {
        &self.image
    }

    /// Writes records that follow from this one, bypassing the cache.
    pub fn stamp<'d, E: Element<Value = T>>(&self, dst: &'d mut [E]) -> &'d mut [T] {
        streaming(|writes| writes.stamp(dst, self));
        // SAFETY: all of it was written.
        unsafe { written(dst) }
    }
}
