//! exec1: make a process that becomes a small program, and wait for it.
//!
//! It follows lmbench, since will-it-scale has no such workload.

use crate::{Call, Counter, Error, Feature, Forked, Needs, System, Workload};

pub(crate) const WORKLOAD: Workload = Workload {
    name: "exec1",
    description: "fork, exec, exit and wait of a small program",
    unit: "programs",
    needs: Needs {
        features: &[Feature::Fork, Feature::Exec],
        ..Needs::NOTHING
    },
    size: 0,
    body: crate::Body::Exec1,
};

pub(crate) fn run<S: System>(system: &mut S, tick: &Counter) -> Result<(), Error> {
    loop {
        let child = system.fork(Forked::Execs)?;
        let code = system.wait(child)?;
        Error::unless(Call::Exec, u64::from(code), 0)?;
        if !tick.add(1) {
            return Ok(());
        }
    }
}
