//! A system's records of a space's regions beside its page tables.

use crate::error::Error;
use crate::prot::Prot;
use machine::{Access, CpuRange, Frame, Machine, VaRange};

/// The list or tree of regions that a system keeps for a space, with the structures that hang on
/// each: Linux's VMAs with their anon_vma chains, OpenBSD's map entries with their amaps.
///
/// The VM's own answers are in its tree (`crate::tree`); it tells the policy of each change, takes
/// the locks that the policy offers, and asks nothing. So a policy adds just the cost of its
/// structures, and the waits for their locks.
///
/// Methods that change regions are called under the map's lock for writing
/// ([`MapLocking::write`](super::MapLocking::write)), after the operation has succeeded, with
/// no slot, page or pmap lock held; so they cannot fail.
pub trait Regions<M: Machine>: Sized + Send + Sync + 'static {
    /// The options of the policy, fixed when the VM is made; `()` for most.
    type Config: Default + Clone + Send;
    /// The data that the spaces of a VM have in common.
    type Common: Send + Sync;
    /// The data of a page.
    type Page: Send + Sync;
    /// The data of an object, which every region that maps it keeps, too.
    type Object: Clone + Send + Sync;
    /// Held by a fault.
    type Fault<'a>;
    /// Held by a change of regions; ends when dropped.
    type Changing<'a>;

    /// The data that the spaces of a VM have in common.
    fn common(config: &Self::Config, cpus: CpuRange, frames: usize) -> Result<Self::Common, Error>;

    /// Returns true if there are no records; see
    /// [`Invalidation::is_silent`](super::Invalidation::is_silent).
    #[inline(always)]
    fn is_silent(_common: &Self::Common) -> bool {
        false
    }

    /// An empty space's.
    fn new(common: &Self::Common) -> Self;

    /// A free page's.
    fn new_page() -> Self::Page;

    /// A new object's.
    fn new_object(common: &Self::Common) -> Self::Object;

    /// An unmap, a protect, or a mapping in the place of others is about to change the regions in
    /// `range`. Under the map's lock for writing and no slot's; held as long as that.
    fn change<'a>(&'a self, common: &'a Self::Common, range: VaRange) -> Self::Changing<'a>;

    /// `range`, of which nothing was mapped, is mapped now.
    fn map(&self, common: &Self::Common, range: VaRange, mapping: Mapping<Self::Object>);

    /// Nothing of `range` is mapped any more; holes in it never were. The end of the space, and
    /// `exec`, unmap all.
    fn unmap(&self, common: &Self::Common, range: VaRange);

    /// All of `range`, which is mapped, has these rights now.
    fn protect(&self, common: &Self::Common, range: VaRange, prot: Prot);

    /// `child`, which no other task knows yet and which has no region, is a copy of this space.
    fn fork(&self, common: &Self::Common, child: &Self);

    /// Returns true if a fault is to call [`Regions::copy`] before it begins. Under the map's lock
    /// for reading.
    #[inline]
    fn wants_copy(&self, _address: usize, _access: Access) -> bool {
        false
    }

    /// Makes private the pages that the region at `address` shares with a copy of the space, if it
    /// still does. Under the map's lock for writing, and no other.
    fn copy(&self, _common: &Self::Common, _address: usize) {}

    /// Begins a fault without the map's lock, if the policy can do without; held as what
    /// [`Regions::fault`] returns.
    #[inline]
    fn fault_alone<'a>(
        &'a self,
        _common: &'a Self::Common,
        _address: usize,
        _access: Access,
    ) -> Option<Self::Fault<'a>> {
        None
    }

    /// Begins a fault, under the map's lock for reading and no other. Held until the page is
    /// mapped, or the fault has failed; also while the page is waited for.
    fn fault<'a>(
        &'a self,
        common: &'a Self::Common,
        address: usize,
        access: Access,
    ) -> Self::Fault<'a>;

    /// A fault that holds this has mapped an anonymous page. Under the lock of its slot.
    fn took(&self, fault: &Self::Fault<'_>, frame: Frame, page: &Self::Page);

    /// Looks for all mappings of a page, as the system does before it removes them, or splits
    /// the superpage that begins with it. The caller holds no page's PV lock; if it splits,
    /// it has the slot's lock, so nothing that waits for slots is held when this is called
    /// or has returned.
    fn walk(common: &Self::Common, frame: Frame, page: &Self::Page);
}

/// The mapping of a region.
#[derive(Clone, Debug)]
pub struct Mapping<O> {
    /// Rights.
    pub prot: Prot,
    /// True if stores reach all that map the object.
    pub shared: bool,
    /// The mapped object's data, and the object's page at the region's start.
    pub object: Option<(O, u64)>,
}

/// The default: nothing. The tree has the mappings, PV entries say where a page is.
#[derive(Debug)]
pub struct NoRegions;

impl<M: Machine> Regions<M> for NoRegions {
    type Config = ();
    type Common = ();
    type Page = ();
    type Object = ();
    type Fault<'a> = ();
    type Changing<'a> = ();

    fn common(_: &(), _cpus: CpuRange, _frames: usize) -> Result<(), Error> {
        Ok(())
    }

    #[inline(always)]
    fn is_silent(_: &()) -> bool {
        true
    }

    fn new(_: &()) -> Self {
        NoRegions
    }

    fn new_page() {}

    fn new_object(_: &()) {}

    #[inline]
    fn change(&self, _: &(), _range: VaRange) {}

    #[inline]
    fn map(&self, _: &(), _range: VaRange, _mapping: Mapping<()>) {}

    #[inline]
    fn unmap(&self, _: &(), _range: VaRange) {}

    #[inline]
    fn protect(&self, _: &(), _range: VaRange, _prot: Prot) {}

    #[inline]
    fn fork(&self, _: &(), _child: &Self) {}

    #[inline]
    fn fault<'a>(&'a self, _: &'a (), _address: usize, _access: Access) {}

    #[inline]
    fn took(&self, _: &(), _frame: Frame, _page: &()) {}

    #[inline]
    fn walk(_: &(), _frame: Frame, _page: &()) {}
}
