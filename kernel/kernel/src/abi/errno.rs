//! Error numbers.

use linux_raw_sys::errno;
use machine::PageFault;

/// Why a call failed, by Linux's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errno(pub u32);

impl Errno {
    /// Not permitted.
    pub const PERM: Errno = Errno(errno::EPERM);
    /// There is no such name.
    pub const NOENT: Errno = Errno(errno::ENOENT);
    /// There is no such process.
    pub const SRCH: Errno = Errno(errno::ESRCH);
    /// A signal came.
    pub const INTR: Errno = Errno(errno::EINTR);
    /// The device does not do that.
    pub const IO: Errno = Errno(errno::EIO);
    /// There is no such device.
    pub const NXIO: Errno = Errno(errno::ENXIO);
    /// Too many arguments.
    pub const TOOBIG: Errno = Errno(errno::E2BIG);
    /// Not a program.
    pub const NOEXEC: Errno = Errno(errno::ENOEXEC);
    /// Not such a descriptor.
    pub const BADF: Errno = Errno(errno::EBADF);
    /// There is no such child.
    pub const CHILD: Errno = Errno(errno::ECHILD);
    /// Not now.
    pub const AGAIN: Errno = Errno(errno::EAGAIN);
    /// Memory is short.
    pub const NOMEM: Errno = Errno(errno::ENOMEM);
    /// Access denied.
    pub const ACCES: Errno = Errno(errno::EACCES);
    /// Not the task's memory.
    pub const FAULT: Errno = Errno(errno::EFAULT);
    /// It is there already.
    pub const EXIST: Errno = Errno(errno::EEXIST);
    /// Not on the same device.
    pub const XDEV: Errno = Errno(errno::EXDEV);
    /// Not a directory.
    pub const NOTDIR: Errno = Errno(errno::ENOTDIR);
    /// A directory.
    pub const ISDIR: Errno = Errno(errno::EISDIR);
    /// Not a possible argument.
    pub const INVAL: Errno = Errno(errno::EINVAL);
    /// Too many open files.
    pub const NFILE: Errno = Errno(errno::ENFILE);
    /// Too many descriptors.
    pub const MFILE: Errno = Errno(errno::EMFILE);
    /// Not a terminal.
    pub const NOTTY: Errno = Errno(errno::ENOTTY);
    /// Too large.
    pub const FBIG: Errno = Errno(errno::EFBIG);
    /// No room.
    pub const NOSPC: Errno = Errno(errno::ENOSPC);
    /// Not such a device.
    pub const NODEV: Errno = Errno(errno::ENODEV);
    /// Not seekable.
    pub const SPIPE: Errno = Errno(errno::ESPIPE);
    /// There is no reader.
    pub const PIPE: Errno = Errno(errno::EPIPE);
    /// Too large a number.
    pub const OVERFLOW: Errno = Errno(errno::EOVERFLOW);
    /// Too large for its place.
    pub const RANGE: Errno = Errno(errno::ERANGE);
    /// A name is too long.
    pub const NAMETOOLONG: Errno = Errno(errno::ENAMETOOLONG);
    /// The time is over.
    pub const TIMEDOUT: Errno = Errno(errno::ETIMEDOUT);
    /// There is no such call.
    pub const NOSYS: Errno = Errno(errno::ENOSYS);
    /// The directory has entries.
    pub const NOTEMPTY: Errno = Errno(errno::ENOTEMPTY);
    /// Not on such a file.
    pub const OPNOTSUPP: Errno = Errno(errno::EOPNOTSUPP);
    /// Too many links.
    pub const LOOP: Errno = Errno(errno::ELOOP);
}

impl From<vm::Error> for Errno {
    fn from(error: vm::Error) -> Self {
        Errno(error.errno() as u32)
    }
}

impl From<PageFault> for Errno {
    fn from(_: PageFault) -> Self {
        Errno::FAULT
    }
}
