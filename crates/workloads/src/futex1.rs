//! futex1: wake the waiters at a word of the task's own, which has none.
//!
//! The kernel still looks the page up and locks the word's hash bucket.

use crate::steps::with_mapping;
use crate::{Backing, Call, Counter, Error, Feature, Needs, System, Workload};

pub(crate) const WORKLOAD: Workload = Workload {
    name: "futex1",
    description: "futex(FUTEX_WAKE)",
    unit: "wake-ups",
    needs: Needs {
        features: &[Feature::Futexes],
        ..Needs::NOTHING
    },
    size: 0,
    body: crate::Body::Futex1,
};

pub(crate) fn run<S: System>(system: &mut S, tick: &Counter) -> Result<(), Error> {
    let page = system.page_size();
    with_mapping(system, page, Backing::Anonymous, |system, word| {
        loop {
            system.write(word, 0)?;
            let woken = system.futex_wake(word, 1)?;
            Error::unless(Call::FutexWake, u64::from(woken), 0)?;
            if !tick.add(1) {
                return Ok(());
            }
        }
    })
}
