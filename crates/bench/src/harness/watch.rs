//! Observers of a measurement.

use super::Sample;

/// True if a sample counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It does not.
    Warmup,
    /// It does.
    Measurement,
}

/// Is notified during a measurement.
pub trait Watch {
    /// The samples from here on are of this phase.
    fn phase(&mut self, phase: Phase);
    /// A sample was taken; `index` counts from 0 in its phase.
    fn sample(&mut self, phase: Phase, index: u32, sample: &Sample);
}

/// Several observers, notified in order.
#[derive(Default)]
pub struct Together<'a> {
    members: Vec<&'a mut dyn Watch>,
}

impl<'a> Together<'a> {
    /// Adds an observer, if there is one.
    pub fn with<W: Watch>(mut self, member: &'a mut Option<W>) -> Self {
        self.members
            .extend(member.as_mut().map(|one| one as &mut dyn Watch));
        self
    }
}

impl Watch for Together<'_> {
    fn phase(&mut self, phase: Phase) {
        self.members.iter_mut().for_each(|one| one.phase(phase));
    }

    fn sample(&mut self, phase: Phase, index: u32, sample: &Sample) {
        for one in &mut self.members {
            one.sample(phase, index, sample);
        }
    }
}

/// A display of progress.
pub trait Progress: Sync {
    /// The next point begins.
    fn point(&self, label: &str);

    /// A step is done, which was `work` units of work.
    fn worked(&self, work: u64);

    /// A step is done, where all are the same work.
    fn step(&self) {
        self.worked(1);
    }

    /// All is over.
    fn finish(&self);
}

/// No display.
impl Progress for () {
    fn point(&self, _: &str) {}
    fn worked(&self, _: u64) {}
    fn finish(&self) {}
}

/// Makes a progress display of this number of steps, each a `unit`.
pub type Bars = fn(u64, &str) -> Box<dyn Progress>;

impl Watch for Box<dyn Progress> {
    fn phase(&mut self, _: Phase) {}

    fn sample(&mut self, _: Phase, _: u32, _: &Sample) {
        self.step();
    }
}
