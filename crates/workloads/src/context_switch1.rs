//! context_switch1: send a byte to a partner through one pipe and wait for it to come back through
//! another.
//!
//! The partner runs on the task's CPU, so each round trip is two switches; both count.

use crate::steps::{expect, send};
use crate::system::LAST;
use crate::{Call, Child, Counter, Descriptor, Error, Feature, Needs, System, Workload};

pub(crate) const WORKLOAD: Workload = Workload {
    name: "context_switch1",
    description: "Context switch via pipes",
    unit: "context switches",
    needs: Needs {
        features: &[Feature::Pipes, Feature::Partners],
        ..Needs::NOTHING
    },
    size: 0,
    body: crate::Body::ContextSwitch1,
};

pub(crate) fn run<S: System>(system: &mut S, tick: &Counter) -> Result<(), Error> {
    let mut pair = Pair::start(system)?;
    let played = pair.play(system, tick);
    let ended = pair.end(system);
    played?; // the first error is the cause
    ended
}

/// A partner, and the ends of the pipes that lead back and forthm it.
struct Pair {
    partner: Child,
    to: Descriptor,
    from: Descriptor,
}

impl Pair {
    fn start<S: System>(system: &mut S) -> Result<Self, Error> {
        let [theirs, to] = system.pipe()?;
        let [from, answers] = system
            .pipe()
            .map_err(|error| closing(system, &[theirs, to], error))?;
        let partner = system
            .start_echo(theirs, answers)
            .map_err(|error| closing(system, &[theirs, to, from, answers], error))?;
        Ok(Pair { partner, to, from })
    }

    fn play<S: System>(&mut self, system: &mut S, tick: &Counter) -> Result<(), Error> {
        let mut byte = LAST;
        loop {
            byte = byte.wrapping_add(1);
            if byte == LAST {
                byte += 1;
            }
            send(system, self.to, byte)?;
            expect(system, self.from, byte)?;
            if !tick.add(2) {
                return Ok(());
            }
        }
    }

    /// Sends the partner away and waits until it has ended.
    fn end<S: System>(self, system: &mut S) -> Result<(), Error> {
        let told = send(system, self.to, LAST);
        let closed = system.close(self.to); // a partner that was not told sees the end
        let code = system.wait(self.partner);
        let closed = closed.and(system.close(self.from));
        told?;
        Error::unless(Call::Partner, u64::from(code?), 0)?;
        closed
    }
}

/// Closes `ends`, which were opened before `error`, and returns `error`.
fn closing<S: System>(system: &mut S, ends: &[Descriptor], error: Error) -> Error {
    for &end in ends {
        // The first failure is the one to report.
        let _ = system.close(end);
    }
    error
}
