//! exim: receive and deliver mail, as the mail server of MOSBENCH does.
//!
//! A task is one client's share of the server. The daemon, from which all processes descend, forks
//! a process for each connection; that one receives ten messages, writes each to a spool file, and
//! forks a process that delivers it, which forks one more that appends it to the mailbox. All of
//! them continue in their copy of the daemon's memory; none calls `exec`. Each waits for its child,
//! so that one process of a task runs at a time; the next one's work checks the memory.
//!
//! It is not from will-it-scale: case study 004 measures it (Boyd-Wickizer et al., An analysis of
//! Linux scalability to many cores, 2010; exim 4.71 with `deliver_drop_privilege` and ten messages
//! per connection). Missing are sockets, file names and their directories, and look-ups of names in
//! tables.
//!
//! # Sizes
//! A message takes 1.156 M cycles at one CPU (Boyd-Wickizer et al., Non-scalable locks are
//! dangerous, 2012), 0.48 ms at 2.4 GHz, 69 % of them in the kernel (An analysis of Linux
//! scalability to many cores; both quoted from memory, not re-checked). Two numbers are chosen so
//! that it does here, on `opteron-48` with `linux-2.6.39`: the nanoseconds of computing, and the
//! part of its pages that a process touches. Which pages is measured on Exim 4.96 of Debian 12 with
//! MOSBENCH's configuration, by the tracepoints of page faults and `strace -f`: there a connection
//! takes 54 faults per message, 49 of them copies of pages that the last fork has made read-only;
//! its delivery 152, including 84 copies and 67 reads of programs; the transport 184, 103 and 80.
//! Of 4.96's 28 libraries there are 8, about as many as 4.71 had. The calls of 2010's allocators,
//! one `brk`, `mmap` and `munmap` per message, are MOSBENCH's own count. Two forks and three exits
//! take most of the time in the kernel.

mod daemon;
mod mail;
mod memory;

pub use daemon::Daemon;
pub use mail::Mail;

use crate::unit::Unit;
use crate::{Call, Counter, Error, Feature, Needs, Program, System, Workload};

/// The part of 4.96's pages that is touched, in percent.
const FITTED: usize = 27;

/// The part of `pages` pages, touched by 4.96, that is touched here.
const fn fitted(pages: usize) -> usize {
    (pages * FITTED).div_ceil(100)
}

/// Messages per connection.
const MESSAGES: u64 = 10;

pub(crate) const WORKLOAD: Workload = Workload {
    name: "exim",
    description: "Mail server: a process per connection, two forks and two small files a message",
    unit: "messages",
    needs: Needs {
        files: true,
        brk: true,
        protect: true,
        discard: false,
        memory: daemon::MEMORY + memory::COPIED + mail::FILES,
        features: &[Feature::Family],
    },
    size: 0,
    body: crate::Body::Exim,
};

pub(crate) fn run<S: System>(system: &mut S, tick: &Counter) -> Result<(), Error> {
    let daemon = system.daemon().ok_or(Error::Unsupported(Call::Fork))?;
    let mailbox = system.file(mail::MAILBOX)?;
    let mut next = Unit::first_of(system.number());
    loop {
        let before = tick.get();
        let connection = Mail::connection(daemon, next, MESSAGES, &mailbox, tick);
        let connection = system.start(Program::Mail(connection))?;
        let code = system.wait(connection)?;
        Error::unless(Call::Wait, u64::from(code), 0)?;
        next = next.plus(tick.get() - before);
        mail::expect_delivered(system, next.minus(1), &mailbox)?;
        if !tick.add(0) {
            return Ok(());
        }
    }
}
