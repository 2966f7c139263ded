//! Changes of a range's rights.

use super::Space;
use crate::error::Error;
use crate::flags::Flags;
use crate::heap::push;
use crate::prot::Prot;
use crate::system::{Change, Op, System};
use crate::tree::Locked;
use alloc::vec::Vec;
use machine::VaRange;

impl<S: System> Space<S> {
    /// Gives all of `range` (its end rounded up to pages) the rights `prot`. When it
    /// returns, no CPU can use a right that was taken away.
    ///
    /// Memory that becomes writable for the first time reserves swap space. If part of
    /// the range is not mapped, nothing changes. Locked memory that becomes writable is paged in.
    pub fn protect(&self, range: VaRange, prot: Prot) -> Result<(), Error> {
        let range = Self::in_pages(range)?;
        self.vm.with_frames(|| self.protect_whole(range, prot))
    }

    #[inline(never)]
    fn protect_whole(&self, range: VaRange, prot: Prot) -> Result<(), Error> {
        let mut brought = Vec::new();
        let mut op = self.begin(Op::Change);
        let place = self.pmap.tree.find(range.start);
        place.refuse_hole(range)?;
        self.report(&mut op, Change::Expected(range));
        let pmap = self.pmap.lock_tables();
        let mut locked = Locked::none(&self.pmap.tree);
        locked.lock(self.pmap.tree.at(place, range))?;
        // A charge stays once it is made.
        let change = move |flags: Flags| flags.with_prot(prot).charged();
        let (mut uncharged, mut denied) = (0, false);
        locked.parts().try_each(|mut part| {
            part.visit(|mapped| {
                let flags = mapped.flags;
                // A mapping that is writable already is charged, and may be writable; it is not
                // paged in, as it may have no copy of its own yet.
                if !prot.writes() || flags.prot().writes() {
                    return Ok(());
                }
                if change(flags).has(Flags::CHARGED) && !flags.has(Flags::CHARGED) {
                    uncharged += mapped.range.pages() as u64;
                }
                denied |= flags.has(Flags::SHARED | Flags::READ_ONLY);
                if flags.is_brought() {
                    push(&mut brought, mapped.range)
                } else {
                    Ok(())
                }
            })?;
            part.make_room()?;
            self.pmap.own_used(&mut part)
        })?;
        if denied {
            return Err(Error::Denied);
        }
        self.vm.commit(uncharged)?;
        let counted = self.count_change(&mut locked, change);
        counted.inspect_err(|_| self.vm.uncommit(uncharged))?;
        self.pmap.protect_locked(&mut locked, prot, change);
        drop(locked);
        drop(pmap);
        self.report(&mut op, Change::Protected(range, prot));
        drop(op);
        brought.iter().for_each(|&part| self.populate_locked(part));
        Ok(())
    }
}
