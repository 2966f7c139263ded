//! The operations that a workload needs of an operating system.

use crate::replay::{Part, Start, Treatment};
use crate::{Call, Daemon, Error, Program};
use core::hint::black_box;

/// The rights of a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prot {
    /// No access.
    None,
    /// Reading only.
    Read,
    /// Reading and writing.
    ReadWrite,
}

/// The content behind a mapping.
#[derive(Debug, PartialEq, Eq)]
pub enum Backing<'a, F> {
    /// Zeroes, private (`MAP_PRIVATE | MAP_ANONYMOUS`).
    Anonymous,
    /// Zeroes, shared with the processes that inherit the mapping (`MAP_SHARED | MAP_ANONYMOUS`).
    SharedAnonymous,
    /// A file, from its start; writes are private (`MAP_PRIVATE`).
    PrivateFile(&'a F),
    /// A file, from its start; writes go to it (`MAP_SHARED`).
    SharedFile(&'a F),
}

impl<F> Clone for Backing<'_, F> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<F> Copy for Backing<'_, F> {}

/// A file, pipe or socket that a task uses, by its number in the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptor(pub i32);

/// A child that a task has started and will wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Child {
    /// A process, by its number.
    Process(i32),
    /// A thread, by a number from its starter's handle.
    Thread(usize),
}

/// The program of a forked child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forked {
    /// It ends at once with this exit code.
    Exits(u8),
    /// It becomes a program that does nothing and succeeds.
    Execs,
}

/// The byte after which an echo ends, see [`System::start_echo`].
pub const LAST: u8 = 0;

/// One task's handle of an operating system.
///
/// Tasks of one process have handles of one address space, tasks of different processes of
/// different ones. Addresses and lengths are multiples of [`System::page_size`]. A system that
/// lacks an operation returns [`Error::Unsupported`]: methods with a body here are optional.
pub trait System {
    /// A file that can be mapped; disappears when dropped.
    type File;

    /// Bytes in a page.
    fn page_size(&self) -> usize;

    /// Maps `len` bytes wherever there is room and returns the address.
    fn map(
        &mut self,
        len: usize,
        prot: Prot,
        backing: Backing<'_, Self::File>,
    ) -> Result<usize, Error>;

    /// Unmaps `len` bytes.
    fn unmap(&mut self, start: usize, len: usize) -> Result<(), Error>;

    /// Changes the rights of `len` bytes.
    fn protect(&mut self, start: usize, len: usize, prot: Prot) -> Result<(), Error>;

    /// Drops the pages of `len` bytes; the next read finds zeroes, or the file.
    fn discard(&mut self, start: usize, len: usize) -> Result<(), Error>;

    /// The program break, as a place from which the workload may move it up and back.
    fn program_break(&mut self) -> Result<usize, Error>;

    /// Moves the program break.
    fn set_program_break(&mut self, to: usize) -> Result<(), Error>;

    /// Creates a file of `len` zero bytes that no other task has.
    fn file(&mut self, len: usize) -> Result<Self::File, Error>;

    /// Writes to a file, like `pwrite`; returns how many bytes it took.
    fn write_file(&mut self, _file: &Self::File, _at: u64, _bytes: &[u8]) -> Result<usize, Error> {
        Err(Error::Unsupported(Call::Write))
    }

    /// Reads from a file, like `pread`; returns how many bytes there were.
    fn read_file(
        &mut self,
        _file: &Self::File,
        _at: u64,
        _bytes: &mut [u8],
    ) -> Result<usize, Error> {
        Err(Error::Unsupported(Call::Read))
    }

    /// Writes one byte. The page is mapped for writing by this task.
    fn write(&mut self, address: usize, value: u8) -> Result<(), Error>;

    /// Reads one byte. The page is mapped for reading by this task.
    fn read(&mut self, address: usize) -> Result<u8, Error>;

    /// Makes the mapping of `len` bytes at `start` `new_len` long and returns its new address, with
    /// its pages: the old one, or another if the memory after it is mapped.
    fn remap(&mut self, _start: usize, _len: usize, _new_len: usize) -> Result<usize, Error> {
        Err(Error::Unsupported(Call::Remap))
    }

    /// Maps `len` bytes at `start`, over mappings of this process.
    fn map_over(
        &mut self,
        _start: usize,
        _len: usize,
        _prot: Prot,
        _backing: Backing<'_, Self::File>,
    ) -> Result<(), Error> {
        Err(Error::Unsupported(Call::Map))
    }

