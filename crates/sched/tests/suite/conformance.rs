//! The contract's own check of contexts, by way of this scheduler.

use crate::support;

use machine::{Execute, conformance};
use sched::Best;
use sim::Sim;
use support::{machine, quiet, with_delays};

#[test]
fn contexts() {
    for options in [
        quiet(4, 0),
        with_delays(4, 1),
        with_delays(4, 2),
        with_delays(4, 3),
    ] {
        let machine = machine::<Best<Sim>>(options);
        let run = |jobs| machine.execute(jobs);
        conformance::outnumber::<Sim>(&run);
        let compute = |time| sim::compute(time as f64);
        conformance::pins::<Sim>(&run, compute, compute);
        conformance::wake_ups::<Sim>(&run);
    }
}
