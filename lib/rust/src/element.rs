// SPDX-License-Identifier: GPL-2.0-only OR MIT
//! What memory may consist of.
use std::mem::MaybeUninit;

/// Plain values, of which only the bytes matter: integers, floats, their arrays.
///
/// # Safety
///
/// Any bytes must be a value, and none may be padding.
pub unsafe trait Pod: Copy + 'static {}

macro_rules! pod {
    ($($kind:ty)*) => {
        // SAFETY: these have no invalid value, and no padding.
        $(unsafe impl Pod for $kind {})*
    };
}
pod!(u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize f32 f64);

// SAFETY: there is no padding between elements.
unsafe impl<T: Pod, const N: usize> Pod for [T; N] {}

/// Elements of memory that is written: values, or room for them.
///
/// # Safety
///
/// Any bytes that are a `Value` must be one of these, at the same place.
pub unsafe trait Element {
    type Value: Pod;
}

// SAFETY: it is the same type.
unsafe impl<T: Pod> Element for T {
    type Value = T;
}

// SAFETY: it has the same layout, and no invalid value.
unsafe impl<T: Pod> Element for MaybeUninit<T> {
    type Value = T;
}
