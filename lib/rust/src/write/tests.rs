// SPDX-License-Identifier: GPL-2.0-only OR MIT
//! Every function on values and on room for them, and what is refused.
use crate::*;
use std::mem::MaybeUninit;
use std::panic::catch_unwind;

const LEN: usize = 100_003;

/// Values that are all wrong, and room that is not written yet.
fn memory() -> (Vec<u32>, Vec<MaybeUninit<u32>>) {
    (vec![7; LEN], vec![MaybeUninit::new(7); LEN])
}

#[test]
fn all_is_cleared() {
    let (mut values, mut room) = memory();
    assert_eq!(clear(&mut values[1..]), [0; LEN - 1]);
    assert_eq!(clear(&mut room[1..]), [0; LEN - 1]);
    let (mut values, mut room) = memory();
    assert_eq!(clear_streaming(&mut values[1..]), [0; LEN - 1]);
    assert_eq!(clear_streaming(&mut room[1..]), [0; LEN - 1]);
    assert_eq!(values[0], 7);
    assert!(clear::<u8>(&mut []).is_empty());
}

#[test]
fn all_is_copied() {
    let source: Vec<u32> = (0..).take(LEN).collect();
    let (mut values, mut room) = memory();
    assert_eq!(copy(&mut values, &source), source);
    assert_eq!(copy(&mut room, &source), source);
    let (mut values, mut room) = memory();
    assert_eq!(copy_streaming(&mut values, &source), source);
    assert_eq!(copy_streaming(&mut room, &source), source);
}

#[test]
fn all_is_filled() {
    let (mut values, mut room) = memory();
    assert_eq!(fill(&mut values, 9), [9; LEN]);
    assert_eq!(fill(&mut room, 9), [9; LEN]);
    assert_eq!(fill_cached(&mut values, 5), [5; LEN]);
    assert_eq!(fill_cached(&mut room, 5), [5; LEN]);
    assert_eq!(fill(&mut [[1u8; 129]; 3], [2; 129]), [[2; 129]; 3]);
    assert_eq!(fill(&mut [[0u8; 0]; 3], []), [[0u8; 0]; 3]);
}

#[test]
fn places_in_a_slice_may_overlap() {
    for copy in [copy_within, copy_within_streaming] {
        for (from, to) in [(0..70_000, 1), (1..70_001, 0), (5..6, 100_002)] {
            let mut wanted: Vec<u32> = (0..).take(LEN).collect();
            let mut values = wanted.clone();
            wanted.copy_within(from.clone(), to);
            copy(&mut values, from, to);
            assert_eq!(values, wanted);
        }
        assert!(catch_unwind(|| copy(&mut [0u32; 9], 0..2, 8)).is_err());
        assert!(catch_unwind(|| copy(&mut [0u32; 9], 8..10, 0)).is_err());
    }
}

#[test]
fn all_is_stamped() {
    let image = Image::stepping([1u64, 2, 3, 4], [1, 4, 3, 3]);
    let mut room = [MaybeUninit::uninit(); 1000];
    for (n, record) in (0..).zip(image.stamp(&mut room)) {
        assert_eq!(*record, [1, 2 + 2 * n, 3, 4u64.wrapping_sub(n)]);
    }
    let mut values = [[0u64; 4]; 10];
    assert_eq!(Image::new([5; 4]).stamp(&mut values), [[5; 4]; 10]);
}

#[test]
fn lengths_must_agree() {
    let source = [1u8; 10];
    assert!(catch_unwind(|| copy(&mut [0u8; 9], &source).len()).is_err());
    assert!(catch_unwind(|| copy_streaming(&mut [0u8; 11], &source).len()).is_err());
}
