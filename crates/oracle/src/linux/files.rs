//! The files of sequences: files in memory.

use crate::step::FILES;
use crate::system::Broken;
use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::path::Path;

/// The files' names, without the number.
const NAME: &str = "scalevm-oracle-";

/// All files, each opened twice: for reading and writing, and for reading only.
pub struct Files(Vec<[File; 2]>);

impl Files {
    /// Creates empty files that are in no folder.
    pub fn new() -> Result<Self, Broken> {
        let files = (0..FILES).map(open).collect::<io::Result<_>>();
        files.map(Files).map_err(Broken::host("memfd_create"))
    }

    /// Creates empty files in `folder`.
    pub fn in_folder(folder: &Path) -> Result<Self, Broken> {
        let open = |number| {
            let path = folder.join(format!("{NAME}{number}"));
            let mut both = File::options();
            let both = both.read(true).write(true).create_new(true);
            Ok([both.open(&path)?, File::open(&path)?])
        };
        let files = (0..FILES).map(open).collect::<io::Result<_>>();
        files.map(Files).map_err(Broken::host("open"))
    }

    /// Empties the files.
    pub fn clear(&self) -> Result<(), Broken> {
        let mut files = self.0.iter();
        let cleared = files.try_for_each(|[file, _]| file.set_len(0));
        cleared.map_err(Broken::host("ftruncate"))
    }

    pub fn descriptor(&self, file: u8, read_only: bool) -> RawFd {
        self.0[usize::from(file)][usize::from(read_only)].as_raw_fd()
    }

    pub fn descriptors(&self) -> impl Iterator<Item = RawFd> {
        self.0.iter().flatten().map(AsRawFd::as_raw_fd)
    }
}

/// The file that `/proc/PID/maps` shows as `path`.
pub fn named(path: &str) -> Option<u8> {
    let (_, rest) = path.split_once(NAME)?;
    rest.split(' ').next()?.parse().ok()
}

fn open(number: u8) -> io::Result<[File; 2]> {
    let name = CString::new(format!("{NAME}{number}"))?;
    // SAFETY: the name is a C string.
    let descriptor = unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC) };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just returned this descriptor, so nothing else owns it.
    let file = unsafe { File::from_raw_fd(descriptor) };
    let again = File::open(format!("/proc/self/fd/{descriptor}"))?;
    Ok([file, again])
}
