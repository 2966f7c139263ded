//! Calls of the policy of regions.

use super::Space;
use super::map::New;
use crate::flags::Flags;
use crate::object::Attached;
use crate::policy::{MapLocking, Mapping, Regions, System};
use crate::prot::Prot;
use crate::tree::Attributes;
use machine::{PageFault, VaRange};

type Read<'a, S> = <<S as System>::Locking as MapLocking<<S as System>::Machine>>::Read<'a>;
type Region<'a, S> = <<S as System>::Regions as Regions<<S as System>::Machine>>::Fault<'a>;
pub(super) type Changing<'a, S> =
    <<S as System>::Regions as Regions<<S as System>::Machine>>::Changing<'a>;
type RegionObject<S> = <<S as System>::Regions as Regions<<S as System>::Machine>>::Object;

impl<S: System> Space<S> {
    /// `new` is mapped at `range` now, where nothing was.
    #[inline]
    pub(super) fn region_new(&self, range: VaRange, new: &New<'_, S>) {
        let object = new
            .object
            .map(|(object, first)| (object.regions().clone(), first));
        self.region_mapped(range, new.flags.get(), object);
    }

    /// A mapping with `attributes` is at `range` now, where nothing was.
    pub(super) fn region_like(&self, range: VaRange, attributes: &Attributes<S>) {
        let object = attributes.attachment.as_ref().map(|at: &Attached<S>| {
            let state = at.object().regions().clone();
            (state, at.index(range.start))
        });
        self.region_mapped(range, attributes.flags, object);
    }

    /// Begins a fault: with the map locked, unless the policy does without.
    #[inline(always)]
    pub(super) fn read_region(&self, fault: PageFault) -> (Option<Read<'_, S>>, Region<'_, S>) {
        let (
            common,
            PageFault {
                address, access, ..
            },
        ) = (self.vm.regions(), fault);
        if let Some(region) = self.regions.fault_alone(common, address, access) {
            return (None, region);
        }
        let read = self.read_map(fault);
        (Some(read), self.regions.fault(common, address, access))
    }

    /// Locks the map for a fault, when the policy has copied for the space all that it wants
    /// copied.
    #[inline]
    fn read_map(&self, fault: PageFault) -> Read<'_, S> {
        loop {
            let read = self.pmap.locking.read();
            if !self.regions.wants_copy(fault.address, fault.access) {
                return read;
            }
            drop(read);
            let _write = self.pmap.locking.write();
            self.regions.copy(self.vm.regions(), fault.address);
        }
    }

    #[inline]
    fn region_mapped(&self, range: VaRange, flags: Flags, object: Option<(RegionObject<S>, u64)>) {
        let mapping = Mapping {
            prot: flags.prot(),
            shared: flags.has(Flags::SHARED),
            object,
        };
        self.regions.map(self.vm.regions(), range, mapping);
    }

    /// The regions in `range` are about to change.
    #[inline]
    pub(super) fn region_changes(&self, range: VaRange) -> Changing<'_, S> {
        self.regions.change(self.vm.regions(), range)
    }

    /// Nothing of `range` is mapped now.
    pub(super) fn region_gone(&self, range: VaRange) {
        self.regions.unmap(self.vm.regions(), range);
    }

    /// All of `range` has these rights now.
    pub(super) fn region_protected(&self, range: VaRange, prot: Prot) {
        self.regions.protect(self.vm.regions(), range, prot);
    }
}
