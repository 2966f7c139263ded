//! A private temporary directory.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// A directory that only this user may enter; removed when dropped, with what is in it.
pub struct Directory(PathBuf);

impl Directory {
    /// An empty directory in TMPDIR.
    pub fn new() -> io::Result<Self> {
        let template = env::temp_dir().join("scalevm-XXXXXX");
        let mut name = template.as_os_str().as_bytes().to_vec();
        name.push(0);
        // SAFETY: a writable string that ends in XXXXXX and a zero byte.
        if unsafe { libc::mkdtemp(name.as_mut_ptr().cast()) }.is_null() {
            return Err(io::Error::last_os_error());
        }
        name.pop();
        Ok(Directory(OsString::from_vec(name).into()))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            eprintln!("scalevm: {} stays: {error}", self.0.display());
        }
    }
}
