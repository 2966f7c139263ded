//! Why a workload failed.

use core::fmt;

/// An operation of a [`System`](crate::System).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// Making a mapping.
    Map,
    /// Removing a mapping.
    Unmap,
    /// Changing the rights of a mapping.
    Protect,
    /// Dropping the pages of a mapping.
    Discard,
    /// Changing the length of a mapping, and perhaps its place.
    Remap,
    /// Sending the pages of a mapping to swap space.
    PageOut,
    /// Asking for or moving the program break.
    Brk,
    /// Creating a file.
    File,
    /// Reading or writing a page.
    Touch,
    /// Opening a file by its name.
    Open,
    /// Closing a descriptor.
    Close,
    /// Locking or unlocking a part of a file.
    Lock,
    /// Checking if a descriptor is ready.
    Poll,
    /// Making a pipe.
    Pipe,
    /// Making a pair of sockets.
    SocketPair,
    /// Writing to a descriptor.
    Write,
    /// Reading from a descriptor.
    Read,
    /// Waking tasks that wait at a word of memory.
    FutexWake,
    /// Waiting at a word of memory.
    FutexWait,
    /// Sleeping until some time.
    Sleep,
    /// Asking for the objects shared by the tasks that run together.
    Common,
    /// Setting a signal's handler.
    Handle,
    /// Sending a signal to the task itself.
    Raise,
    /// Making a process.
    Fork,
    /// Starting a program.
    Exec,
    /// Waiting for the end of a child.
    Wait,
    /// Starting a partner of this task.
    Partner,
    /// Starting the task's own thread.
    Thread,
    /// A treatment of memory that leaves its mappings what they are.
    Treat,
    /// A look at mappings and their pages.
    Scan,
    /// A part of a recorded program.
    Replay,
}

impl Call {
    /// The name of the system call, or the nearest term.
    pub const fn name(self) -> &'static str {
        match self {
            Call::Map => "mmap",
            Call::Unmap => "munmap",
            Call::Protect => "mprotect",
            Call::Discard => "madvise(MADV_DONTNEED)",
            Call::Remap => "mremap",
            Call::PageOut => "madvise(MADV_PAGEOUT)",
            Call::Brk => "brk",
            Call::File => "temporary file",
            Call::Touch => "page fault",
            Call::Open => "open",
            Call::Close => "close",
            Call::Lock => "fcntl(F_SETLKW)",
            Call::Poll => "poll",
            Call::Pipe => "pipe",
            Call::SocketPair => "socketpair",
            Call::Write => "write",
            Call::Read => "read",
            Call::FutexWake => "futex(FUTEX_WAKE)",
            Call::FutexWait => "futex(FUTEX_WAIT)",
            Call::Sleep => "clock_nanosleep",
            Call::Common => "what tasks have in common",
            Call::Handle => "sigaction",
            Call::Raise => "raise",
            Call::Fork => "fork",
            Call::Exec => "exec",
            Call::Wait => "waitpid",
            Call::Partner => "partner of the task",
            Call::Thread => "thread",
            Call::Treat => "madvise",
            Call::Scan => "read of /proc/self/smaps",
            Call::Replay => "part of the recording",
        }
    }
}

/// Why a workload failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// A call failed, with this error number (`ENOMEM` is 12 …).
    Failed(Call, i32),
    /// The system does not have this call.
    Unsupported(Call),
    /// A page held a wrong byte.
    Wrong {
        /// The byte's address.
        address: usize,
        /// The byte read.
        found: u8,
        /// The expected byte.
        expected: u8,
    },
    /// A call succeeded with a wrong result.
    Answer {
        call: Call,
        /// Its result.
        found: u64,
        /// The right result.
        expected: u64,
    },
}

impl Error {
    /// An error if a call's result is not the expected one.
    #[inline]
    pub(crate) fn unless(call: Call, found: u64, expected: u64) -> Result<(), Error> {
        if found == expected {
            Ok(())
        } else {
            Err(Error::Answer {
                call,
                found,
                expected,
            })
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Error::Failed(call, errno) => write!(f, "{}: error {errno}", call.name()),
            Error::Unsupported(call) => write!(f, "{}: this system has none", call.name()),
            Error::Wrong {
                address,
                found,
                expected,
            } => write!(f, "read {found} at {address:#x} instead of {expected}"),
            Error::Answer {
                call,
                found,
                expected,
            } => write!(f, "{}: {found} instead of {expected}", call.name()),
        }
    }
}

impl core::error::Error for Error {}
