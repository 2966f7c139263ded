//! signal1: send a signal to the task itself, whose handler counts it.

use crate::{Call, Counter, Error, Feature, Needs, System, Workload};

pub(crate) const WORKLOAD: Workload = Workload {
    name: "signal1",
    description: "signal delivery",
    unit: "signals",
    needs: Needs {
        features: &[Feature::Signals],
        ..Needs::NOTHING
    },
    size: 0,
    body: crate::Body::Signal1,
};

pub(crate) fn run<S: System>(system: &mut S, tick: &Counter) -> Result<(), Error> {
    system.handle_signals()?;
    let mut expected = system.signals()?;
    loop {
        system.raise()?;
        expected += 1;
        let seen = system.signals()?;
        Error::unless(Call::Raise, seen, expected)?;
        if !tick.add(1) {
            return Ok(());
        }
    }
}
