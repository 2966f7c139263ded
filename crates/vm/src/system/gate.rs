//! The gate through which each operation on a space passes.

use super::{Extent, Part};
use crate::error::Error;
use crate::prot::Prot;
use machine::{Access, Frame, Machine, VaRange};

/// The locks of a space in addition to its slots', and the records that a system keeps of its
/// regions: Linux's `mmap_lock` and VMAs with their anon_vma chains, OpenBSD's `vm_map` and entries
/// with their amaps.
///
/// Each operation passes the gate once: before it locks any slot, [`Gate::begin`] returns its
/// guard; then [`Gate::report`] is told of each change. The VM's own answers are in its tree
/// (`crate::tree`): it asks the gate for nothing. So a gate adds just the cost of its structures,
/// and the waits for their locks.
///
/// Reports cannot fail: the operation has succeeded. No slot, page or pmap is locked during a
/// report, except for [`Change::Unmapping`] and [`Change::Faulted`].
///
/// The default of each method does nothing.
pub trait Gate<M: Machine>: Part<M> {
    /// A space's locks and records.
    type Space: Send + Sync;
    /// The data of a page.
    type Page: Default + Send + Sync;
    /// The data of an object, which every region that maps it keeps, too.
    type Object: Clone + Send + Sync;
    /// Held by an operation; ends when dropped. The default holds nothing: it is that of a step of
    /// an operation that holds its own, and of a space that no other task uses.
    type Guard<'a>: Default;
    /// Held while pages come, go or change their rights; ends when dropped.
    type Pmap<'a>: Default;

    /// Makes the locks and records of an empty space.
    fn new_space(&self) -> Self::Space;

    /// Makes the data of a new object.
    fn new_object(&self) -> Self::Object;

    /// Labels the memory of a space, which stays where it is from now on.
    fn label_space(_space: &Self::Space) {}

    /// Begins an operation. No lock of the VM is held.
    #[inline]
    fn begin<'a>(&'a self, _space: &'a Self::Space, _op: Op) -> Self::Guard<'a> {
        Self::Guard::default()
    }

    /// Tells the gate what the operation changes in the space.
    #[inline]
    fn report<'a>(
        &'a self,
        _space: &'a Self::Space,
        _guard: &mut Self::Guard<'a>,
        _change: Change<'_, M, Self>,
    ) {
    }

    /// Begins a change of the page tables. Taken after [`Gate::begin`], before any slot's lock.
    #[inline]
    fn lock_pmap<'a>(&self, _space: &'a Self::Space) -> Self::Pmap<'a> {
        Self::Pmap::default()
    }

    /// Begins a change of the page tables, if that needs no waiting.
    #[inline]
    fn try_lock_pmap<'a>(&self, _space: &'a Self::Space) -> Option<Self::Pmap<'a>> {
        Some(Self::Pmap::default())
    }

    /// Looks for all mappings of a page, as the system does before it removes them, or splits the
    /// superpage that begins with it. The caller holds no page's PV lock; if it splits, it has the
    /// slot's lock, so nothing that waits for slots is held when this is called or has returned.
    #[inline]
    fn walk(&self, _frame: Frame, _page: &Self::Page) {}
}

/// An operation that begins.
#[derive(Clone, Copy, Debug)]
pub enum Op {
    /// It leaves the regions as they are.
    Look,
    /// It changes them.
    Change,
    /// A fault: its guard is held until the page is mapped or the fault has failed, also while the
    /// page is waited for.
    Fault {
        /// The address.
        address: usize,
        /// The access.
        access: Access,
    },
}

/// A change that an operation makes. Nothing in it need be dropped, so a gate that does nothing is
/// free.
pub enum Change<'a, M: Machine, G: Gate<M>> {
    /// The regions in the range are about to be unmapped, replaced or given other rights. Perhaps
    /// they are not: then the operation ends, or expects another change.
    Expected(VaRange),
    /// The range is about to be unmapped: its slots are locked, nothing can fail any more, and its
    /// pages go next. A gate may remove the range from its records here, and go on as an operation
    /// that leaves the regions as they are; then it may wait for no lock below the slots'.
    Unmapping(VaRange),
    /// Nothing of the range is mapped any more; holes in it never were. The end of the space, and
    /// `exec`, unmap all.
    Unmapped(VaRange),
    /// A mapping has been made in the range, where there was none.
    Mapped(VaRange, Mapping<'a, G::Object>),
    /// All of the range, which is mapped, has been given these rights.
    Protected(VaRange, Prot),
    /// This space, which no other task knows yet and which has no region, is a copy.
    Forked(&'a G::Space),
    /// The fault has mapped an anonymous page. Under the lock of its slot.
    Faulted(Frame, &'a G::Page),
}

impl<'a, M: Machine, G: Gate<M>> Change<'a, M, G> {
    /// This change for a gate `H` that has the data of `G`: one that `G` wraps.
    #[inline]
    pub fn of<H>(self) -> Change<'a, M, H>
    where
        H: Gate<M, Space = G::Space, Page = G::Page, Object = G::Object>,
    {
        match self {
            Change::Expected(range) => Change::Expected(range),
            Change::Unmapping(range) => Change::Unmapping(range),
            Change::Unmapped(range) => Change::Unmapped(range),
            Change::Mapped(range, mapping) => Change::Mapped(range, mapping),
            Change::Protected(range, prot) => Change::Protected(range, prot),
            Change::Forked(child) => Change::Forked(child),
            Change::Faulted(frame, page) => Change::Faulted(frame, page),
        }
    }
}

/// The mapping of a region.
#[derive(Debug)]
pub struct Mapping<'a, O> {
    /// Rights.
    pub prot: Prot,
    /// True if stores reach all that map the object.
    pub shared: bool,
    /// The mapped object's data, and the object's page at the region's start.
    pub object: Option<(&'a O, u64)>,
}

/// The default gate, which does nothing: the slots' locks suffice, and the tree has the mappings.
#[derive(Debug)]
pub struct NoGate;

impl<M: Machine> Part<M> for NoGate {
    type Config = ();

    fn new(_: &(), _: Extent) -> Result<Self, Error> {
        Ok(NoGate)
    }

    #[inline]
    fn is_silent(&self) -> bool {
        true
    }
}

impl<M: Machine> Gate<M> for NoGate {
    type Space = ();
    type Page = ();
    type Object = ();
    type Guard<'a> = ();
    type Pmap<'a> = ();

    fn new_space(&self) {}

    fn new_object(&self) {}
}
