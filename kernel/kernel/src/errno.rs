//! Error numbers.

use core::fmt;
use linux_raw_sys::errno;
use machine::PageFault;

/// Why a call failed, by Linux's number. As wide as what calls return, so that an answer fits
/// registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errno(pub usize);

impl Errno {
    /// Not permitted.
    pub const PERM: Errno = Errno(errno::EPERM as usize);
    /// There is no such name.
    pub const NOENT: Errno = Errno(errno::ENOENT as usize);
    /// There is no such process.
    pub const SRCH: Errno = Errno(errno::ESRCH as usize);
    /// A signal came.
    pub const INTR: Errno = Errno(errno::EINTR as usize);
    /// The device does not do that.
    pub const IO: Errno = Errno(errno::EIO as usize);
    /// There is no such device.
    pub const NXIO: Errno = Errno(errno::ENXIO as usize);
    /// Too many arguments.
    pub const TOOBIG: Errno = Errno(errno::E2BIG as usize);
    /// Not a program.
    pub const NOEXEC: Errno = Errno(errno::ENOEXEC as usize);
    /// There is no such descriptor, or it does not allow this.
    pub const BADF: Errno = Errno(errno::EBADF as usize);
    /// There is no such child.
    pub const CHILD: Errno = Errno(errno::ECHILD as usize);
    /// Not possible now; try again.
    pub const AGAIN: Errno = Errno(errno::EAGAIN as usize);
    /// Memory is short.
    pub const NOMEM: Errno = Errno(errno::ENOMEM as usize);
    /// Access denied.
    pub const ACCES: Errno = Errno(errno::EACCES as usize);
    /// An address that is not the task's memory.
    pub const FAULT: Errno = Errno(errno::EFAULT as usize);
    /// The object is in use.
    pub const BUSY: Errno = Errno(errno::EBUSY as usize);
    /// The name or object exists already.
    pub const EXIST: Errno = Errno(errno::EEXIST as usize);
    /// Not on the same device.
    pub const XDEV: Errno = Errno(errno::EXDEV as usize);
    /// Not a directory.
    pub const NOTDIR: Errno = Errno(errno::ENOTDIR as usize);
    /// A directory.
    pub const ISDIR: Errno = Errno(errno::EISDIR as usize);
    /// An invalid argument.
    pub const INVAL: Errno = Errno(errno::EINVAL as usize);
    /// A program runs from the file, or it is open for writing.
    pub const TXTBSY: Errno = Errno(errno::ETXTBSY as usize);
    /// Too many open files.
    pub const NFILE: Errno = Errno(errno::ENFILE as usize);
    /// Too many descriptors.
    pub const MFILE: Errno = Errno(errno::EMFILE as usize);
    /// Not a terminal.
    pub const NOTTY: Errno = Errno(errno::ENOTTY as usize);
    /// Too large.
    pub const FBIG: Errno = Errno(errno::EFBIG as usize);
    /// No room.
    pub const NOSPC: Errno = Errno(errno::ENOSPC as usize);
    /// The device does not support this.
    pub const NODEV: Errno = Errno(errno::ENODEV as usize);
    /// Not seekable.
    pub const SPIPE: Errno = Errno(errno::ESPIPE as usize);
    /// There is no reader.
    pub const PIPE: Errno = Errno(errno::EPIPE as usize);
    /// Too large a number.
    pub const OVERFLOW: Errno = Errno(errno::EOVERFLOW as usize);
    /// Too large for its place.
    pub const RANGE: Errno = Errno(errno::ERANGE as usize);
    /// A name is too long.
    pub const NAMETOOLONG: Errno = Errno(errno::ENAMETOOLONG as usize);
    /// No lock is left.
    pub const NOLCK: Errno = Errno(errno::ENOLCK as usize);
    /// The wait would be a deadlock.
    pub const DEADLK: Errno = Errno(errno::EDEADLK as usize);
    /// There is no such message.
    pub const NOMSG: Errno = Errno(errno::ENOMSG as usize);
    /// The object has been removed.
    pub const IDRM: Errno = Errno(errno::EIDRM as usize);
    /// The time is over.
    pub const TIMEDOUT: Errno = Errno(errno::ETIMEDOUT as usize);
    /// There is no such call.
    pub const NOSYS: Errno = Errno(errno::ENOSYS as usize);
    /// The directory has entries.
    pub const NOTEMPTY: Errno = Errno(errno::ENOTEMPTY as usize);
    /// Not a socket.
    pub const NOTSOCK: Errno = Errno(errno::ENOTSOCK as usize);
    /// There is no such option.
    pub const NOPROTOOPT: Errno = Errno(errno::ENOPROTOOPT as usize);
    /// There is no such protocol.
    pub const PROTONOSUPPORT: Errno = Errno(errno::EPROTONOSUPPORT as usize);
    /// Sockets of this type are not supported.
    pub const SOCKTNOSUPPORT: Errno = Errno(errno::ESOCKTNOSUPPORT as usize);
    /// Sockets of this domain are not supported.
    pub const AFNOSUPPORT: Errno = Errno(errno::EAFNOSUPPORT as usize);
    /// The other socket was closed before it had read all.
    pub const CONNRESET: Errno = Errno(errno::ECONNRESET as usize);
    /// The socket is connected.
    pub const ISCONN: Errno = Errno(errno::EISCONN as usize);
    /// The socket is not connected.
    pub const NOTCONN: Errno = Errno(errno::ENOTCONN as usize);
    /// Nobody listens there.
    pub const CONNREFUSED: Errno = Errno(errno::ECONNREFUSED as usize);
    /// The connection is being made already.
    pub const ALREADY: Errno = Errno(errno::EALREADY as usize);
    /// The connection is being made.
    pub const INPROGRESS: Errno = Errno(errno::EINPROGRESS as usize);
    /// The connection has failed.
    pub const CONNABORTED: Errno = Errno(errno::ECONNABORTED as usize);
    /// No network leads there.
    pub const NETUNREACH: Errno = Errno(errno::ENETUNREACH as usize);
    /// The computer does not have the address.
    pub const ADDRNOTAVAIL: Errno = Errno(errno::EADDRNOTAVAIL as usize);
    /// The socket needs an address to send to.
    pub const DESTADDRREQ: Errno = Errno(errno::EDESTADDRREQ as usize);
    /// No room for what is sent.
    pub const NOBUFS: Errno = Errno(errno::ENOBUFS as usize);
    /// The number has no meaning there.
    pub const DOM: Errno = Errno(errno::EDOM as usize);
    /// The packet is too long.
    pub const MSGSIZE: Errno = Errno(errno::EMSGSIZE as usize);
    /// The other socket has another type.
    pub const PROTOTYPE: Errno = Errno(errno::EPROTOTYPE as usize);
    /// Another socket has the address.
    pub const ADDRINUSE: Errno = Errno(errno::EADDRINUSE as usize);
    /// Not supported on such a file.
    pub const OPNOTSUPP: Errno = Errno(errno::EOPNOTSUPP as usize);
    /// Too many links.
    pub const LOOP: Errno = Errno(errno::ELOOP as usize);
    /// A program's interpreter cannot be run.
    pub const LIBBAD: Errno = Errno(errno::ELIBBAD as usize);

    /// The value that a call returns.
    pub fn value(self) -> usize {
        self.0.wrapping_neg()
    }
}

impl From<vm::Error> for Errno {
    fn from(error: vm::Error) -> Self {
        Errno(error.errno() as usize)
    }
}

impl From<fmt::Error> for Errno {
    /// Writing only fails if memory is short.
    fn from(_: fmt::Error) -> Self {
        Errno::NOMEM
    }
}

impl From<PageFault> for Errno {
    fn from(_: PageFault) -> Self {
        Errno::FAULT
    }
}
