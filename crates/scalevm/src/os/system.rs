//! Linux as a [`System`].

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use workloads::{Backing, Call, Error, Prot, System};

/// One task's handle of the kernel.
#[derive(Clone)]
pub struct Linux {
    page: usize,
    directory: PathBuf,
}

impl Linux {
    /// A handle whose files lie in `directory`.
    pub fn new(directory: PathBuf) -> Self {
        // SAFETY: no arguments in memory.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        Linux {
            page: usize::try_from(page).expect("every kernel has a page size"),
            directory,
        }
    }
}

/// The error number of the call that has just failed.
fn failed(call: Call) -> Error {
    failed_with(call, &io::Error::last_os_error())
}

fn failed_with(call: Call, error: &io::Error) -> Error {
    Error::Failed(call, error.raw_os_error().unwrap_or(libc::EIO))
}

fn bits(prot: Prot) -> libc::c_int {
    match prot {
        Prot::None => libc::PROT_NONE,
        Prot::Read => libc::PROT_READ,
        Prot::ReadWrite => libc::PROT_READ | libc::PROT_WRITE,
    }
}

impl System for Linux {
    type File = File;

    fn page_size(&self) -> usize {
        self.page
    }

    #[inline]
    fn map(&mut self, len: usize, prot: Prot, backing: Backing<'_, File>) -> Result<usize, Error> {
        let (flags, fd) = match backing {
            Backing::Anonymous => (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1),
            Backing::PrivateFile(file) => (libc::MAP_PRIVATE, file.as_raw_fd()),
            Backing::SharedFile(file) => (libc::MAP_SHARED, file.as_raw_fd()),
        };
        // SAFETY: a new mapping at an address of the kernel's choice.
        let start = unsafe { libc::mmap(ptr::null_mut(), len, bits(prot), flags, fd, 0) };
        if start == libc::MAP_FAILED {
            return Err(failed(Call::Map));
        }
        Ok(start as usize)
    }

    #[inline]
    fn unmap(&mut self, start: usize, len: usize) -> Result<(), Error> {
        // SAFETY: workloads unmap only what they have mapped through `map`, and
        // hold no references into it.
        match unsafe { libc::munmap(start as *mut _, len) } {
            0 => Ok(()),
            _ => Err(failed(Call::Unmap)),
        }
    }

    #[inline]
    fn protect(&mut self, start: usize, len: usize, prot: Prot) -> Result<(), Error> {
        // SAFETY: as for `unmap`.
        match unsafe { libc::mprotect(start as *mut _, len, bits(prot)) } {
            0 => Ok(()),
            _ => Err(failed(Call::Protect)),
        }
    }

    #[inline]
    fn discard(&mut self, start: usize, len: usize) -> Result<(), Error> {
        // SAFETY: as for `unmap`.
        match unsafe { libc::madvise(start as *mut _, len, libc::MADV_DONTNEED) } {
            0 => Ok(()),
            _ => Err(failed(Call::Discard)),
        }
    }

    fn program_break(&mut self) -> Result<usize, Error> {
        /// One for the process, so that threads move one break; 0 until chosen.
        /// Not a `OnceLock`: a child forked while that is filled would wait for ever.
        static BASE: AtomicUsize = AtomicUsize::new(0);
        let ours = kernel_break(0).next_multiple_of(self.page) + GAP;
        let base = match BASE.compare_exchange(0, ours, Relaxed, Relaxed) {
            Ok(_) => ours,
            Err(theirs) => theirs,
        };
        self.set_program_break(base)?;
        Ok(base)
    }

    #[inline]
    fn set_program_break(&mut self, to: usize) -> Result<(), Error> {
        // The system call says where the break is now; that is its only error.
        if kernel_break(to) != to {
            return Err(Error::Failed(Call::Brk, libc::ENOMEM));
        }
        Ok(())
    }

    fn file(&mut self, len: usize) -> Result<File, Error> {
        unnamed_file(&self.directory)
            .and_then(|file| file.set_len(len as u64).map(|()| file))
            .map_err(|error| failed_with(Call::File, &error))
    }

    #[inline]
    fn write(&mut self, address: usize, value: u8) -> Result<(), Error> {
        // SAFETY: the workload writes only where it has mapped for writing.
        unsafe { ptr::with_exposed_provenance_mut::<u8>(address).write_volatile(value) };
        Ok(())
    }

    #[inline]
    fn read(&mut self, address: usize) -> Result<u8, Error> {
        // SAFETY: the workload reads only where it has mapped for reading.
        Ok(unsafe { ptr::with_exposed_provenance::<u8>(address).read_volatile() })
    }
}

/// Bytes left to malloc between the break it knows and the one that brk1 moves.
///
/// libc's malloc grows the heap by the break as well. Below the gap is malloc's,
/// above it is brk1's. The system call is made directly, so libc goes on believing
/// in its own break: when malloc sets it, the kernel takes only pages of the gap
/// away, which nobody has touched, and brk1's next call puts them back.
const GAP: usize = 16 << 20;

/// Asks the kernel for the break `to`; returns the break there is then.
#[inline]
fn kernel_break(to: usize) -> usize {
    // SAFETY: `to` is 0 (which only asks) or above the end of malloc's heap, see
    // [`GAP`], so no memory in use is taken away.
    unsafe { libc::syscall(libc::SYS_brk, to) as usize }
}

/// A file in `directory` that has no name, or has lost it.
fn unnamed_file(directory: &Path) -> io::Result<File> {
    let unnamed = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_TMPFILE)
        .open(directory);
    match unnamed {
        // Not every file system can; old kernels see a directory opened for writing.
        Err(error)
            if matches!(
                error.raw_os_error(),
                Some(libc::EOPNOTSUPP | libc::EISDIR | libc::EINVAL)
            ) => {}
        other => return other,
    }
    let mut template = directory
        .join("scalevm.XXXXXX")
        .as_os_str()
        .as_bytes()
        .to_vec();
    template.push(0);
    // SAFETY: a writable string that ends in XXXXXX and a zero byte.
    let fd = unsafe { libc::mkstemp(template.as_mut_ptr().cast()) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: `template` now names the file; `fd` is open and ours alone.
    let (unlinked, file) = unsafe {
        (
            libc::unlink(template.as_ptr().cast()),
            File::from_raw_fd(fd),
        )
    };
    match unlinked {
        0 => Ok(file),
        _ => Err(io::Error::last_os_error()),
    }
}
