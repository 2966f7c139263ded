//! Faults on objects (FreeBSD 14, `vm_fault` and what it calls in sys/vm/vm_fault.c).
//!
//! A fault locks the region's object for reading, and if the page is there maps it under that lock
//! (`vm_fault_soft_fast`). Otherwise it locks the object for writing, counts a reference and itself
//! (`paging_in_progress`), takes a page, and goes down the chain from lock to lock, each for
//! writing (`vm_fault_next`). The end of the fault drops the reference. For an anonymous object the
//! last drop but one may have to collapse a chain, so it locks for writing again
//! (`vm_object_deallocate`).

use super::{AnonObject, Backing, Counts, FileObject, ObjectRw, Shared};
use alloc::sync::Arc;
use machine::Machine;
use sync::rwlock::RawRw;

/// The locked objects of a fault.
pub(in crate::freebsd) enum Faulting<'a, M: Machine> {
    /// The page is in the region's own object, which is locked for reading.
    Here(&'a ObjectRw<M>, &'a Counts<M>),
    /// The page was searched for in the objects behind.
    Searched(Searched<'a, M>),
}

pub(in crate::freebsd) struct Searched<'a, M: Machine> {
    first: &'a AnonObject<M>,
    index: u64,
    behind: Option<Behind<M>>,
    writes: bool,
}

/// Where a page was found.
enum Behind<M: Machine> {
    Anon(Arc<AnonObject<M>>, u64),
    File(FileObject<M>),
}

impl<M: Machine> FileObject<M> {
    /// Begins a fault of a region that maps the object. Its page is assumed to be in memory.
    #[track_caller]
    pub(in crate::freebsd) fn fault(&self) -> Faulting<'_, M> {
        let Shared { lock, counts } = &*self.0;
        lock.0.read();
        counts.0.begin();
        Faulting::Here(&lock.0, &counts.0)
    }
}

impl<M: Machine> AnonObject<M> {
    /// Begins a fault of a region that has this object, at its page `index`. The map is locked.
    #[track_caller]
    pub(in crate::freebsd) fn fault(&self, index: u64, writes: bool) -> Faulting<'_, M> {
        let (lock, counts) = (&self.lock.0, &self.links.counts);
        lock.read();
        counts.begin();
        if self.has(index) {
            return Faulting::Here(lock, counts);
        }
        counts.end();
        // SAFETY: acquired for reading above, and released here if it cannot be upgraded.
        unsafe {
            if !lock.try_upgrade() {
                lock.read_unlock();
                lock.write();
            }
        }
        counts.refer();
        counts.begin();
        self.pages().resident.take::<M>(index);
        let behind = self.search(index);
        if let (true, Some(Behind::Anon(object, at))) = (writes, &behind) {
            self.try_move(index, object, *at);
        }
        Faulting::Searched(Searched {
            first: self,
            index,
            behind,
            writes,
        })
    }

    /// Looks for a page behind this object, which is locked for writing; this unlocks it.
    #[track_caller]
    fn search(&self, index: u64) -> Option<Behind<M>> {
        let (mut here, mut at) = (None::<Arc<Self>>, index);
        loop {
            let this = here.as_deref().unwrap_or(self);
            let (backing, offset) = (this.chain().backing.clone(), this.chain().offset);
            match &backing {
                Backing::None => {}
                Backing::Anon(next) => {
                    next.lock.0.write();
                    next.links.counts.begin();
                }
                Backing::File(next) => {
                    next.0.lock.0.write();
                    next.counts().begin();
                }
            }
            if let Some(here) = &here {
                here.links.counts.end();
            }
            this.unlock();
            at += offset;
            match backing {
                Backing::None => return None,
                Backing::File(file) => {
                    // SAFETY: acquired above.
                    unsafe { file.0.lock.0.write_unlock() };
                    return Some(Behind::File(file));
                }
                Backing::Anon(next) if next.has(at) => {
                    next.unlock();
                    return Some(Behind::Anon(next, at));
                }
                Backing::Anon(next) => here = Some(next),
            }
        }
    }

    /// Moves the page itself into this object, in place of a copy, if no other object can need it
    /// (`vm_fault_cow`).
    #[track_caller]
    fn try_move(&self, index: u64, behind: &Arc<Self>, at: u64) {
        if !behind.is_only() || !self.lock.0.try_write() {
            return;
        }
        let is_next =
            matches!(&self.chain().backing, Backing::Anon(next) if Arc::ptr_eq(next, behind));
        if is_next && behind.lock.0.try_write() {
            let own = &mut self.pages().resident;
            own.free::<M>(index);
            own.adopt(&mut behind.pages().resident, at, index);
            behind.unlock();
        }
        self.unlock();
    }

    /// Drops a fault's reference; the region's stays.
    #[track_caller]
    fn end_fault(&self) {
        let counts = &self.links.counts;
        if !counts.release_if_above(2) {
            self.lock.0.write();
            if counts.release() == 1 && self.chain().shadows.is_empty() {
                self.chain().is_mapped_once = true;
            }
            self.unlock();
        }
    }
}

impl<M: Machine> Drop for Faulting<'_, M> {
    fn drop(&mut self) {
        match self {
            Faulting::Here(lock, counts) => {
                // SAFETY: acquired for reading when this was made.
                unsafe { lock.read_unlock() };
                counts.end();
            }
            Faulting::Searched(searched) => searched.end(),
        }
    }
}

impl<M: Machine> Searched<'_, M> {
    /// Ends a fault (`fault_deallocate`). If the page was found behind, the object in front keeps
    /// none for it.
    fn end(&self) {
        let first = self.first;
        match &self.behind {
            None => {}
            Some(Behind::Anon(behind, _)) => behind.links.counts.end(),
            Some(Behind::File(file)) => file.counts().end(),
        }
        if self.behind.is_some() && !self.writes {
            first.lock.0.write();
            first.pages().resident.free::<M>(self.index);
            first.unlock();
        }
        first.links.counts.end();
        first.end_fault();
    }
}
