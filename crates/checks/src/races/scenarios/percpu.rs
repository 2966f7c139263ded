//! Per-CPU words: a pin keeps a task on its CPU, and other tasks off it.

use super::pause;
use crate::races::play::{Play, Scenario, Stage};
use machine::{Atomics, Cpus, SharedCell, Topology};
use sim::{Pin, Sim};
use sync::PerCpu;

/// Counts of each job.
const ROUNDS: u64 = 24;

/// A plain word for each CPU.
type Words = PerCpu<<Sim as Atomics>::Cell<u64>, Sim>;

/// How a task adds to its CPU's word.
pub trait Count: Send + Sync + 'static {
    /// What is kept while the word is written: the pin or nothing.
    type Kept;

    /// Keeps the pin until the word is written, in the sound version.
    fn keep(pin: Pin) -> Self::Kept;
}

/// The pin is held from load to store.
pub enum Pinned {}

impl Count for Pinned {
    type Kept = Pin;

    fn keep(pin: Pin) -> Pin {
        pin
    }
}

/// The sound count.
pub fn all() -> Vec<Scenario> {
    vec![named::<Pinned>("percpu.count")]
}

/// A scenario in which jobs count in their CPU's word, as `C` does.
pub fn named<C: Count>(name: &str) -> Scenario {
    Scenario::new(name, build::<C>).on(2..=6)
}

fn build<C: Count>(stage: &Stage) -> Play {
    let words: Words = PerCpu::new(stage.machine.cpus(), |_| SharedCell::new(0));
    let total = ROUNDS * stage.jobs as u64;
    Play::new(stage, words, job::<C>, move |words| {
        // SAFETY: all other jobs have ended.
        let counted = words.iter().map(|word| unsafe { *word.read() });
        assert_eq!(counted.sum::<u64>(), total, "counts were lost");
    })
}

fn job<C: Count>(words: &Words, _job: usize) {
    for _ in 0..ROUNDS {
        let pin = Sim::pin();
        let word = words.get(&pin);
        let kept = C::keep(pin);
        // SAFETY: the machine runs one CPU at a time, so this read is atomic, and so is the write
        // below.
        let value = unsafe { *word.read() };
        // SAFETY: one CPU runs at a time, so this write is atomic.
        unsafe { *word.write() = value + 1 };
        drop(kept);
        pause(300);
    }
}
