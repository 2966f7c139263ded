//! Appending to a store.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::EXTENSION;
use crate::Time;
use crate::record::Record;

/// Why a store cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("{}: {source}", path.display())]
pub struct StoreError {
    /// The directory, or the file in it.
    pub path: PathBuf,
    /// The operating system's error.
    pub source: io::Error,
}

/// Writes the results of one invocation line by line. Without results it leaves no file.
#[derive(Debug)]
pub struct Writer {
    path: PathBuf,
    file: File,
    lines: u64,
}

impl Writer {
    /// Creates a new file in `directory`, and the directory itself if its parent exists. No file is
    /// ever overwritten or shared.
    pub fn create(directory: &Path) -> Result<Self, StoreError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| StoreError { path, source }
        };
        if !directory.is_dir() {
            fs::create_dir(directory)
                .or_else(|error| match error.kind() {
                    // Another invocation was faster, or it is not a directory: opening the file
                    // will tell.
                    io::ErrorKind::AlreadyExists => Ok(()),
                    _ => Err(error),
                })
                .map_err(failed(directory))?;
        }
        let stem = stem(Time::now(), std::process::id());
        let mut attempt = 1;
        loop {
            let path = directory.join(name(&stem, attempt));
            // The kernel guarantees that only one of several concurrent attempts creates the file.
            match OpenOptions::new().append(true).create_new(true).open(&path) {
                Ok(file) => {
                    let lines = 0;
                    return Ok(Self { path, file, lines });
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && attempt < 1000 => {
                    attempt += 1;
                }
                Err(error) => return Err(failed(&path)(error)),
            }
        }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns true if nothing has been appended yet.
    pub fn is_empty(&self) -> bool {
        self.lines == 0
    }

    /// Appends one line. A summary is synced to disk: a crash of the machine costs a run at most,
    /// not the day.
    pub fn append(&mut self, record: &Record) -> Result<(), StoreError> {
        let written = record.write(&self.file);
        self.appended(written, matches!(record, Record::Summary(_)))
    }

    /// Appends a line of JSON that is not a result, such as a profile, and syncs it to disk.
    pub fn append_aside(&mut self, line: &str) -> Result<(), StoreError> {
        let written = (&self.file).write_all(format!("{line}\n").as_bytes());
        self.appended(written, true)
    }

    fn appended(&mut self, written: io::Result<()>, is_end: bool) -> Result<(), StoreError> {
        self.lines += 1;
        let kept = if is_end {
            written.and_then(|()| self.file.sync_data())
        } else {
            written
        };
        kept.map_err(|source| StoreError {
            path: self.path.clone(),
            source,
        })
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if self.is_empty() {
            // An empty file does no harm.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// `2026-11-21T23-15-02.123Z-4711`: no colons, which some file systems refuse; the process id
/// distinguishes invocations of the same millisecond.
fn stem(time: Time, process: u32) -> String {
    format!("{}-{process}", time.to_string().replace(':', "-"))
}

/// Machines that share a directory may also share process ids; the attempt distinguishes them.
fn name(stem: &str, attempt: u32) -> String {
    match attempt {
        1 => format!("{stem}.{EXTENSION}"),
        _ => format!("{stem}-{attempt}.{EXTENSION}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_sort_as_time_passes() {
        let at = |milliseconds| stem(Time::from_milliseconds(milliseconds), 4711);
        assert_eq!(at(1_795_302_902_123), "2026-11-21T23-15-02.123Z-4711");
        let names = [0, 999, 1000, 1_795_302_902_123, 1_795_302_902_124].map(at);
        assert!(names.is_sorted(), "{names:?}");
        assert_eq!(name("s", 1), "s.jsonl");
        assert_eq!(name("s", 2), "s-2.jsonl");
    }
}
