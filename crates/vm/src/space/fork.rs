//! A copy of the space.

use super::brk::home;
use super::{HEAP_START, Space};
use crate::error::Error;
use crate::flags::Flags;
use crate::object::Attached;
use crate::pmap::Forking;
use crate::pv::Table;
use crate::system::{Change, Op, System};
use crate::tree::{Attributes, Mapped, Part};
use crate::usage::Usage;
use alloc::sync::Arc;
use machine::VaRange;

impl<S: System> Space<S> {
    /// A space with the same content (`fork`). Private pages are shared until a task
    /// writes them; shared mappings stay shared. Memory advised not to be inherited is unmapped or
    /// empty in the child; memory locks are not inherited.
    ///
    /// Each slot is copied under its lock, while other tasks of the space go on working elsewhere.
    /// The child sees an operation of theirs wholly or not at all, and of two on separate ranges
    /// perhaps only the later one (so it may have both a mapping that its parent unmapped and one
    /// that the parent made afterwards, and exceed a limit that the parent kept). One flush at the
    /// end. After an error (no memory, no swap space) nothing has changed.
    ///
    /// O(slots + private pages present).
    pub fn fork(&self) -> Result<Self, Error> {
        let fork = || {
            let forked = self.try_fork();
            forked.inspect_err(|_| self.pmap.leave_lone_kin())
        };
        self.vm.with_frames(fork)
    }

    fn try_fork(&self) -> Result<Self, Error> {
        let child = Space::kept(self.children.keep(&self.vm)?)?;
        let mut op = self.begin(Op::Change);
        let mut limits = Default::default();
        {
            let _pmap = self.pmap.lock_tables();
            // This lock is free, as no task knows the child yet; but a removal by the reverse map
            // soon finds some of its pages.
            let _child = child.pmap.try_lock_tables();
            let forking = self.pmap.fork();
            let mut copy = Copy {
                child: &child,
                forking,
                last: None,
            };
            let mut walk = self.pmap.tree.walk();
            let wanted = || home(self.current_break());
            while let Some(part) = walk.next_with(wanted, |part| copy.forking.reads(part)) {
                limits = self.rules(&part).set();
                let end = self.current_break();
                let slot = part.range();
                if slot.contains(home(end)) {
                    child.written.heap_end.set(end);
                } else if slot.start >= HEAP_START && slot.end <= end {
                    // A heap that shrinks to the end of this slot leaves the slot alone, and the
                    // walk has passed its home.
                    child.written.heap_end.set(slot.end);
                }
                copy.part(part)?;
            }
        }
        child.arenas.follow(&self.arenas)?;
        self.report(&mut op, Change::Forked(&*child.pmap.gate));
        drop(op);
        child.inherit_limits(self, limits)?;
        Ok(child)
    }
}

/// A fork under way.
struct Copy<'a, S: System> {
    child: &'a Space<S>,
    forking: Forking<'a, S>,
    /// The attachment that was inherited last, and the child's copy of it.
    last: Option<(Attached<S>, Attached<S>)>,
}

impl<S: System> Copy<'_, S> {
    /// Copies a slot, which is locked.
    fn part(&mut self, mut part: Part<'_, S>) -> Result<(), Error> {
        if part.is_empty() {
            return Ok(());
        }
        // A superpage lies in one mapping.
        let first = part.first().map_or(Flags::NONE, |mapped| mapped.flags);
        if !first.has(Flags::DONT_FORK) && !first.has(Flags::WIPE_ON_FORK) {
            self.forking.demote(&mut part);
        }
        let shares = self.forking.shares(&part);
        if !shares {
            self.forking.own(&mut part)?;
        }
        let leaf = if shares { Table::NONE } else { part.leaf() };
        if !shares {
            self.forking.begin_pages(&mut part)?;
        }
        let copied = part.try_for_each(|mapped| {
            if mapped.flags.has(Flags::DONT_FORK) {
                Ok(())
            } else {
                self.mapping(&mapped, leaf)
            }
        });
        self.forking.end_pages(&part, &self.child.pmap);
        copied?;
        if shares {
            let pmap = &self.child.pmap;
            for mut to in pmap.tree.over(part.range()).more().lock()?.parts() {
                self.forking.share_table(&mut part, pmap, &mut to)?;
            }
        }
        Ok(())
    }

    /// Copies a mapping of a slot, and its pages in this table.
    fn mapping(&mut self, mapped: &Mapped<'_, S>, leaf: Table) -> Result<(), Error> {
        let flags = mapped.flags;
        let attributes = Attributes {
            flags: flags.without(Flags::LOCKED | Flags::ON_FAULT),
            attachment: self.inherit(mapped)?,
        };
        let charge = if flags.has(Flags::CHARGED) {
            mapped.range.pages() as u64
        } else {
            0
        };
        self.child.vm.commit(charge)?;
        let pmap = &self.child.pmap;
        // No task that holds a slot of the child waits for one of the parent.
        let locked = pmap.tree.over(mapped.range).more().lock();
        let mut locked = locked.inspect_err(|_| self.child.vm.uncommit(charge))?;
        let room = locked.parts().try_for_each(|mut part| part.make_room());
        room.inspect_err(|_| self.child.vm.uncommit(charge))?;
        for mut part in locked.parts() {
            machine::invariant!(
                S::Machine: part.usage() == Usage::NONE,
                "the child has a mapping there already"
            );
            part.set(Some(attributes.clone()));
        }
        if flags.has(Flags::SHARED) || flags.has(Flags::WIPE_ON_FORK) {
            return Ok(());
        }
        for mut part in locked.parts() {
            let range: VaRange = match &attributes.attachment {
                Some(attached) => attached.reached(part.range()),
                None => part.range(),
            };
            self.forking.share(leaf, range, pmap, &mut part)?;
        }
        Ok(())
    }

    /// The child's attachment for a mapping of the parent's.
    fn inherit(&mut self, mapped: &Mapped<'_, S>) -> Result<Option<Attached<S>>, Error> {
        let Some(parent) = mapped.attachment else {
            return Ok(None);
        };
        if let Some((of, child)) = &self.last
            && of == parent
        {
            return Ok(Some(child.clone()));
        }
        let owner = Arc::as_ptr(&self.child.pmap).cast();
        // SAFETY: a pmap in an `Arc`, which the child keeps until nothing is mapped in it.
        let child = unsafe { parent.inherit(owner) }?;
        self.last = Some((parent.clone(), child.clone()));
        Ok(Some(child))
    }
}
