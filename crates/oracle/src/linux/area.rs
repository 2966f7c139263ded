//! Memory that the driver and its processes share, with a slot for each process.
//!
//! A slot is a mailbox for one command. Its state names the owner:
//!
//! - `IDLE`, `DONE`: the driver, which writes the command and reads the reply and the buffer;
//! - `ASKED`: the process, which reads the command and writes the reply and the buffer.
//!
//! The owner hands the slot over with a release store of the state, which pairs with the other
//! side's acquire load; both wait for the state with futexes.

use crate::address::PAGE;
use crate::step::DUMP_PAGES;
use crate::system::Broken;
use std::cell::UnsafeCell;
use std::io;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

const IDLE: u32 = 0;
const ASKED: u32 = 1;
const DONE: u32 = 2;

/// A request to a process.
#[derive(Clone, Copy, Debug)]
pub enum Command {
    /// A system call: number and arguments.
    Call(i64, [u64; 6]),
    /// Read that many bytes at an address.
    Load(u64, u64),
    /// Write the low bytes of a value.
    Store(u64, u64, u64),
    /// Copy whole pages to the buffer.
    Dump(u64, u64),
    /// Fork; the child serves this slot.
    Fork(usize),
    /// End.
    Exit,
}

/// The answer to a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// A value; of a system call, its result or negative errno.
    Value(i64),
    /// The signal that the access raised.
    Signal(i32),
}

/// One process's mailbox.
#[repr(C, align(4096))]
pub struct Slot {
    state: AtomicU32,
    command: UnsafeCell<Command>,
    reply: UnsafeCell<Reply>,
    /// For each page of a dump, the signal that reading it raised, or 0.
    signals: UnsafeCell<[u8; DUMP_PAGES as usize]>,
    buffer: UnsafeCell<[u8; BUFFER]>,
}

/// The size of a slot's buffer in bytes.
pub const BUFFER: usize = (DUMP_PAGES * PAGE) as usize;

// SAFETY: the state names the side that may access the other fields; the other side waits for it to
// change.
unsafe impl Sync for Slot {}

impl Slot {
    /// Prepares the slot for a new process. Called by the driver.
    pub fn reset(&self) {
        self.state.store(IDLE, Ordering::Release);
    }

    /// Sends a command. Called by the driver.
    pub fn ask(&self, command: Command) {
        // SAFETY: the state is IDLE or DONE, so the driver owns the slot.
        unsafe { *self.command.get() = command };
        self.hand_over(ASKED);
    }

    /// Waits for the answer, for at most `patience`. Called by the driver.
    pub fn answer(&self, patience: Duration) -> Option<Reply> {
        if self.becomes(DONE, patience) {
            // SAFETY: DONE was acquired, so the driver owns the slot, and the reply is written.
            Some(unsafe { *self.reply.get() })
        } else {
            None
        }
    }

    /// Waits for the next command, for at most `patience`. Called by the process.
    pub fn asked(&self, patience: Duration) -> Option<Command> {
        if self.becomes(ASKED, patience) {
            // SAFETY: ASKED was acquired, so the process owns the slot, and the command is written.
            Some(unsafe { *self.command.get() })
        } else {
            None
        }
    }

    /// Answers a command. Called by the process.
    pub fn reply(&self, reply: Reply) {
        // SAFETY: the state is ASKED, so the process owns the slot.
        unsafe { *self.reply.get() = reply };
        self.hand_over(DONE);
    }

    /// The buffer's address, the same in all processes. The state names the side that may access
    /// it.
    pub fn buffer(&self) -> *mut u8 {
        self.buffer.get().cast()
    }

    /// The address of a dump's signals. The state names the side that may access them.
    pub fn signals(&self) -> *mut u8 {
        self.signals.get().cast()
    }

    fn hand_over(&self, to: u32) {
        // Release: pairs with the acquire load in `becomes`.
        self.state.store(to, Ordering::Release);
        // SAFETY: the futex word lives as long as `self`.
        unsafe { libc::syscall(libc::SYS_futex, self.state.as_ptr(), libc::FUTEX_WAKE, 1) };
    }

    fn becomes(&self, wanted: u32, patience: Duration) -> bool {
        let patience = libc::timespec {
            tv_sec: patience.as_secs() as libc::time_t,
            tv_nsec: patience.subsec_nanos().into(),
        };
        loop {
            let state = self.state.load(Ordering::Acquire);
            if state == wanted {
                return true;
            }
            let word = self.state.as_ptr();
            // SAFETY: the futex word lives as long as `self`, and the timeout is a valid structure.
            // The call sleeps only while the state is the one read above.
            let woken =
                unsafe { libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAIT, state, &patience) };
            if woken < 0 && io::Error::last_os_error().raw_os_error() == Some(libc::ETIMEDOUT) {
                return self.state.load(Ordering::Acquire) == wanted;
            }
        }
    }
}

/// All slots, in memory that forked processes share.
pub struct Area {
    slots: NonNull<Slot>,
    count: usize,
}

// SAFETY: it owns the mapping, and a `Slot` may be accessed from any thread.
unsafe impl Send for Area {}

impl Area {
    /// An area of `count` slots.
    pub fn new(count: usize) -> Result<Self, Broken> {
        // SAFETY: a new mapping at an address that the kernel chooses replaces no other.
        let start = unsafe {
            libc::mmap(
                ptr::null_mut(),
                count * size_of::<Slot>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        match NonNull::new(start.cast::<Slot>()) {
            Some(slots) if start != libc::MAP_FAILED => {
                let area = Area { slots, count };
                area.clear();
                Ok(area)
            }
            _ => Err(Broken::host("mmap")(io::Error::last_os_error())),
        }
    }

    /// Initialises the slots; the mapping is zeroed.
    fn clear(&self) {
        for index in 0..self.count {
            // SAFETY: within the mapping, to which no other code has a pointer yet; zeroes are
            // valid for the state, the signals and the buffer.
            unsafe {
                let slot = self.slots.add(index).as_ptr();
                (&raw mut (*slot).command).write(UnsafeCell::new(Command::Exit));
                (&raw mut (*slot).reply).write(UnsafeCell::new(Reply::Value(0)));
            }
        }
    }

    /// The slot at `index`.
    pub fn slot(&self, index: usize) -> &Slot {
        assert!(index < self.count);
        // SAFETY: within the mapping, which lives as long as `self`; `clear` has initialised it.
        unsafe { self.slots.add(index).as_ref() }
    }
}

impl Drop for Area {
    fn drop(&mut self) {
        // SAFETY: `new` made this mapping, and no reference into it outlives `self`.
        unsafe { libc::munmap(self.slots.as_ptr().cast(), self.count * size_of::<Slot>()) };
    }
}
