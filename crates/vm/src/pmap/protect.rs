//! Changing the rights of mapped pages.

use super::Pmap;
use super::entry;
use super::flush::Touched;
use super::kin::is_kin;
use crate::error::Error;
use crate::flags::Flags;
use crate::prot::Prot;
use crate::pv::Table;
use crate::system::System;
use crate::tree::{Kind, Locked, Part, Size};
use machine::{Access, Atomic, AtomicInt, Atomics, Flush, Mmu, Ordering, VaRange, pte};

impl<S: System> Pmap<S> {
    /// Gives the pages of `range` the rights `prot`, also if other mappings share them. When it
    /// returns, no CPU can use a right that was taken away. Locks one slot at a time. Fails if
    /// there is no memory for tables that a fork has shared.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the pmap is a space's, or `range` is not one of whole pages of tasks;
    /// [`Error::OutOfMemory`].
    pub fn protect(&self, range: VaRange, prot: Prot) -> Result<(), Error> {
        self.check(range)?;
        let _pmap = self.lock_tables();
        let flags = Flags::new(prot).with(Flags::SHARED);
        for place in self.tree.places(range) {
            if !place.slot.is_vacant() {
                let mut touched = Touched::NONE;
                let mut locked = self.tree.at(place, range.common(place.range)).lock_whole();
                for mut part in locked.parts() {
                    self.own_used(&mut part)?;
                    if self.protect_superpage(&mut part, flags, &mut touched) {
                        continue;
                    }
                    self.protect_run(part.leaf(), part.range(), flags, &mut touched);
                }
                self.flush_touched(touched);
            }
        }
        Ok(())
    }

    /// Gives the mappings in the locked range the flags that `change` makes of theirs, and their
    /// pages, whose tables are the slots' own, the rights `prot`, which these flags have. The slots
    /// have room for it. When it returns, no CPU can use a right that was taken away. (A CPU may
    /// not know yet of a right that was given; it faults, and `refresh` settles it.)
    ///
    /// No delayed invalidation: the PV entries stay, so a removal of the page takes
    /// the slot's lock and finds the flush done.
    #[inline]
    pub(crate) fn protect_locked(
        &self,
        locked: &mut Locked<'_, S>,
        prot: Prot,
        change: impl Fn(Flags) -> Flags,
    ) {
        let mut touched = Touched::NONE;
        locked.parts().each(|mut part| {
            let is_done = part.is_vacant()
                || self.protect_superpage(&mut part, Flags::new(prot), &mut touched);
            let leaf = part.leaf();
            machine::invariant!(
                S::Machine: part.size() != Size::Shared
                    || self.used(leaf, part.range()).next().is_none(),
                "rights change in a table that others have"
            );
            part.update(|range, attributes| {
                attributes.flags = change(attributes.flags);
                if !is_done {
                    self.protect_run(leaf, range, attributes.flags, &mut touched);
                }
            });
        });
        self.flush_touched(touched);
    }

    /// Rewrites the entries of `range`, which is of a locked slot with this table.
    #[inline]
    fn protect_run(&self, leaf: Table, range: VaRange, flags: Flags, touched: &mut Touched) {
        let Some(leaf) = leaf.get() else {
            return;
        };
        // A fork under way has made entries read-only that TLBs still know as writable.
        let forking = self.revocations.are_pending();
        for (address, bits) in self.used(Table::of(leaf), range) {
            if bits & pte::PRESENT == 0 {
                continue;
            }
            let entry = self.entry(leaf, 0, address);
            let lost = self.give_rights(entry, bits, self.rights_to(bits, flags));
            if lost || forking {
                touched.page(address);
            }
        }
    }

    /// The rights that a mapping with `flags` has to its page, which the entry `bits` maps. Where
    /// stores are private, a page that is not only this mapping's stays read-only.
    #[inline]
    fn rights_to(&self, bits: u64, flags: Flags) -> Prot {
        let prot = flags.prot();
        let ours = || {
            entry::kind(bits) == Kind::Private
                && !is_kin(bits)
                && self.vm.is_exclusive(pte::frame(bits))
        };
        if prot.writes() && !flags.has(Flags::SHARED) && !ours() {
            prot.read_only()
        } else {
            prot
        }
    }

    /// Sets the rights of a present entry, which had these `bits`, to `rights`. Returns true if
    /// that took one away.
    #[inline]
    pub(super) fn give_rights(
        &self,
        entry: &<S::Machine as Atomics>::AtomicU64,
        bits: u64,
        rights: Prot,
    ) -> bool {
        debug_assert!(bits & pte::PRESENT != 0, "an empty entry gives no rights");
        let mut old = bits;
        loop {
            let new = old & !Prot::MASK | rights.bits();
            // The walker may set accessed and dirty meanwhile. AcqRel: as in `clear`.
            match entry.compare_exchange_weak(old, new, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => {
                    let given = pte::USER | pte::WRITABLE;
                    let lost = old & !new & given | new & !old & pte::NO_EXECUTE;
                    return lost != 0;
                }
                Err(other) => {
                    let walkers = pte::ACCESSED | pte::DIRTY;
                    debug_assert!(
                        (old ^ other) & !walkers == 0,
                        "an entry changed under its slot's lock"
                    );
                    old = other;
                }
            }
        }
    }

    /// Lets tasks write the page that is mapped at the start of `part` by these `bits`.
    pub(crate) fn permit(&self, part: &mut Part<'_, S>, bits: u64, prot: Prot) {
        debug_assert!(prot.writes(), "a task may not write the mapping");
        let leaf = part.leaf().get().expect("a mapping has a table");
        self.give_rights(self.mapping(part, leaf), bits, prot);
        self.refresh(part.range().start);
    }

    /// Marks the entry at the start of `part` for an access of the kernel's, as the walker does for
    /// a task's.
    pub(crate) fn used_by_kernel(&self, part: &Part<'_, S>, access: Access) {
        machine::invariant!(
            S::Machine: self.bits_at(part) & pte::PRESENT != 0,
            "the kernel uses a page that is not mapped"
        );
        let leaf = part.leaf().get().expect("a mapping has a table");
        let bits = match access {
            Access::Read | Access::Execute => pte::ACCESSED,
            Access::Write => pte::ACCESSED | pte::DIRTY,
        };
        // Relaxed: the entry is taken away under the slot's lock, which is held.
        self.mapping(part, leaf).fetch_or(bits, Ordering::Relaxed);
    }

    /// Forgets this CPU's translation of `address`, after a fault that the entry does
    /// not explain.
    pub(crate) fn refresh(&self, address: usize) {
        let page = VaRange::page(address);
        self.vm.machine().flush_local(self.asid, Flush::Range(page));
    }
}
