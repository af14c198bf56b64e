// SPDX-License-Identifier: GPL-2.0-only OR MIT
//! Populate, clear, copy, fill and stamp whole ranges of memory: libbulkmm. The
//! C functions' man pages say how; what they may not be given does not compile,
//! panics or is an error here.
//!
//! Memory is a slice, of [plain values](Pod) or of room for them, which is
//! returned as values:
//!
//! ```
//! let mut pool: Vec<u64> = Vec::with_capacity(4096);
//! let words = bulkmm::clear_streaming(&mut pool.spare_capacity_mut()[..512]);
//! assert_eq!(words, [0; 512]);
//!
//! let mut ring = [[0u64; 8]; 256];
//! bulkmm::Image::stepping([7, 0, 0, 0, 0, 0, 0, 0], [7, 64, 0, 0, 0, 0, 0, 0]).stamp(&mut ring);
//! assert_eq!(ring[255][..2], [7, 255 * 64]);
//! ```
//!
//! Pools are made resident ahead of use, with as many threads as help:
//!
//! ```no_run
//! # let (addr, len) = (std::ptr::null_mut(), 0);
//! let report = bulkmm::Options::new().threads(8).populate(addr, len)?;
//! println!("{} bytes by {} threads", report.done, report.threads);
//! # Ok::<(), bulkmm::Error>(())
//! ```
//!
//! Files are read into one memory, which nobody can change any more:
//!
//! ```no_run
//! let staged = bulkmm::Options::new().stage(bulkmm::Pages::Huge(2 << 20), &["weights.bin"])?;
//! let bytes = staged.map()?;
//! println!("{} of {} bytes", staged.files[0].len, bytes.len());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
pub use bulkmm_sys as sys;

mod element;
mod image;
mod range;
mod stage;
mod streaming;
mod write;

pub use element::{Element, Pod};
pub use image::Image;
pub use range::{Cause, Error, Options, PopulateRange, Report, Slow};
pub use stage::{Pages, StageError, Staged, StagedFile, StagedMap};
pub use streaming::{streaming, Streaming};
pub use write::{
    clear, clear_streaming, copy, copy_streaming, copy_within, copy_within_streaming, fill,
    fill_cached,
};