    /// Treats `len` bytes in this way.
    fn treat(&mut self, _start: usize, _len: usize, _how: Treatment) -> Result<(), Error> {
        Err(Error::Unsupported(Call::Treat))
    }

    /// Sends the pages of `len` bytes to swap space, as far as there is any; the next access pages
    /// them in unchanged.
    fn page_out(&mut self, _start: usize, _len: usize) -> Result<(), Error> {
        Err(Error::Unsupported(Call::PageOut))
    }

    /// Looks at the next few mappings of this process and their pages, as a read of
    /// `/proc/self/smaps` does. Returns false if this handle's last looks have shown all; then the
    /// next one begins again.
    fn scan(&mut self) -> Result<bool, Error> {
        Err(Error::Unsupported(Call::Scan))
    }

    /// The descriptor of `file`, valid as long as `file` lives; not to be closed.
    fn descriptor(&mut self, _file: &Self::File) -> Result<Descriptor, Error> {
        Err(Error::Unsupported(Call::File))
    }

    /// Opens the file that was made for this task by its name, for reading and writing.
    fn open(&mut self) -> Result<Descriptor, Error> {
        Err(Error::Unsupported(Call::Open))
    }

    fn close(&mut self, _descriptor: Descriptor) -> Result<(), Error> {
        Err(Error::Unsupported(Call::Close))
    }

    /// Locks the first byte of a file for writing; waits until no other task holds the lock.
    fn lock_record(&mut self, _file: Descriptor) -> Result<(), Error> {
        Err(Error::Unsupported(Call::Lock))
    }

    /// Releases that lock.
    fn unlock_record(&mut self, _file: Descriptor) -> Result<(), Error> {
        Err(Error::Unsupported(Call::Lock))
    }

    /// Returns true if the descriptor is writable now; does not wait.
    fn poll_writable(&mut self, _descriptor: Descriptor) -> Result<bool, Error> {
        Err(Error::Unsupported(Call::Poll))
    }

    /// A pipe: the end to read from and the end to write to.
    fn pipe(&mut self) -> Result<[Descriptor; 2], Error> {
        Err(Error::Unsupported(Call::Pipe))
    }

    /// Two connected stream sockets.
    fn socket_pair(&mut self) -> Result<[Descriptor; 2], Error> {
        Err(Error::Unsupported(Call::SocketPair))
    }

    /// Writes to a descriptor, waiting for room; returns how many bytes it took.
    fn write_to(&mut self, _to: Descriptor, _bytes: &[u8]) -> Result<usize, Error> {
        Err(Error::Unsupported(Call::Write))
    }

    /// Reads from a descriptor, waiting for bytes; returns how many there were, 0 at the
    /// end.
    fn read_from(&mut self, _from: Descriptor, _bytes: &mut [u8]) -> Result<usize, Error> {
        Err(Error::Unsupported(Call::Read))
    }

    /// Wakes at most `count` tasks that wait at the mapped word at `address`, of any process;
    /// returns how many there were.
    fn futex_wake(&mut self, _address: usize, _count: u32) -> Result<u32, Error> {
        Err(Error::Unsupported(Call::FutexWake))
    }

    /// Waits at the mapped 32-bit word at `address` until woken, if it holds `value`; returns true
    /// if it waited. May return early.
    fn futex_wait(&mut self, _address: usize, _value: u32) -> Result<bool, Error> {
        Err(Error::Unsupported(Call::FutexWait))
    }

    /// Waits until one of these descriptors, 64 at most, is readable or at its end; returns which,
    /// by index, as bits.
    fn poll_readable(&mut self, _from: &[Descriptor]) -> Result<u64, Error> {
        Err(Error::Unsupported(Call::Poll))
    }

    /// Sets a handler that counts the signals that this task raises.
    fn handle_signals(&mut self) -> Result<(), Error> {
        Err(Error::Unsupported(Call::Handle))
    }

    /// Sends this task a signal; the handler has run when this returns.
    fn raise(&mut self) -> Result<(), Error> {
        Err(Error::Unsupported(Call::Raise))
    }

    /// The number of signals that the handler has seen in this task.
    fn signals(&mut self) -> Result<u64, Error> {
        Err(Error::Unsupported(Call::Raise))
    }

    /// Makes a process that is a copy of this one and only does `then`.
    fn fork(&mut self, _then: Forked) -> Result<Child, Error> {
        Err(Error::Unsupported(Call::Fork))
    }

    /// Waits for the end of a child of this task, which is then forgotten; returns its exit code.
    fn wait(&mut self, _child: Child) -> Result<u8, Error> {
        Err(Error::Unsupported(Call::Wait))
    }

