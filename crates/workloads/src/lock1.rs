//! lock1: lock and unlock a byte of the task's own file.
//!
//! Record locks of `fcntl`, not `flock`. Slides about ticket locks call the workload by that name:
//! the structure that `fcntl` takes is called `flock`.

use crate::{Counter, Error, Feature, Needs, System, Workload};

pub(crate) const WORKLOAD: Workload = Workload {
    name: "lock1",
    description: "Separate file write lock/unlock",
    unit: "locks and unlocks",
    needs: Needs {
        files: true,
        features: &[Feature::RecordLocks],
        ..Needs::NOTHING
    },
    size: 0,
    body: crate::Body::Lock1,
};

pub(crate) fn run<S: System>(system: &mut S, tick: &Counter) -> Result<(), Error> {
    let file = system.file(0)?;
    let descriptor = system.descriptor(&file)?;
    loop {
        system.lock_record(descriptor)?;
        system.unlock_record(descriptor)?;
        if !tick.add(2) {
            return Ok(());
        }
    }
}
