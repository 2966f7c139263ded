//! When memory is short.

use super::tables::ROUNDS;
use crate::error::{Error, Resource};
use crate::policy::Policies;
use crate::vm::Vm;
use alloc::boxed::Box;
use machine::Platform;

/// Frames that an operation without memory asks to be freed.
const DIRECT: usize = 32;

/// Asked when no frame is left and none can be reclaimed; `true` if it has seen to it that
/// the operation is worth another try (by ending a process, say). Called with no lock held.
pub type OutOfMemory = Box<dyn Fn() -> bool + Send + Sync>;

impl<M: Platform, P: Policies<M>> Vm<M, P> {
    /// Does `operation`, which changes nothing if it fails, as often as it fails for want of
    /// frames and some could be freed. The caller holds no lock of the VM's.
    #[inline]
    pub(crate) fn with_frames<R>(
        &self,
        operation: impl Fn() -> Result<R, Error>,
    ) -> Result<R, Error> {
        let mut rounds = 0;
        loop {
            let before = self.hand().freed();
            match operation() {
                Err(Error::OutOfMemory(Resource::Frames)) if self.relieve(before, &mut rounds) => {}
                result => return result,
            }
        }
    }

    /// Frees frames, or waits for who does; `false` if there is no way. `before` is how many
    /// were freed before the caller tried, `rounds` how often he has tried with tables.
    #[cold]
    fn relieve(&self, before: usize, rounds: &mut u32) -> bool {
        // What is not to be had may be on its way out already, by others.
        self.reclaim(DIRECT) > 0
            || self.hand().wait(before)
            || self.relieve_of_tables(rounds)
            || self.ask(rounds)
    }

    /// Frees tables, unless that was no help before.
    fn relieve_of_tables(&self, rounds: &mut u32) -> bool {
        let wanted = DIRECT << *rounds;
        *rounds += 1;
        *rounds <= ROUNDS && self.reclaim_tables(wanted) > 0
    }

    /// What a page daemon does: frees frames until `target` are free, or no more can be;
    /// how many it freed.
    pub fn keep_free(&self, target: usize) -> usize {
        let short = target.saturating_sub(self.frames().free_count());
        match short {
            0 => 0,
            short => self.reclaim(short),
        }
    }

    fn ask(&self, rounds: &mut u32) -> bool {
        *rounds = 0;
        self.out_of_memory().is_some_and(|ask| ask())
    }
}
