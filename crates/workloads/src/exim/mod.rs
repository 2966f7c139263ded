//! exim: receive and deliver mail, as the mail server of MOSBENCH does.
//!
//! A task is one client's share of the server. The daemon, which all processes descend from, forks
//! a process for each connection; that one receives ten messages, writes each to a spool file, and forks a process
//! that delivers it, which forks one more that appends it to the mailbox. All of them go on in
//! their copy of the daemon's memory; nobody calls `exec`. Each waits for its child, so that one
//! process of a task runs at a time; the next one's work looks whether the memory is as it must be.
//!
//! Not of will-it-scale: what seed 004 measures (Boyd-Wickizer et al., An analysis of Linux
//! scalability to many cores, 2010; exim 4.71 with `deliver_drop_privilege` and ten messages a
//! connection). What is missing: sockets, names of files and their directories, and looking up names in tables.
//!
//! # Sizes
//! Exim 4.96 of Debian 12 with MOSBENCH's configuration, seen by the tracepoints of page faults,
//! `strace -f` and a sample each millisecond. A connection takes 49 faults a message, all but a few of them copies of
//! pages that the last fork has made read-only; its delivery 152, of which 84 are copies and 67 reads of programs;
//! the transport 184, 103 and 80. Outside of the kernel a message takes 0.8 ms (19 % of its time), which
//! is here a third for each process. Of 4.96's 28 libraries there are 8, about as many as 4.71 had. What the allocators of
//! 2010 did, one `brk`, `mmap` and `munmap` a message, is of MOSBENCH's own count.

mod daemon;
mod mail;
mod memory;

pub use daemon::Daemon;
pub use mail::Mail;

use crate::unit::Unit;
use crate::{Call, Counter, Error, Feature, Needs, Program, System, Workload};

/// Messages of a connection.
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
