//! brk1: move the program break up by one page and back.
//!
//! Threads share one break. Each takes the break it finds as its base and moves between that and
//! one page above, so they undo each other's moves, as in will-it-scale.

use crate::{Counter, Error, Needs, System, Workload};

pub(crate) const WORKLOAD: Workload = Workload {
    name: "brk1",
    description: "brk increase/decrease of one page",
    unit: "brk calls",
    needs: Needs {
        brk: true,
        ..Needs::NOTHING
    },
    size: 0,
    body: crate::Body::Brk1,
};

pub(crate) fn run<S: System>(system: &mut S, tick: &Counter) -> Result<(), Error> {
    let low = system.program_break()?;
    let high = low + system.page_size();
    loop {
        system.set_program_break(high)?;
        system.set_program_break(low)?;
        if !tick.add(2) {
            return Ok(());
        }
    }
}
