//! desktop: a process of many threads that wake each other for every event, like a browser or a
//! player (the third analysis of case study 003).
//!
//! Tasks come in pairs. For each event a task writes to its neighbour's pipe, polls and reads its
//! own, tells the neighbour by a futex and waits for the same, then maps a small buffer, fills and
//! unmaps it. So each event has two meetings, and at each the first task to come sleeps. A task
//! without a neighbour, or whose neighbour has stopped, meets itself, and does not sleep.

use crate::steps::{send, with_mapping};
use crate::{Backing, Call, Counter, Descriptor, Error, Feature, Needs, System, Workload};

pub(crate) const WORKLOAD: Workload = Workload {
    name: "desktop",
    description: "Events of a multi-threaded desktop program",
    unit: "events",
    needs: Needs {
        memory: BUFFER,
        features: &[
            Feature::Pipes,
            Feature::Poll,
            Feature::Futexes,
            Feature::Neighbours,
        ],
        ..Needs::NOTHING
    },
    size: 0,
    body: crate::Body::Desktop,
};

/// Bytes of the buffer of an event: 64 KiB.
const BUFFER: usize = 64 << 10;
/// The byte and the word that say that a task has stopped; events have lower numbers.
const GONE: u8 = u8::MAX;

pub(crate) fn run<S: System>(system: &mut S, tick: &Counter) -> Result<(), Error> {
    let mut desk = Desk::new(system)?;
    let done = desk.handle_events(system, tick);
    let told = desk.leave(system);
    done?; // the first error is the cause
    told
}

/// A task's end of the objects that it shares with its neighbour.
struct Desk {
    /// The end of its own pipe from which it reads.
    from: Descriptor,
    word: usize,
    /// The end to write to, and the word, of the task it meets.
    to: Descriptor,
    their_word: usize,
    /// True if it meets itself.
    is_alone: bool,
}

impl Desk {
    fn new<S: System>(system: &mut S) -> Result<Self, Error> {
        let number = system.number();
        let neighbour = number ^ 1;
        let neighbour = if neighbour < system.tasks() {
            neighbour
        } else {
            number
        };
        let (page, memory) = (system.page_size(), system.common_memory()?);
        let [from, own] = system.pipe_of(number)?;
        let to = if neighbour == number {
            own
        } else {
            system.pipe_of(neighbour)?[1]
        };
        Ok(Desk {
            from,
            word: memory + number * page,
            to,
            their_word: memory + neighbour * page,
            is_alone: neighbour == number,
        })
    }

    fn handle_events<S: System>(&mut self, system: &mut S, tick: &Counter) -> Result<(), Error> {
        let mut event = 0;
        loop {
            event = event % (GONE - 1) + 1;
            self.exchange(system, event)?;
            self.meet(system, event)?;
            draw(system, event)?;
            if !tick.add(1) {
                return Ok(());
            }
        }
    }

    /// Sends an event and receives one.
    fn exchange<S: System>(&mut self, system: &mut S, event: u8) -> Result<(), Error> {
        send(system, self.to, event)?;
        let ready = system.poll_readable(&[self.from])?;
        Error::unless(Call::Poll, ready, 1)?;
        let mut byte = [0];
        let length = system.read_from(self.from, &mut byte)?;
        Error::unless(Call::Read, length as u64, 1)?;
        match byte[0] {
            GONE if !self.is_alone => self.stay_alone(system),
            byte => Error::unless(Call::Read, u64::from(byte), u64::from(event)),
        }
    }

    /// Continues without the neighbour, which has stopped.
    fn stay_alone<S: System>(&mut self, system: &mut S) -> Result<(), Error> {
        let [_, own] = system.pipe_of(system.number())?;
        (self.to, self.their_word, self.is_alone) = (own, self.word, true);
        Ok(())
    }

    /// Tells the other task that this one has come to `event`, and waits until the other has.
    fn meet<S: System>(&self, system: &mut S, event: u8) -> Result<(), Error> {
        system.write(self.their_word, event)?;
        system.futex_wake(self.their_word, 1)?;
        loop {
            match system.read(self.word)? {
                there if there == event || there == GONE => return Ok(()),
                before => system.futex_wait(self.word, before.into())?,
            };
        }
    }

    /// Tells the neighbour to continue alone, if it goes on.
    fn leave<S: System>(self, system: &mut S) -> Result<(), Error> {
        if self.is_alone {
            return Ok(());
        }
        let sent = send(system, self.to, GONE);
        let written = system.write(self.their_word, GONE);
        let woken = system.futex_wake(self.their_word, 1);
        sent.and(written).and(woken.map(drop))
    }
}

/// Maps a buffer, fills it and unmaps it.
fn draw<S: System>(system: &mut S, event: u8) -> Result<(), Error> {
    let page = system.page_size();
    with_mapping(system, BUFFER, Backing::Anonymous, |system, start| {
        (start..start + BUFFER)
            .step_by(page)
            .try_for_each(|address| system.write(address, event))
    })
}
