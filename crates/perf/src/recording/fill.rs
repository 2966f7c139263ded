//! A recording as a profile.

use super::Recording;
use profile::Profile;

impl Recording {
    /// `profile` with what was recorded, but without locks, whose shares depend on all of it.
    pub fn fill(&self, profile: Profile) -> Profile {
        Profile {
            clock: self.clock().name().into(),
            lived: Some(self.lived().as_secs_f64()),
            hidden: self.hidden(),
            busy: self.busy(),
            waits: self.waiting(),
            spent: self.spent(),
            parts: self.parts(),
            queued: self.queued(),
            timeline: self.timeline(),
            moments: Some(self.moments()),
            doubt: self.doubt(),
            notes: self.notes(),
            ..profile
        }
    }

    /// Adds locks, holders, and the sentence to a profile that is filled.
    pub fn judge(&self, profile: &mut Profile) {
        profile.locks = self.locks(profile.active_seconds());
        profile.holders = self.holders();
        profile.name_bottleneck();
    }
}
