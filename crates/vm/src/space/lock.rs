//! Memory that is locked in memory (`mlock`, `mlockall`), and paging in before use.

use super::arena::TABLE;
use super::{HIGHEST, LOWEST, Space};
use crate::error::Error;
use crate::flags::Flags;
use crate::system::{Op, System};
use crate::tree::Locked;
use machine::{Access, PAGE_SIZE, PageFault, VaRange};

/// All flags of locked memory.
const ALL_LOCKS: Flags = Flags::NONE.with(Flags::LOCKED).with(Flags::ON_FAULT);

/// When the pages of locked memory are paged in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bring {
    /// At once.
    Now,
    /// When they are used (`MLOCK_ONFAULT`, `MCL_ONFAULT`).
    OnFault,
}

/// Mappings of a space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mappings {
    /// True for all existing mappings.
    pub current: bool,
    /// True for all later mappings; if false, later ones are not locked any more.
    pub future: bool,
}

impl Mappings {
    /// The existing mappings.
    pub const CURRENT: Mappings = Mappings {
        current: true,
        future: false,
    };
    /// The later mappings.
    pub const FUTURE: Mappings = Mappings {
        current: false,
        future: true,
    };
    /// All.
    pub const ALL: Mappings = Mappings {
        current: true,
        future: true,
    };
}

impl<S: System> Space<S> {
    /// Keeps the pages of `range` (its end rounded up to pages) in memory, and pages them in.
    ///
    /// If part of the range is not mapped, or the limit does not allow it, nothing changes.
    ///
    /// # Errors
    /// [`Error::NotMapped`] also for a page that cannot be paged in, since tasks have no rights to
    /// it, or since it lies behind its object's end; then all of the range is locked, and its pages
    /// before that one are in memory. The same holds after [`Error::OutOfMemory`] for lack of
    /// frames, and [`Error::Io`].
    pub fn lock(&self, range: VaRange, bring: Bring) -> Result<(), Error> {
        self.reflag(range, ALL_LOCKS, locked(bring))?;
        if bring == Bring::OnFault {
            return Ok(());
        }
        self.bring_usable(Self::in_pages(range)?)
            .map_err(|error| match error {
                Error::Segv(PageFault { address, .. }) => Error::NotMapped { address },
                Error::Bus { .. } => Error::NotMapped {
                    address: range.start,
                },
                other => other,
            })
    }

    /// Lets pages of `range` be reclaimed again.
    pub fn unlock(&self, range: VaRange) -> Result<(), Error> {
        self.reflag(range, ALL_LOCKS, Flags::NONE)
    }

    /// Keeps the pages of `which` mappings in memory, as [`Space::lock`] does. Locks the whole
    /// space: O(slots + regions), and the pages paged in.
    ///
    /// # Errors
    /// [`Error::Invalid`] if `which` names no mappings; [`Error::OverLimit`] if the limit does not
    /// allow it. Then nothing has changed.
    pub fn lock_all(&self, which: Mappings, bring: Bring) -> Result<(), Error> {
        let Mappings { current, future } = which;
        if !current && !future {
            let reason = "neither current nor future mappings are to be locked";
            return Err(Error::Invalid { reason });
        }
        let how = locked(bring);
        self.set_all(
            current.then_some(how),
            if future { how } else { Flags::NONE },
        )?;
        if current && bring == Bring::Now {
            self.populate_all();
        }
        Ok(())
    }

    /// Pages in all mapped memory, each mapping up to its first page that is not available; that
    /// needs no memory except the pages'.
    fn populate_all(&self) {
        let mut rest = VaRange {
            start: LOWEST,
            end: HIGHEST,
        };
        while let Some(run) = self.pmap.tree.first_run(rest) {
            self.populate(run.range);
            rest.start = run.range.end;
        }
    }

    /// Lets all pages be reclaimed again, and those of new mappings (`munlockall`).
    pub fn unlock_all(&self) {
        let unlocked = self.set_all(Some(Flags::NONE), Flags::NONE);
        debug_assert!(unlocked.is_ok(), "less is within all limits");
    }

    /// Gives all mappings the locks `current`, and new ones `future`.
    fn set_all(&self, current: Option<Flags>, future: Flags) -> Result<(), Error> {
        self.vm.with_frames(|| self.try_set_all(current, future))
    }

    fn try_set_all(&self, current: Option<Flags>, future: Flags) -> Result<(), Error> {
        let _op = self.begin(Op::Change);
        let mut all = self.pmap.tree.all().lock_whole();
        if let Some(locks) = current {
            if locks.has(Flags::LOCKED) {
                let mut parts = all.parts();
                parts.try_for_each(|mut part| self.pmap.own_used(&mut part))?;
            }
            self.relock(&mut all, |flags| flags.without(ALL_LOCKS).with(locks))?;
        }
        self.rules_mut(&mut all).future = future;
        Ok(())
    }

    /// Changes the flags of all mappings. Whole slots need no room for that.
    fn relock(
        &self,
        all: &mut Locked<'_, S>,
        change: impl Fn(Flags) -> Flags,
    ) -> Result<(), Error> {
        self.count_change(all, &change)?;
        for mut part in all.parts() {
            part.update(|_, attributes| attributes.flags = change(attributes.flags));
        }
        Ok(())
    }
}

fn locked(bring: Bring) -> Flags {
    match bring {
        Bring::Now => Flags::LOCKED,
        Bring::OnFault => ALL_LOCKS,
    }
}

impl<S: System> Space<S> {
    /// Pages in a mapping, writable pages for writing, up to the first that is not available, as on
    /// Linux. The others come when they are used.
    pub(super) fn populate(&self, range: VaRange) {
        let _ = self.bring_usable(range);
    }

    /// Pages in `range`, writable pages for writing, up to the first that is not available.
    pub(super) fn bring_usable(&self, range: VaRange) -> Result<(), Error> {
        pages(range).try_for_each(|page| match self.bring(page, Access::Write) {
            Err(Error::Segv(_)) => self.bring(page, Access::Read),
            brought => brought,
        })
    }

    /// Pages in `range` as an access to each page would.
    pub(super) fn bring(&self, range: VaRange, access: Access) -> Result<(), Error> {
        let mut addresses = (range.start..range.end).step_by(PAGE_SIZE);
        addresses.try_for_each(|address| {
            if address.is_multiple_of(TABLE) && self.vm.is_interrupted() {
                return Err(Error::Interrupted);
            }
            self.fault(PageFault {
                address,
                access,
                present: false,
            })
        })
    }
}

/// The pages of a range, one by one.
pub(super) fn pages(range: VaRange) -> impl Iterator<Item = VaRange> {
    let starts = (range.start..range.end).step_by(PAGE_SIZE);
    starts.map(|start| VaRange::sized(start, PAGE_SIZE))
}
