//! Bounds: the CPUs on which a task may run.

use super::Best;
use crate::{Leaving, Sched};
use machine::Contexts;

/// The CPUs on which a task may run. A task begins with the bounds of the task that makes it, and
/// changes its own by [`Sched::bind`].
pub trait Bounds: Copy + Send + 'static {
    /// True if every task may run on every CPU: then [`Bounds::allow`] is not called.
    const NONE: bool = false;

    /// The bounds of a task that no task has made: all CPUs.
    fn all() -> Self;

    /// Returns true if the CPU with this index is one of them.
    fn allow(&self, cpu: usize) -> bool;
}

/// All tasks run on all CPUs.
#[derive(Clone, Copy, Debug)]
pub struct Unbound;

impl Bounds for Unbound {
    const NONE: bool = true;

    fn all() -> Self {
        Unbound
    }

    fn allow(&self, _: usize) -> bool {
        true
    }
}

impl<M: Contexts, B: Bounds> Sched<M, Best<M, B>> {
    /// Restricts the calling task to `bounds`: it already runs within them when this returns. At
    /// least one CPU must be within.
    ///
    /// The task must not be about to park: a permit that it has may be gone.
    pub fn bind(&self, bounds: B) {
        let pin = M::pin();
        let here = self.cpus.index(&pin);
        let task = self.cpus.of(here).current(&pin);
        let task = task.expect("a task has bounds, a CPU has none");
        task.entry().set_bounds(bounds);
        if !bounds.allow(here) {
            // The task parks with a permit, so it is handed over as soon as it has left its CPU,
            // and the policy chooses the next one.
            task.state.unpark(task.state.generation());
            self.leave(pin, Leaving::Parks);
        }
    }
}
