//! pipe1: write a byte to the task's own pipe and read it back, without ever waiting.

use crate::steps::{pass_bytes, with_ends};
use crate::{Counter, Error, Feature, Needs, System, Workload};

pub(crate) const WORKLOAD: Workload = Workload {
    name: "pipe1",
    description: "pipe read/write",
    unit: "round trips",
    needs: Needs {
        features: &[Feature::Pipes],
        ..Needs::NOTHING
    },
    size: 0,
    body: crate::Body::Pipe1,
};

pub(crate) fn run<S: System>(system: &mut S, tick: &Counter) -> Result<(), Error> {
    let ends = system.pipe()?;
    with_ends(system, ends, |system, ends| pass_bytes(system, tick, ends))
}
