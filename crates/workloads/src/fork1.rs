//! fork1: make a process that ends at once, and wait for it.
//!
//! It follows lmbench, since will-it-scale has no such workload.

use crate::{Call, Counter, Error, Feature, Forked, Needs, System, Workload};

/// Not 0, so that the code is recognizably the child's.
const CODE: u8 = 7;

pub(crate) const WORKLOAD: Workload = Workload {
    name: "fork1",
    description: "fork, exit and wait of a process",
    unit: "processes",
    needs: Needs {
        features: &[Feature::Fork],
        ..Needs::NOTHING
    },
    size: 0,
    body: crate::Body::Fork1,
};

pub(crate) fn run<S: System>(system: &mut S, tick: &Counter) -> Result<(), Error> {
    loop {
        let child = system.fork(Forked::Exits(CODE))?;
        let code = system.wait(child)?;
        Error::unless(Call::Wait, u64::from(code), u64::from(CODE))?;
        if !tick.add(1) {
            return Ok(());
        }
    }
}
