//! The code of the processes: a loop that serves a slot.
//!
//! Nothing here allocates: the processes are forked from a program that may have other threads, and
//! their heap belongs to the sequence.

use super::access;
use super::area::{Area, Command, Reply, Slot};
use crate::address::PAGE;
use std::io;
use std::os::fd::RawFd;
use std::time::Duration;

/// The interval at which a waiting process checks that the driver is alive.
const LOOK: Duration = Duration::from_millis(500);

/// Sets up the first process, from which all others are forked.
pub fn settle(kept: &[RawFd]) {
    access::install();
    // SAFETY: system calls that take numbers, or a structure on this stack.
    unsafe {
        // The processes of a sequence vanish when they end, orphans as children of the keeper; no
        // one waits for them.
        libc::signal(libc::SIGCHLD, libc::SIG_IGN);
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
        // The driver decides the meaning of an interrupt by the user.
        libc::signal(libc::SIGINT, libc::SIG_IGN);
        libc::signal(libc::SIGTERM, libc::SIG_IGN);
        // Which pages are in memory is defined only without huge pages.
        libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0);
        // Memory that is only executable would get a protection key, where the CPU has them, and
        // could then not be locked: so allocate all keys.
        while libc::syscall(libc::SYS_pkey_alloc, 0, 0) > 0 {}
        // Sets how far memory may grow down, regardless of the shell's limit.
        let mut limit: libc::rlimit = std::mem::zeroed();
        libc::getrlimit(libc::RLIMIT_STACK, &mut limit);
        limit.rlim_cur = limit.rlim_max.min(8 << 20);
        libc::setrlimit(libc::RLIMIT_STACK, &limit);
    }
    close_all_but(kept);
}

/// Closes the driver's other descriptors, which the processes must not keep open.
fn close_all_but(kept: &[RawFd]) {
    let mut from = 3;
    loop {
        let next = kept.iter().copied().filter(|&fd| fd >= from).min();
        let last = next.map_or(u32::MAX, |fd| (fd as u32).wrapping_sub(1));
        if next != Some(from) {
            // SAFETY: this process uses none of these descriptors.
            unsafe { libc::syscall(libc::SYS_close_range, from, last, 0) };
        }
        match next {
            Some(fd) => from = fd + 1,
            None => return,
        }
    }
}

/// Serves slot `index`, and in forked children their slots, until told to exit or until the driver
/// is gone.
pub fn serve(area: &Area, mut index: usize, driver: RawFd) -> ! {
    loop {
        let slot = area.slot(index);
        let command = loop {
            match slot.asked(LOOK) {
                Some(command) => break command,
                None if has_ended(driver) => exit(),
                None => {}
            }
        };
        let reply = match command {
            Command::Call(number, arguments) => Reply::Value(call(number, arguments)),
            Command::Load(address, bytes) => {
                replied(access::load(address, bytes).map(u64::cast_signed))
            }
            Command::Store(address, bytes, value) => {
                // SAFETY: the address belongs to the sequence, and this process does not use it.
                replied(unsafe { access::store(address, bytes, value) }.map(|()| 0))
            }
            Command::Dump(address, pages) => dump(slot, address, pages),
            Command::Fork(child) => {
                // SAFETY: the child continues in this loop, which allocates nothing.
                match unsafe { libc::fork() } {
                    0 => {
                        index = child;
                        continue;
                    }
                    -1 => Reply::Value(-last_errno()),
                    pid => Reply::Value(pid.into()),
                }
            }
            Command::Exit => {
                slot.reply(Reply::Value(0));
                exit();
            }
        };
        slot.reply(reply);
    }
}

/// Copies pages to the slot's buffer, with the signals that reading them raised.
fn dump(slot: &Slot, address: u64, pages: u64) -> Reply {
    for page in 0..pages {
        let at = address.wrapping_add(page * PAGE);
        let page = page as usize;
        // SAFETY: the driver asks for no more pages than the buffer holds, and this process owns
        // the slot until it replies.
        unsafe {
            let to = slot.buffer().add(page * PAGE as usize);
            let copied = access::copy(at, to, PAGE as usize);
            *slot.signals().add(page) = copied.err().unwrap_or(0) as u8;
        }
    }
    Reply::Value(0)
}

fn replied(result: Result<i64, i32>) -> Reply {
    match result {
        Ok(value) => Reply::Value(value),
        Err(signal) => Reply::Signal(signal),
    }
}

fn call(number: i64, a: [u64; 6]) -> i64 {
    // SAFETY: the driver asks only for calls on the sequence's addresses, the slot's buffer, and
    // the heap beyond this process's own.
    let result = unsafe { libc::syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]) };
    match result {
        -1 => -last_errno(),
        result => result,
    }
}

fn last_errno() -> i64 {
    io::Error::last_os_error()
        .raw_os_error()
        .unwrap_or(0)
        .into()
}

/// Returns true if the driver has ended, and with it the only writer of this pipe.
fn has_ended(driver: RawFd) -> bool {
    let mut poll = libc::pollfd {
        fd: driver,
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: the array has one entry, which is valid.
    unsafe { libc::poll(&mut poll, 1, 0) != 0 }
}

fn exit() -> ! {
    // SAFETY: `_exit` ends the process without running any code of the driver's.
    unsafe { libc::_exit(0) }
}
