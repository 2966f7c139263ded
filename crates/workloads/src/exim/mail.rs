//! The processes of a connection.

use super::memory::Role;
use super::{Daemon, MESSAGES, fitted};
use crate::steps::{expect_byte, fill, with_mapping};
use crate::unit::Unit;
use crate::{Backing, Call, Counter, Error, Program, System};

/// Nanoseconds of computing in each of a message's three processes; their accesses take some, too.
const COMPUTING: u64 = 145_000 / 3;
/// Bytes by which a process moves the program break (glibc's step), and pages of them that a
/// connection and a delivery write.
const GROWTH: usize = 132 << 10;
const CONNECTION_GROWN: usize = fitted(11);
const DELIVERY_GROWN: usize = 1;
/// Bytes written to a spool file.
const SPOOLED: usize = 640;
/// Bytes of a buffer through which a spool file is read.
const BUFFER: usize = 4096;
/// Bytes of a message in the mailbox, and of the mailbox; when that is full it begins anew.
const ENTRY: usize = 384;
pub(super) const MAILBOX: usize = 32 << 10;
/// The most bytes of files that a task has.
pub(super) const FILES: usize = MAILBOX + SPOOLED.next_multiple_of(4096);

/// The work of a process of the mail server.
#[derive(Debug)]
pub struct Mail<'a, F> {
    daemon: Daemon,
    message: Unit,
    mailbox: &'a F,
    step: Step<'a, F>,
}

#[derive(Debug)]
enum Step<'a, F> {
    /// Receive messages, and count each that is delivered.
    Connection(u64, &'a Counter),
    /// Have the message in this file delivered.
    Delivery(&'a F),
    /// Deliver the message in this file.
    Transport(&'a F),
}

impl<'a, F> Mail<'a, F> {
    /// A connection that brings `messages` messages from `first` on, or fewer if `tick` is to stop.
    pub(super) fn connection(
        daemon: Daemon,
        first: Unit,
        messages: u64,
        mailbox: &'a F,
        tick: &'a Counter,
    ) -> Self {
        Mail {
            daemon,
            message: first,
            mailbox,
            step: Step::Connection(messages, tick),
        }
    }

    /// Runs the process until it ends. Its exit removes what it maps.
    ///
    /// # Errors
    /// The first call that fails, or page with wrong content.
    pub fn run<S: System<File = F>>(&self, system: &mut S) -> Result<(), Error> {
        match self.step {
            Step::Connection(messages, tick) => self.receive(system, messages, tick),
            Step::Delivery(spool) => self.deliver(system, spool),
            Step::Transport(spool) => self.append(system, spool),
        }
    }

    fn receive<S: System<File = F>>(
        &self,
        system: &mut S,
        messages: u64,
        tick: &Counter,
    ) -> Result<(), Error> {
        grow(system, self.daemon.program_break, CONNECTION_GROWN)?;
        let mut last = None;
        for number in 0..messages {
            let message = self.message.plus(number);
            let role = Role::Connection;
            role.work(system, &self.daemon, message, last)?;
            compute(system, message, role);
            let spool = system.file(BUFFER)?;
            let bytes = [message.output(0); SPOOLED];
            let written = system.write_file(&spool, 0, &bytes)?;
            Error::unless(Call::Write, written as u64, SPOOLED as u64)?;
            self.have(system, message, Step::Delivery(&spool))?;
            last = Some(message);
            if !tick.add(1) {
                break;
            }
        }
        Ok(())
    }

    fn deliver<S: System<File = F>>(&self, system: &mut S, spool: &F) -> Result<(), Error> {
        with_mapping(system, BUFFER, Backing::Anonymous, |system, buffer| {
            let byte = self.read_spool(system, spool)?;
            system.write(buffer, byte)?;
            expect_byte(system, buffer, byte)
        })?;
        grow(system, self.daemon.program_break + GROWTH, DELIVERY_GROWN)?;
        let role = Role::Delivery;
        role.work(system, &self.daemon, self.message, None)?;
        compute(system, self.message, role);
        self.have(system, self.message, Step::Transport(spool))
    }

    fn append<S: System<File = F>>(&self, system: &mut S, spool: &F) -> Result<(), Error> {
        let role = Role::Transport;
        role.work(system, &self.daemon, self.message, None)?;
        compute(system, self.message, role);
        let entry = [self.read_spool(system, spool)?; ENTRY];
        let written = system.write_file(self.mailbox, place(self.message), &entry)?;
        Error::unless(Call::Write, written as u64, ENTRY as u64)
    }

    /// Reads the spool file; all its bytes must be of this message.
    fn read_spool<S: System<File = F>>(&self, system: &mut S, spool: &F) -> Result<u8, Error> {
        expect_file(system, spool, 0, [0; SPOOLED], self.message)
    }

    /// Has a child do the next step.
    fn have<S: System<File = F>>(
        &self,
        system: &mut S,
        message: Unit,
        step: Step<'_, F>,
    ) -> Result<(), Error> {
        let child = system.start(Program::Mail(Mail {
            daemon: self.daemon,
            message,
            mailbox: self.mailbox,
            step,
        }))?;
        let code = system.wait(child)?;
        Error::unless(Call::Wait, u64::from(code), 0)
    }
}

/// Checks that `message` is in its place in the mailbox.
pub(super) fn expect_delivered<S: System>(
    system: &mut S,
    message: Unit,
    mailbox: &S::File,
) -> Result<(), Error> {
    expect_file(system, mailbox, place(message), [0; ENTRY], message).map(|_| ())
}

/// Reads as many bytes as `buffer` has; all must be of `message`.
fn expect_file<S: System, const LEN: usize>(
    system: &mut S,
    file: &S::File,
    at: u64,
    mut buffer: [u8; LEN],
    message: Unit,
) -> Result<u8, Error> {
    let length = system.read_file(file, at, &mut buffer)?;
    Error::unless(Call::Read, length as u64, LEN as u64)?;
    let expected = message.output(0);
    let other = buffer.into_iter().find(|&byte| byte != expected);
    Error::unless(
        Call::Read,
        u64::from(other.unwrap_or(expected)),
        u64::from(expected),
    )?;
    Ok(expected)
}

/// The position of a message in the mailbox.
fn place(message: Unit) -> u64 {
    message.number() % (MAILBOX / ENTRY) as u64 * ENTRY as u64
}

/// Moves the program break, which is at `from`, and writes the first pages.
fn grow<S: System>(system: &mut S, from: usize, pages: usize) -> Result<(), Error> {
    system.set_program_break(from + GROWTH)?;
    fill(system, from, pages, super::memory::NEW)
}

fn compute<S: System>(system: &mut S, message: Unit, role: Role) {
    let what = MESSAGES + role as u64; // apart from those that make bytes
    system.compute(message.vary(COMPUTING, what));
}
