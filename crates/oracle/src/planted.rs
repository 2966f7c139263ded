//! Systems with one planted bug each: a comparison that cannot fail proves nothing.
//!
//! Each is the model with some of its steps changed.

use crate::address::{PAGE, Range};
use crate::model::Model;
use crate::outcome::Outcome;
use crate::step::{Advice, Call, ProcessId, RemapFlag, Step};
use crate::system::{Broken, System};
use std::collections::BTreeMap;

/// A bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// Relatives see a process's stores, even in private memory.
    ForkShares,
    /// `mprotect` of several pages does not change the last.
    ProtectForgetsLast,
    /// `MADV_DONTNEED` does nothing.
    DontNeedKeeps,
    /// `munmap` of several pages leaves the first.
    UnmapForgetsFirst,
    /// An `mremap` that moves behaves as if it had `MREMAP_DONTUNMAP`.
    MoveLeavesSource,
    /// Shortening a file keeps the rest of its last page.
    TruncateKeepsTail,
    /// Pages that one process drops are lost to its relatives too.
    DontNeedReachesRelatives,
}

impl Bug {
    pub const ALL: [Bug; 7] = [
        Bug::ForkShares,
        Bug::ProtectForgetsLast,
        Bug::DontNeedKeeps,
        Bug::UnmapForgetsFirst,
        Bug::MoveLeavesSource,
        Bug::TruncateKeepsTail,
        Bug::DontNeedReachesRelatives,
    ];

    /// The bug's name.
    pub fn name(self) -> &'static str {
        match self {
            Bug::ForkShares => "fork-shares",
            Bug::ProtectForgetsLast => "protect-forgets-last",
            Bug::DontNeedKeeps => "dontneed-keeps",
            Bug::UnmapForgetsFirst => "unmap-forgets-first",
            Bug::MoveLeavesSource => "move-leaves-source",
            Bug::TruncateKeepsTail => "truncate-keeps-tail",
            Bug::DontNeedReachesRelatives => "dontneed-reaches-relatives",
        }
    }
}

/// The model with a bug.
pub struct Planted {
    bug: Bug,
    model: Model,
    parents: BTreeMap<ProcessId, ProcessId>,
}

impl Planted {
    /// The model with `bug`.
    pub fn new(bug: Bug) -> Self {
        Planted {
            bug,
            model: Model::default(),
            parents: BTreeMap::new(),
        }
    }

    /// The step that the model performs instead.
    fn bent(&self, step: &Step) -> Step {
        let call = match (self.bug, step.call) {
            (Bug::ProtectForgetsLast, Call::Protect(range, prot)) if is_long(range) => {
                let bytes = range.bytes - PAGE;
                Call::Protect(Range { bytes, ..range }, prot)
            }
            (Bug::DontNeedKeeps, Call::Advise(range, Advice::DontNeed)) => {
                Call::Advise(range, Advice::WillNeed)
            }
            (Bug::UnmapForgetsFirst, Call::Unmap(range)) if is_long(range) => Call::Unmap(Range {
                start: range.start.plus(PAGE),
                bytes: range.bytes - PAGE,
            }),
            (Bug::MoveLeavesSource, Call::Remap(mut remap))
                if remap.flags.has(RemapFlag::MayMove) && remap.bytes == remap.old.bytes =>
            {
                remap.flags = remap.flags.with(RemapFlag::DontUnmap);
                Call::Remap(remap)
            }
            (Bug::TruncateKeepsTail, Call::Truncate(file, bytes)) => {
                Call::Truncate(file, bytes.next_multiple_of(PAGE))
            }
            (_, call) => call,
        };
        Step { call, ..*step }
    }

    /// Returns true if `step` affects relatives because of the bug.
    fn leaks(&self, step: &Step) -> bool {
        match step.call {
            Call::Store(..) => self.bug == Bug::ForkShares,
            Call::Advise(_, Advice::DontNeed) => self.bug == Bug::DontNeedReachesRelatives,
            _ => false,
        }
    }

    fn are_related(&self, one: ProcessId, other: ProcessId) -> bool {
        let parent = |id| self.parents.get(&id);
        parent(one) == Some(&other) || parent(other) == Some(&one)
    }
}

/// Returns true if a range has several whole pages.
fn is_long(range: Range) -> bool {
    range.bytes.is_multiple_of(PAGE) && range.bytes > PAGE && range.bytes < 1 << 40
}

impl System for Planted {
    fn name(&self) -> &str {
        self.bug.name()
    }

    fn reset(&mut self) -> Result<(), Broken> {
        *self = Planted::new(self.bug);
        Ok(())
    }

    fn perform(&mut self, step: &Step) -> Result<Outcome, Broken> {
        if let Call::Fork(child) = step.call {
            self.parents.insert(child, step.process);
        }
        if self.leaks(step) {
            for (process, _) in self.model.known().processes {
                if self.are_related(process, step.process) {
                    // A step that the relative cannot perform has no effect.
                    let _ = self.model.judge(&Step { process, ..*step });
                }
            }
        }
        let bent = self.bent(step);
        // The changed step need not be defined.
        let undefined = |_| Ok(Outcome::Segv);
        self.model.judge(&bent).or_else(undefined)
    }
}
