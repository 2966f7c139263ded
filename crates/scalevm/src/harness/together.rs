//! Several who are told.

use super::{Phase, Sample, Watch};

/// Tells each of its members, in order.
#[derive(Default)]
pub struct Together<'a> {
    members: Vec<&'a mut dyn Watch>,
}

impl<'a> Together<'a> {
    /// One more, if it is there.
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
