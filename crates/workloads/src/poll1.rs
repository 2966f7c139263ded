//! poll1: ask if the task's own file is writable, which it always is.

use crate::{Call, Counter, Error, Feature, Needs, System, Workload};

pub(crate) const WORKLOAD: Workload = Workload {
    name: "poll1",
    description: "poll of 1 fd",
    unit: "polls",
    needs: Needs {
        files: true,
        features: &[Feature::Poll],
        ..Needs::NOTHING
    },
    size: 0,
    body: crate::Body::Poll1,
};

pub(crate) fn run<S: System>(system: &mut S, tick: &Counter) -> Result<(), Error> {
    let file = system.file(0)?;
    let descriptor = system.descriptor(&file)?;
    loop {
        let ready = system.poll_writable(descriptor)?;
        Error::unless(Call::Poll, u64::from(ready), 1)?;
        if !tick.add(1) {
            return Ok(());
        }
    }
}
