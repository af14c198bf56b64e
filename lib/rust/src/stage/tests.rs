// SPDX-License-Identifier: GPL-2.0-only OR MIT
//! Tests against the library itself.
use super::*;
use crate::Cause;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::ops::ControlFlow;
use std::panic::{catch_unwind, AssertUnwindSafe};

const SIZES: [usize; 3] = [(3 << 20) + 1, 0, 4096];

/// Files, which are removed at the end.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let place = std::env::temp_dir().join(format!("bulkmm-{name}-{}", std::process::id()));
        fs::create_dir(&place).unwrap();
        Self(place)
    }

    fn fill(&self) -> Vec<PathBuf> {
        let fill = |(number, len): (usize, &usize)| {
            let path = self.0.join(number.to_string());
            let bytes: Vec<u8> = (0..*len).map(|at| (at * (7 + number)) as u8).collect();
            fs::write(&path, bytes).unwrap();
            path
        };
        SIZES.iter().enumerate().map(fill).collect()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn count_open() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

#[test]
fn all_bytes_are_there_and_nobody_can_change_them() {
    let place = Place::new("bytes");
    let paths = place.fill();
    let staged = Options::new()
        .threads(1)
        .stage(Pages::Small, &paths)
        .unwrap();
    let map = staged.map().unwrap();
    for (file, path) in staged.files.iter().zip(&paths) {
        assert_eq!(&file.path, path);
        assert_eq!(map[file.offset..][..file.len], fs::read(path).unwrap());
    }
    assert_eq!(staged.report.threads, 1);
    let path = format!("/proc/self/fd/{}", staged.as_fd().as_raw_fd());
    assert!(File::options()
        .write(true)
        .open(path)
        .unwrap()
        .write(b"x")
        .is_err());
    let mut whole = Vec::new();
    File::from(OwnedFd::from(staged))
        .read_to_end(&mut whole)
        .unwrap();
    assert_eq!(whole[..], map[..]);
}

#[test]
fn empty_files_are_an_empty_slice() {
    let place = Place::new("empty");
    let paths = place.fill();
    let staged = Options::new().stage(Pages::Small, &paths[1..2]).unwrap();
    assert_eq!(staged.map().unwrap()[..], []);
}

#[test]
fn an_error_names_the_file() {
    let place = Place::new("error");
    let mut paths = place.fill();
    let before = count_open();
    for name in ["none", "with\0zero"] {
        paths.push(place.0.join(name));
        let error = Options::new().stage(Pages::Small, &paths).unwrap_err();
        assert_eq!((error.file, error.error.cause), (Some(3), Cause::File));
        let text = error.to_string();
        assert!(text.starts_with(&paths[3].display().to_string()), "{text}");
        paths.pop();
    }
    for pages in [Pages::Huge(0), Pages::Huge(1), Pages::Huge(3 << 20)] {
        let error = Options::new().stage(pages, &paths).unwrap_err();
        assert!(error.error.errno != 0 && error.file.is_none());
    }
    let none: [&Path; 0] = [];
    let error = Options::new().stage(Pages::Small, &none).unwrap_err();
    assert_eq!(error.error.cause, Cause::Count);
    assert!(count_open() <= before);
}

#[test]
fn a_panic_goes_through_and_leaves_nothing() {
    let place = Place::new("panic");
    let paths = &place.fill()[..1]; // a memory of a size that no other test has
    for last in [false, true] {
        let mut options = Options::new().progress(|done, all| {
            assert!(last && done < all, "mine");
            ControlFlow::Continue(())
        });
        let work = AssertUnwindSafe(|| options.stage(Pages::Small, paths).is_ok());
        assert!(catch_unwind(work).is_err());
    }
    let open = fs::read_dir("/proc/self/fd").unwrap();
    let is_left = |path: PathBuf| {
        let link = fs::read_link(&path).unwrap_or_default();
        let len = fs::metadata(&path).map_or(0, |data| data.len());
        link.to_string_lossy().contains("bulkmm-stage") && len == SIZES[0] as u64
    };
    assert!(!open.flatten().any(|each| is_left(each.path())));
}

#[test]
fn a_file_of_the_program_becomes_the_memory() {
    let place = Place(PathBuf::from(format!(
        "/dev/shm/bulkmm-into-{}",
        std::process::id()
    )));
    fs::create_dir(&place.0).unwrap();
    let paths = place.fill();
    let target = place.0.join("to");
    let mut options = File::options();
    options.read(true).write(true).create_new(true);
    let file = options.open(&target).unwrap();
    let (files, report) = Options::new()
        .stage_into(&file, Pages::Small, &paths)
        .unwrap();
    let whole = fs::read(&target).unwrap();
    assert_eq!(whole[files[2].offset..], fs::read(&paths[2]).unwrap());
    assert!(report.done >= files[0].len);
    let error = Options::new()
        .stage_into(&file, Pages::Small, &paths)
        .unwrap_err();
    assert_eq!(error.error.cause, Cause::Fd);
}
