//! unix1: write a byte to one of the task's own two sockets and read it from the other.

use crate::steps::{pass_bytes, with_ends};
use crate::{Counter, Error, Feature, Needs, System, Workload};

pub(crate) const WORKLOAD: Workload = Workload {
    name: "unix1",
    description: "unix domain socket read/write",
    unit: "round trips",
    needs: Needs {
        features: &[Feature::Sockets],
        ..Needs::NOTHING
    },
    size: 0,
    body: crate::Body::Unix1,
};

pub(crate) fn run<S: System>(system: &mut S, tick: &Counter) -> Result<(), Error> {
    let ends = system.socket_pair()?;
    with_ends(system, ends, |system, ends| pass_bytes(system, tick, ends))
}
