//! The sequences that state what calls mean, on a simulated machine.

use super::crew::{Crew, message};
use super::{Ours, PATIENCE};
use crate::sequences::replay;
use crate::vms::profile;
use oracle::outcome::Outcome;
use oracle::text;
use sim::{Options, Sim};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::Instant;
use std::{fs, io};

/// A job that has not ended after an hour of the CPUs' own time counts as one that panicked.
impl Crew for Sim {
    type Machine = Sim;

    fn new(cpus: usize, memory: usize) -> io::Result<Self> {
        Sim::new(Options {
            memory,
            ..Options::new(profile(1, cpus, 1))
        })
    }

    fn machine(&self) -> &Sim {
        self
    }

    fn run<R: Clone + Send + 'static>(
        &self,
        cpu: usize,
        _: Instant,
        job: impl FnOnce() -> R + Send + 'static,
    ) -> Result<R, Outcome> {
        let done = catch_unwind(AssertUnwindSafe(|| self.on_cpu(cpu, job).clone()));
        done.map_err(|panic| Outcome::Crashed(message(panic.as_ref())))
    }
}

#[test]
fn every_sequence_means_the_same() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../oracle/tests/sequences");
    let mut simulated = Ours::<Sim>::of(3, PATIENCE);
    let mut played = 0;
    for file in fs::read_dir(folder).expect("sequences") {
        let path = file.expect("a file").path();
        let name = path.display();
        let steps = fs::read_to_string(&path).expect("a sequence");
        let steps = text::parse(&steps).expect("steps");
        let outcome = replay(&steps, &mut [&mut simulated]).expect("it does not break");
        let outcome = outcome.unwrap_or_else(|found| panic!("{name}:\n{found}"));
        assert_eq!(outcome.left_out, 0, "{name}");
        played += 1;
    }
    assert!(played >= 32, "{played}");
}
