// SPDX-License-Identifier: GPL-2.0-only OR MIT
//! Files in one memory.
#![allow(clippy::result_large_err)] // reading files costs more

use crate::{sys, Error, Options, Report};
use std::ffi::{c_int, c_void, CString};
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::{fmt, io, ops, ptr, slice};

/// Which pages a memory has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pages {
    /// Those of the usual size; in a file on hugetlbfs, its own.
    #[default]
    Small,
    /// Transparent huge pages, where the system has them for shared memory.
    Transparent,
    /// Of hugetlb, of so many bytes.
    Huge(usize),
}

/// A file in a memory: where it begins, and its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StagedFile {
    pub path: PathBuf,
    pub offset: usize,
    pub len: usize,
}

/// Files in one memory, which nobody can change any more.
#[derive(Debug)]
pub struct Staged {
    fd: OwnedFd,
    len: usize,
    pub files: Vec<StagedFile>,
    pub report: Report,
}

/// All of a [`Staged`], mapped; it outlives that.
#[derive(Debug)]
pub struct StagedMap {
    addr: *const u8,
    len: usize,
}

/// What went wrong, and with which file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StageError {
    pub error: Error,
    /// The file, by its number; and the byte of it, rounded down to a page.
    pub file: Option<usize>,
    pub at: usize,
    text: String,
}

impl fmt::Display for StageError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.text)
    }
}

impl std::error::Error for StageError {}

const PROT_READ: c_int = 1;
const MAP_SHARED: c_int = 1;

extern "C" {
    fn mmap(a: *mut c_void, l: usize, p: c_int, f: c_int, fd: c_int, o: i64) -> *mut c_void;
    fn munmap(a: *mut c_void, l: usize) -> c_int;
}

impl Staged {
    /// Maps all of it for reading.
    ///
    /// # Errors
    ///
    /// Those of mmap(2).
    pub fn map(&self) -> io::Result<StagedMap> {
        if self.len == 0 {
            let addr = ptr::NonNull::<u8>::dangling().as_ptr();
            return Ok(StagedMap { addr, len: 0 });
        }
        let fd = self.fd.as_raw_fd();
        // SAFETY: at an address that the kernel chooses.
        let addr = unsafe { mmap(ptr::null_mut(), self.len, PROT_READ, MAP_SHARED, fd, 0) };
        if addr as isize == -1 {
            return Err(io::Error::last_os_error());
        }
        Ok(StagedMap {
            addr: addr.cast(),
            len: self.len,
        })
    }
}

impl AsFd for Staged {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl From<Staged> for OwnedFd {
    fn from(staged: Staged) -> Self {
        staged.fd
    }
}

impl ops::Deref for StagedMap {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: it is mapped until it is dropped, and sealed: its bytes and its
        // size stay as they are.
        unsafe { slice::from_raw_parts(self.addr, self.len) }
    }
}

impl Drop for StagedMap {
    fn drop(&mut self) {
        if self.len != 0 {
            // SAFETY: no reference to it is left.
            unsafe { munmap(self.addr.cast_mut().cast(), self.len) };
        }
    }
}

// SAFETY: it is only read, and unmapped by whoever has it last.
unsafe impl Send for StagedMap {}
// SAFETY: as for Send.
unsafe impl Sync for StagedMap {}

/// What a call returned.
struct Outcome {
    fd: Option<OwnedFd>,
    len: usize,
    files: Vec<StagedFile>,
    report: Report,
}

impl Options<'_> {
    /// Reads files into one memory, which is then sealed; only `threads`, `node`,
    /// `compact` and `progress` may be set.
    ///
    /// # Errors
    ///
    /// Those of bmm_stage(3).
    pub fn stage<P: AsRef<Path>>(
        &mut self,
        pages: Pages,
        paths: &[P],
    ) -> Result<Staged, StageError> {
        let outcome = self.stage_files(-1, pages, paths)?;
        Ok(Staged {
            fd: outcome.fd.expect("the library made a memory"),
            len: outcome.len,
            files: outcome.files,
            report: outcome.report,
        })
    }

    /// Reads files into a file on tmpfs or hugetlbfs that has no pages, and is
    /// open for reading and writing.
    ///
    /// # Errors
    ///
    /// Those of bmm_stage(3); afterwards the file is empty, unless it was refused.
    pub fn stage_into<P: AsRef<Path>>(
        &mut self,
        file: impl AsFd,
        pages: Pages,
        paths: &[P],
    ) -> Result<(Vec<StagedFile>, Report), StageError> {
        let fd = file.as_fd().as_raw_fd();
        let outcome = self.stage_files(fd, pages, paths)?;
        Ok((outcome.files, outcome.report))
    }

    fn stage_files<P: AsRef<Path>>(
        &mut self,
        fd: c_int,
        pages: Pages,
        paths: &[P],
    ) -> Result<Outcome, StageError> {
        let bytes = |path: &P| CString::new(path.as_ref().as_os_str().as_bytes()).ok();
        let names: Vec<_> = paths.iter().map(bytes).collect();
        // no name: open(2) refuses it, as nothing is called so
        let file = |name: &Option<CString>| sys::bmm_file {
            path: name.as_ref().map_or(ptr::null(), |name| name.as_ptr()),
            offset: 0,
            len: 0,
        };
        let mut files: Vec<_> = names.iter().map(file).collect();
        let mut memory = sys::bmm_memory {
            size: size_of::<sys::bmm_memory>(),
            page: pages.bytes(),
            len: 0,
            failed: paths.len(),
            at: 0,
            fd,
        };
        let mut own = None; // not lost if progress panics
        let result = self.call(|options, report| {
            // SAFETY: the names, files and memory outlive the call.
            let error = unsafe {
                sys::bmm_stage(
                    &mut memory,
                    files.as_mut_ptr(),
                    files.len(),
                    options,
                    report,
                )
            };
            if error == 0 && fd < 0 {
                // SAFETY: it is new, and the caller's to close.
                own = Some(unsafe { OwnedFd::from_raw_fd(memory.fd) });
            }
            error
        });
        let report = result.map_err(|error| StageError::of(error, &memory, paths))?;
        let places = paths.iter().zip(&files);
        Ok(Outcome {
            fd: own,
            len: memory.len,
            files: places
                .map(|(path, file)| StagedFile::of(path.as_ref(), file))
                .collect(),
            report,
        })
    }
}

impl Pages {
    fn bytes(self) -> usize {
        match self {
            Pages::Small => 0,
            Pages::Transparent => sys::BMM_THP,
            Pages::Huge(bytes) => bytes.max(3), // what is less is something else
        }
    }
}

impl StagedFile {
    fn of(path: &Path, file: &sys::bmm_file) -> Self {
        Self {
            path: path.into(),
            offset: file.offset,
            len: file.len,
        }
    }
}

impl StageError {
    fn of<P: AsRef<Path>>(error: Error, memory: &sys::bmm_memory, paths: &[P]) -> Self {
        let path = paths.get(memory.failed);
        let name = path.map_or(String::new(), |path| match memory.at {
            0 => format!("{}: ", path.as_ref().display()),
            at => format!("{} (at byte {at}): ", path.as_ref().display()),
        });
        Self {
            file: path.map(|_| memory.failed),
            at: memory.at,
            text: format!("{name}{error}"),
            error,
        }
    }
}

#[cfg(test)]
mod tests;
