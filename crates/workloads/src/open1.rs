//! open1: open the task's own file by its name, and close it.

use crate::{Counter, Error, Feature, Needs, System, Workload};

pub(crate) const WORKLOAD: Workload = Workload {
    name: "open1",
    description: "Separate file open/close",
    unit: "opens",
    needs: Needs {
        features: &[Feature::Names],
        ..Needs::NOTHING
    },
    size: 0,
    body: crate::Body::Open1,
};

pub(crate) fn run<S: System>(system: &mut S, tick: &Counter) -> Result<(), Error> {
    loop {
        let descriptor = system.open()?;
        system.close(descriptor)?;
        if !tick.add(1) {
            return Ok(());
        }
    }
}
