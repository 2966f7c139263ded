//! Memory that the driver and its processes share, with one slot for each of them.
//!
//! A slot is a mailbox of one command. Its state says whose it is:
//!
//! - `IDLE`, `DONE`: the driver's; it writes the command, reads the reply and the buffer;
//! - `ASKED`: the process's; it reads the command and writes reply and buffer.
//!
//! Each hands it over with a release store of the state, which the other's acquire load sees;
//! both wait on it with futexes.

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

/// What a process is asked to do.
#[derive(Clone, Copy, Debug)]
pub enum Command {
    /// A system call: number and arguments.
    Call(i64, [u64; 6]),
    /// Read so many bytes at an address.
    Load(u64, u64),
    /// Write the low bytes of a value.
    Store(u64, u64, u64),
    /// Copy whole pages to the buffer.
    Dump(u64, u64),
    /// Fork; the child takes this slot.
    Fork(usize),
    /// End.
    Exit,
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// A value; of a system call, or its negative errno.
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
    /// For each page of a dump the signal that reading it raised, or 0.
    signals: UnsafeCell<[u8; DUMP_PAGES as usize]>,
    buffer: UnsafeCell<[u8; BUFFER]>,
}

/// Bytes of a slot's buffer.
pub const BUFFER: usize = (DUMP_PAGES * PAGE) as usize;

// SAFETY: the state says who may touch the rest, see the module.
unsafe impl Sync for Slot {}

impl Slot {
    /// By the driver: a new process is about to take the slot.
    pub fn reset(&self) {
        self.state.store(IDLE, Ordering::Release);
    }

    /// By the driver: asks.
    pub fn ask(&self, command: Command) {
        // SAFETY: the state is IDLE or DONE, so the slot is the driver's.
        unsafe { *self.command.get() = command };
        self.hand_over(ASKED);
    }

    /// By the driver: the answer, if it comes within `patience`.
    pub fn answer(&self, patience: Duration) -> Option<Reply> {
        match self.becomes(DONE, patience) {
            // SAFETY: DONE was acquired, so the slot is the driver's, and the reply written.
            true => Some(unsafe { *self.reply.get() }),
            false => None,
        }
    }

    /// By the process: the next command, if it comes within `patience`.
    pub fn asked(&self, patience: Duration) -> Option<Command> {
        match self.becomes(ASKED, patience) {
            // SAFETY: ASKED was acquired, so the slot is the process's, the command written.
            true => Some(unsafe { *self.command.get() }),
            false => None,
        }
    }

    /// By the process: answers.
    pub fn reply(&self, reply: Reply) {
        // SAFETY: the state is ASKED, so the slot is the process's.
        unsafe { *self.reply.get() = reply };
        self.hand_over(DONE);
    }

    /// The buffer's address, in all processes the same. Whose it is says the state.
    pub fn buffer(&self) -> *mut u8 {
        self.buffer.get().cast()
    }

    /// Where the signals of a dump are. Whose they are says the state.
    pub fn signals(&self) -> *mut u8 {
        self.signals.get().cast()
    }

    fn hand_over(&self, to: u32) {
        // Pairs with the acquire load in `becomes`.
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
            // SAFETY: the futex word lives as long as `self`; the time is valid. Sleeps only
            // if the state is still the one that was read.
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

// SAFETY: it owns the mapping, and `Slot` has no thread affinity.
unsafe impl Send for Area {}

impl Area {
    /// So many slots.
    pub fn new(count: usize) -> Result<Self, Broken> {
        // SAFETY: a new mapping at an address of the kernel's choice.
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

    /// Makes slots of the zeroes that the mapping is.
    fn clear(&self) {
        for index in 0..self.count {
            // SAFETY: within the mapping, which nobody else knows yet; zeroes are valid for
            // the state, the signals and the buffer.
            unsafe {
                let slot = self.slots.add(index).as_ptr();
                (&raw mut (*slot).command).write(UnsafeCell::new(Command::Exit));
                (&raw mut (*slot).reply).write(UnsafeCell::new(Reply::Value(0)));
            }
        }
    }

    /// One of them.
    pub fn slot(&self, index: usize) -> &Slot {
        assert!(index < self.count);
        // SAFETY: within the mapping, which lives as long as `self`; `clear` has made it.
        unsafe { self.slots.add(index).as_ref() }
    }
}

impl Drop for Area {
    fn drop(&mut self) {
        // SAFETY: the mapping of `new`, to which no reference is left.
        unsafe { libc::munmap(self.slots.as_ptr().cast(), self.count * size_of::<Slot>()) };
    }
}