    /// Makes a process that is a copy of this one and runs `program`, on a handle of its own; it
    /// ends with code 0, or another if that fails.
    fn start(&mut self, program: Program<'_, Self::File>) -> Result<Child, Error> {
        Err(Error::Unsupported(match program {
            Program::Compiler { .. } => Call::Exec,
            Program::Mail(_) => Call::Fork,
        }))
    }

    /// The mail server in the process that all tasks' processes are copies of, if the workload has
    /// [`Feature::Family`](crate::Feature::Family).
    fn daemon(&self) -> Option<Daemon> {
        None
    }

    /// This task's number among those that run together, from 0.
    fn number(&self) -> usize {
        0
    }

    /// The number of tasks that run together.
    fn tasks(&self) -> usize {
        1
    }

    /// The number of these that are threads of this one's process, itself included:
    /// all, or just this one.
    fn companions(&self) -> usize {
        1
    }

    /// The ends to read from and to write to of the pipe made for task `task` of those that run
    /// together; all of them have it. Both ends stay open as long as any of them runs; not to be
    /// closed.
    fn pipe_of(&mut self, _task: usize) -> Result<[Descriptor; 2], Error> {
        Err(Error::Unsupported(Call::Common))
    }

    /// The address of memory that all tasks that run together share, one page per task, zero at
    /// first. Not to be unmapped.
    fn common_memory(&mut self) -> Result<usize, Error> {
        Err(Error::Unsupported(Call::Common))
    }

    /// Nanoseconds since some moment.
    fn now(&mut self) -> Result<u64, Error> {
        Err(Error::Unsupported(Call::Sleep))
    }

    /// Sleeps until [`System::now`] would return `time`.
    fn sleep_until(&mut self, _time: u64) -> Result<(), Error> {
        Err(Error::Unsupported(Call::Sleep))
    }

    /// Computes as much as a core of 3 GHz computes in `nanoseconds`.
    fn compute(&mut self, nanoseconds: u64) {
        work(nanoseconds);
    }

    /// The file of `len` bytes that stands for file `number` of a recorded program. Tasks may share
    /// it, and its pages are in memory as far as the system has room for them, as those of programs
    /// and libraries in use are.
    fn recorded_file(&mut self, _number: usize, len: usize) -> Result<Self::File, Error> {
        self.file(len)
    }

    /// Computes for `nanoseconds` of this system's time.
    fn spend(&mut self, nanoseconds: u64) {
        self.compute(nanoseconds);
    }

    /// Starts a part of a recorded program, which ends with code 0 or an error's number.
    fn begin(&mut self, _part: Part<Self::File>, _start: Start) -> Result<Child, Error> {
        Err(Error::Unsupported(Call::Replay))
    }

    /// Forgets the steps that the parts of this task's program have announced.
    fn clear_steps(&mut self) -> Result<(), Error> {
        Err(Error::Unsupported(Call::Replay))
    }

    /// Announces that `part` of this task's program has done its first `steps` steps. All that it
    /// has done happens before a return from [`System::await_steps`] that sees this.
    fn announce_steps(&mut self, _part: u32, _steps: u32) {}

    /// Announces that `part` does no more steps: nobody waits for it from now on.
    fn end_steps(&mut self, part: u32) {
        self.announce_steps(part, u32::MAX);
    }

    /// Waits until `part` has announced `steps` steps.
    fn await_steps(&mut self, _part: u32, _steps: u32) -> Result<(), Error> {
        Err(Error::Unsupported(Call::Replay))
    }

    /// Starts a task of the same kind (process or thread) on this one's CPU. It takes over the two
    /// descriptors (unless this fails), writes each byte that it reads from `from` to `to`, and
    /// ends with code 0 after [`LAST`].
    fn start_echo(&mut self, _from: Descriptor, _to: Descriptor) -> Result<Child, Error> {
        Err(Error::Unsupported(Call::Partner))
    }
}

/// Computes for `nanoseconds` at 3 GHz: dependent steps of a shift, an exclusive or, and a
/// multiplication (3 cycles on all usual cores).
pub fn work(nanoseconds: u64) {
    const CYCLES: u64 = 5;
    let steps = nanoseconds.saturating_mul(3) / CYCLES;
    let number = (0..steps).fold(black_box(1_u64), |number, _| {
        (number ^ (number >> 29)).wrapping_mul(0x5851_f42d_4c95_7f2d)
    });
    black_box(number);
}
