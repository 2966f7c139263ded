//! What runs in the processes: a loop that does what its slot asks for.
//!
//! Nothing here allocates: the processes are forked off a program that may have other
//! threads, and their heap is the sequence's to move.

use super::access;
use super::area::{Area, Command, Reply};
use crate::address::PAGE;
use std::io;
use std::os::fd::RawFd;
use std::time::Duration;

/// How often a process that waits looks whether the driver is still there.
const LOOK: Duration = Duration::from_millis(500);

/// Sets up the first process, the keeper of all others.
pub fn settle(kept: &[RawFd]) {
    access::install();
    // SAFETY: plain system calls.
    unsafe {
        // Nobody waits for the processes of a sequence: they vanish when they end, orphans
        // as children of the keeper.
        libc::signal(libc::SIGCHLD, libc::SIG_IGN);
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
        // The driver decides when the user interrupts.
        libc::signal(libc::SIGINT, libc::SIG_IGN);
        libc::signal(libc::SIGTERM, libc::SIG_IGN);
        // What is in memory is defined only without them.
        libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0);
        // Memory that can only be executed would have one of them, where the CPU has any, and
        // could not be locked: so there is none left.
        while libc::syscall(libc::SYS_pkey_alloc, 0, 0) > 0 {}
        // How far memory grows down, whatever the user's shell says.
        let mut limit: libc::rlimit = std::mem::zeroed();
        libc::getrlimit(libc::RLIMIT_STACK, &mut limit);
        limit.rlim_cur = limit.rlim_max.min(8 << 20);
        libc::setrlimit(libc::RLIMIT_STACK, &limit);
    }
    close_all_but(kept);
}

/// Other descriptors of the driver's are not the processes' to keep open.
fn close_all_but(kept: &[RawFd]) {
    let mut from = 3;
    loop {
        let next = kept.iter().copied().filter(|&fd| fd >= from).min();
        let last = next.map_or(u32::MAX, |fd| (fd as u32).wrapping_sub(1));
        if next != Some(from) {
            // SAFETY: this process uses none of them.
            unsafe { libc::syscall(libc::SYS_close_range, from, last, 0) };
        }
        match next {
            Some(fd) => from = fd + 1,
            None => return,
        }
    }
}

/// Serves slot `index`, and those of the children it makes, until it is told to exit or the
/// driver is gone.
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
                // SAFETY: an address of the sequence's, which this process does not use.
                replied(unsafe { access::store(address, bytes, value) }.map(|()| 0))
            }
            Command::Dump(address, pages) => {
                for page in 0..pages {
                    let at = address.wrapping_add(page * PAGE);
                    let page = page as usize;
                    // SAFETY: the driver asks for no more pages than the buffer has, and
                    // the slot is this process's until it replies.
                    unsafe {
                        let to = slot.buffer().add(page * PAGE as usize);
                        let copied = access::copy(at, to, PAGE as usize);
                        *slot.signals().add(page) = copied.err().unwrap_or(0) as u8;
                    }
                }
                Reply::Value(0)
            }
            Command::Fork(child) => {
                // SAFETY: the child goes on in this loop, and allocates nothing.
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

fn replied(result: Result<i64, i32>) -> Reply {
    match result {
        Ok(value) => Reply::Value(value),
        Err(signal) => Reply::Signal(signal),
    }
}

fn call(number: i64, a: [u64; 6]) -> i64 {
    // SAFETY: the driver asks for calls on the sequence's addresses, on the slot's buffer, and
    // on the heap behind what this process has of it.
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

/// Whether the process that the descriptor names has ended.
fn has_ended(process: RawFd) -> bool {
    let mut poll = libc::pollfd {
        fd: process,
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: one valid entry.
    unsafe { libc::poll(&mut poll, 1, 0) != 0 }
}

fn exit() -> ! {
    // SAFETY: ends the process without running anything of the driver's.
    unsafe { libc::_exit(0) }
}
