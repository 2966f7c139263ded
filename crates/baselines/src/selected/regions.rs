//! Any way of keeping regions.

use crate::freebsd::{EntryFault, FileObject, VmEntries};
use crate::linux::{
    AddressSpace, Changing, Common, Faulted, Fixes, Linux, Mutexes, PageState, Rwsems, SpinLocks,
};
use crate::openbsd::{AmapList, FaultLocks, MapEntries, Uobj};
use alloc::boxed::Box;
use alloc::sync::Arc;
use machine::{Access, CpuRange, Frame, Machine, VaRange};
use vm::policy::{Mapping, Regions};
use vm::{Error, Prot};

/// The regions' records of an [`AnyRegions`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keeping {
    /// Nothing beside `vm`'s tree.
    #[default]
    Nothing,
    /// [`VmEntries`].
    FreeBsd,
    /// [`Linux`] with [`SpinLocks`].
    LinuxSpinLocks(Fixes),
    /// [`Linux`] with [`Mutexes`].
    LinuxMutexes(Fixes),
    /// [`Linux`] with [`Rwsems`].
    LinuxRwsems(Fixes),
    /// [`MapEntries`].
    OpenBsd,
}

/// A space's regions, of the kind that was chosen when the VM was made.
pub enum AnyRegions<M: Machine> {
    /// See [`Keeping::Nothing`].
    Nothing,
    /// See [`Keeping::FreeBsd`].
    FreeBsd(Box<VmEntries<M>>),
    /// See [`Keeping::LinuxSpinLocks`].
    LinuxSpinLocks(Box<Linux<M, SpinLocks>>),
    /// See [`Keeping::LinuxMutexes`].
    LinuxMutexes(Box<Linux<M, Mutexes>>),
    /// See [`Keeping::LinuxRwsems`].
    LinuxRwsems(Box<Linux<M, Rwsems>>),
    /// See [`Keeping::OpenBsd`].
    OpenBsd(Box<MapEntries<M>>),
}

/// The state that the spaces share.
pub enum AnyCommon<M: Machine> {
    /// See [`Keeping::Nothing`].
    Nothing,
    /// See [`Keeping::FreeBsd`].
    FreeBsd,
    /// See [`Keeping::LinuxSpinLocks`].
    LinuxSpinLocks(Common<M, SpinLocks>),
    /// See [`Keeping::LinuxMutexes`].
    LinuxMutexes(Common<M, Mutexes>),
    /// See [`Keeping::LinuxRwsems`].
    LinuxRwsems(Common<M, Rwsems>),
    /// See [`Keeping::OpenBsd`].
    OpenBsd(AmapList<M>),
}

/// An object's part of the records.
pub enum AnyObject<M: Machine> {
    /// See [`Keeping::Nothing`].
    Nothing,
    /// See [`Keeping::FreeBsd`].
    FreeBsd(FileObject<M>),
    /// See [`Keeping::LinuxSpinLocks`].
    LinuxSpinLocks(Arc<AddressSpace<M, SpinLocks>>),
    /// See [`Keeping::LinuxMutexes`].
    LinuxMutexes(Arc<AddressSpace<M, Mutexes>>),
    /// See [`Keeping::LinuxRwsems`].
    LinuxRwsems(Arc<AddressSpace<M, Rwsems>>),
    /// See [`Keeping::OpenBsd`].
    OpenBsd(Uobj<M>),
}

/// The records' part of a fault.
pub enum AnyFault<'a, M: Machine> {
    /// See [`Keeping::Nothing`].
    Nothing,
    /// See [`Keeping::FreeBsd`].
    FreeBsd(EntryFault<'a, M>),
    /// See [`Keeping::LinuxSpinLocks`].
    LinuxSpinLocks(Faulted<'a, M, SpinLocks>),
    /// See [`Keeping::LinuxMutexes`].
    LinuxMutexes(Faulted<'a, M, Mutexes>),
    /// See [`Keeping::LinuxRwsems`].
    LinuxRwsems(Faulted<'a, M, Rwsems>),
    /// See [`Keeping::OpenBsd`].
    OpenBsd(FaultLocks<'a, M>),
}

impl<M: Machine> Clone for AnyObject<M> {
    fn clone(&self) -> Self {
        match self {
            AnyObject::Nothing => AnyObject::Nothing,
            AnyObject::FreeBsd(object) => AnyObject::FreeBsd(object.clone()),
            AnyObject::LinuxSpinLocks(object) => AnyObject::LinuxSpinLocks(object.clone()),
            AnyObject::LinuxMutexes(object) => AnyObject::LinuxMutexes(object.clone()),
            AnyObject::LinuxRwsems(object) => AnyObject::LinuxRwsems(object.clone()),
            AnyObject::OpenBsd(object) => AnyObject::OpenBsd(object.clone()),
        }
    }
}

/// Regions, objects, faults and their shared state belong to one VM, so they are of one kind.
#[cold]
#[inline(never)]
#[track_caller]
fn another_vms_records() -> ! {
    panic!("records of regions meet those of another VM, of another kind");
}

/// The object's part of a mapping.
macro_rules! mapping {
    ($mapping:expr, $kind:ident) => {
        Mapping {
            prot: $mapping.prot,
            shared: $mapping.shared,
            object: $mapping.object.map(|(object, first)| match object {
                AnyObject::$kind(object) => (object, first),
                _ => another_vms_records(),
            }),
        }
    };
}

/// Runs `$do` with the regions and their shared state, if there are records.
macro_rules! dispatch {
    ($any:expr, $common:expr, |$regions:ident, $of:ident| $do:expr) => {
        match ($any, $common) {
            (AnyRegions::FreeBsd($regions), AnyCommon::FreeBsd) => {
                let $of = &();
                $do
            }
            (AnyRegions::LinuxSpinLocks($regions), AnyCommon::LinuxSpinLocks($of)) => $do,
            (AnyRegions::LinuxMutexes($regions), AnyCommon::LinuxMutexes($of)) => $do,
            (AnyRegions::LinuxRwsems($regions), AnyCommon::LinuxRwsems($of)) => $do,
            (AnyRegions::OpenBsd($regions), AnyCommon::OpenBsd($of)) => $do,
            (AnyRegions::Nothing, AnyCommon::Nothing) => {}
            _ => another_vms_records(),
        }
    };
}

/// The records, where there are some.
impl<M: Machine> AnyRegions<M> {
    #[inline]
    fn are_kept(&self) -> bool {
        !matches!(self, AnyRegions::Nothing)
    }

    #[inline(never)]
    fn map_kept(&self, common: &AnyCommon<M>, range: VaRange, mapping: Mapping<AnyObject<M>>) {
        match (self, common) {
            (AnyRegions::FreeBsd(regions), AnyCommon::FreeBsd) => {
                regions.map(&(), range, mapping!(mapping, FreeBsd));
            }
            (AnyRegions::LinuxSpinLocks(regions), AnyCommon::LinuxSpinLocks(of)) => {
                regions.map(of, range, mapping!(mapping, LinuxSpinLocks));
            }
            (AnyRegions::LinuxMutexes(regions), AnyCommon::LinuxMutexes(of)) => {
                regions.map(of, range, mapping!(mapping, LinuxMutexes));
            }
            (AnyRegions::LinuxRwsems(regions), AnyCommon::LinuxRwsems(of)) => {
                regions.map(of, range, mapping!(mapping, LinuxRwsems));
            }
            (AnyRegions::OpenBsd(regions), AnyCommon::OpenBsd(of)) => {
                regions.map(of, range, mapping!(mapping, OpenBsd));
            }
            (AnyRegions::Nothing, AnyCommon::Nothing) => {}
            _ => another_vms_records(),
        }
    }

    #[inline(never)]
    #[track_caller]
    fn change_kept<'a>(
        &'a self,
        common: &'a AnyCommon<M>,
        range: VaRange,
    ) -> Option<Changing<'a, M>> {
        match (self, common) {
            (AnyRegions::LinuxRwsems(regions), AnyCommon::LinuxRwsems(of)) => {
                Some(regions.change(of, range))
            }
            (AnyRegions::LinuxRwsems(_), _) | (_, AnyCommon::LinuxRwsems(_)) => {
                another_vms_records()
            }
            _ => None,
        }
    }

    #[inline(never)]
    #[track_caller]
    fn unmap_kept(&self, common: &AnyCommon<M>, range: VaRange) {
        dispatch!(self, common, |regions, of| regions.unmap(of, range));
    }

    #[inline(never)]
    #[track_caller]
    fn protect_kept(&self, common: &AnyCommon<M>, range: VaRange, prot: Prot) {
        dispatch!(self, common, |regions, of| regions.protect(of, range, prot));
    }
}

/// A page's state is Linux's, unused by the others.
impl<M: Machine> Regions<M> for AnyRegions<M> {
    type Config = Keeping;
    type Common = AnyCommon<M>;
    type Page = PageState<M>;
    type Object = AnyObject<M>;
    type Fault<'a> = AnyFault<'a, M>;
    /// Only [`Keeping::LinuxRwsems`] keeps faults out.
    type Changing<'a> = Option<Changing<'a, M>>;

    fn common(keeping: &Keeping, cpus: CpuRange, frames: usize) -> Result<AnyCommon<M>, Error> {
        Ok(match keeping {
            Keeping::Nothing => AnyCommon::Nothing,
            Keeping::FreeBsd => AnyCommon::FreeBsd,
            Keeping::LinuxSpinLocks(fixes) => {
                AnyCommon::LinuxSpinLocks(Linux::common(fixes, cpus, frames)?)
            }
            Keeping::LinuxMutexes(fixes) => {
                AnyCommon::LinuxMutexes(Linux::common(fixes, cpus, frames)?)
            }
            Keeping::LinuxRwsems(fixes) => {
                AnyCommon::LinuxRwsems(Linux::common(fixes, cpus, frames)?)
            }
            Keeping::OpenBsd => AnyCommon::OpenBsd(MapEntries::common(&(), cpus, frames)?),
        })
    }

    fn is_silent(common: &AnyCommon<M>) -> bool {
        matches!(common, AnyCommon::Nothing)
    }

    fn new(common: &AnyCommon<M>) -> Self {
        match common {
            AnyCommon::Nothing => AnyRegions::Nothing,
            AnyCommon::FreeBsd => AnyRegions::FreeBsd(Box::new(VmEntries::new(&()))),
            AnyCommon::LinuxSpinLocks(of) => AnyRegions::LinuxSpinLocks(Box::new(Linux::new(of))),
            AnyCommon::LinuxMutexes(of) => AnyRegions::LinuxMutexes(Box::new(Linux::new(of))),
            AnyCommon::LinuxRwsems(of) => AnyRegions::LinuxRwsems(Box::new(Linux::new(of))),
            AnyCommon::OpenBsd(of) => AnyRegions::OpenBsd(Box::new(MapEntries::new(of))),
        }
    }

    fn new_page() -> PageState<M> {
        Linux::<M, SpinLocks>::new_page()
    }

    fn new_object(common: &AnyCommon<M>) -> AnyObject<M> {
        match common {
            AnyCommon::Nothing => AnyObject::Nothing,
            AnyCommon::FreeBsd => AnyObject::FreeBsd(VmEntries::<M>::new_object(&())),
            AnyCommon::LinuxSpinLocks(of) => AnyObject::LinuxSpinLocks(Linux::new_object(of)),
            AnyCommon::LinuxMutexes(of) => AnyObject::LinuxMutexes(Linux::new_object(of)),
            AnyCommon::LinuxRwsems(of) => AnyObject::LinuxRwsems(Linux::new_object(of)),
            AnyCommon::OpenBsd(of) => AnyObject::OpenBsd(MapEntries::new_object(of)),
        }
    }

    #[inline]
    fn map(&self, common: &AnyCommon<M>, range: VaRange, mapping: Mapping<AnyObject<M>>) {
        if self.are_kept() {
            self.map_kept(common, range, mapping);
        }
    }

    #[inline]
    #[track_caller]
    fn change<'a>(&'a self, common: &'a AnyCommon<M>, range: VaRange) -> Option<Changing<'a, M>> {
        if self.are_kept() {
            self.change_kept(common, range)
        } else {
            None
        }
    }

    #[inline]
    #[track_caller]
    fn unmap(&self, common: &AnyCommon<M>, range: VaRange) {
        if self.are_kept() {
            self.unmap_kept(common, range);
        }
    }

    #[inline]
    #[track_caller]
    fn protect(&self, common: &AnyCommon<M>, range: VaRange, prot: Prot) {
        if self.are_kept() {
            self.protect_kept(common, range, prot);
        }
    }

    #[track_caller]
    fn fork(&self, common: &AnyCommon<M>, child: &Self) {
        match (self, common, child) {
            (AnyRegions::FreeBsd(regions), AnyCommon::FreeBsd, AnyRegions::FreeBsd(child)) => {
                regions.fork(&(), child)
            }
            (
                AnyRegions::LinuxSpinLocks(regions),
                AnyCommon::LinuxSpinLocks(of),
                AnyRegions::LinuxSpinLocks(child),
            ) => regions.fork(of, child),
            (
                AnyRegions::LinuxMutexes(regions),
                AnyCommon::LinuxMutexes(of),
                AnyRegions::LinuxMutexes(child),
            ) => regions.fork(of, child),
            (
                AnyRegions::LinuxRwsems(regions),
                AnyCommon::LinuxRwsems(of),
                AnyRegions::LinuxRwsems(child),
            ) => regions.fork(of, child),
            (AnyRegions::OpenBsd(regions), AnyCommon::OpenBsd(of), AnyRegions::OpenBsd(child)) => {
                regions.fork(of, child)
            }
            (AnyRegions::Nothing, AnyCommon::Nothing, AnyRegions::Nothing) => {}
            _ => another_vms_records(),
        }
    }

    fn wants_copy(&self, address: usize, access: Access) -> bool {
        match self {
            AnyRegions::FreeBsd(regions) => regions.wants_copy(address, access),
            AnyRegions::OpenBsd(regions) => regions.wants_copy(address, access),
            AnyRegions::Nothing
            | AnyRegions::LinuxSpinLocks(_)
            | AnyRegions::LinuxMutexes(_)
            | AnyRegions::LinuxRwsems(_) => false,
        }
    }

    #[track_caller]
    fn copy(&self, common: &AnyCommon<M>, address: usize) {
        dispatch!(self, common, |regions, of| regions.copy(of, address));
    }

    #[inline]
    #[track_caller]
    fn fault_alone<'a>(
        &'a self,
        common: &'a AnyCommon<M>,
        address: usize,
        access: Access,
    ) -> Option<AnyFault<'a, M>> {
        match (self, common) {
            (AnyRegions::LinuxRwsems(regions), AnyCommon::LinuxRwsems(of)) => {
                let fault = regions.fault_alone(of, address, access);
                fault.map(AnyFault::LinuxRwsems)
            }
            (AnyRegions::LinuxRwsems(_), _) | (_, AnyCommon::LinuxRwsems(_)) => {
                another_vms_records()
            }
            _ => None,
        }
    }

    #[track_caller]
    fn fault<'a>(
        &'a self,
        common: &'a AnyCommon<M>,
        address: usize,
        access: Access,
    ) -> AnyFault<'a, M> {
        match (self, common) {
            (AnyRegions::FreeBsd(regions), AnyCommon::FreeBsd) => {
                AnyFault::FreeBsd(regions.fault(&(), address, access))
            }
            (AnyRegions::LinuxSpinLocks(regions), AnyCommon::LinuxSpinLocks(of)) => {
                AnyFault::LinuxSpinLocks(regions.fault(of, address, access))
            }
            (AnyRegions::LinuxMutexes(regions), AnyCommon::LinuxMutexes(of)) => {
                AnyFault::LinuxMutexes(regions.fault(of, address, access))
            }
            (AnyRegions::LinuxRwsems(regions), AnyCommon::LinuxRwsems(of)) => {
                AnyFault::LinuxRwsems(regions.fault(of, address, access))
            }
            (AnyRegions::OpenBsd(regions), AnyCommon::OpenBsd(of)) => {
                AnyFault::OpenBsd(regions.fault(of, address, access))
            }
            (AnyRegions::Nothing, AnyCommon::Nothing) => AnyFault::Nothing,
            _ => another_vms_records(),
        }
    }

    fn took(&self, fault: &AnyFault<'_, M>, frame: Frame, page: &PageState<M>) {
        match (self, fault) {
            (AnyRegions::LinuxSpinLocks(regions), AnyFault::LinuxSpinLocks(fault)) => {
                regions.took(fault, frame, page);
            }
            (AnyRegions::LinuxMutexes(regions), AnyFault::LinuxMutexes(fault)) => {
                regions.took(fault, frame, page);
            }
            (AnyRegions::LinuxRwsems(regions), AnyFault::LinuxRwsems(fault)) => {
                regions.took(fault, frame, page);
            }
            (AnyRegions::OpenBsd(regions), AnyFault::OpenBsd(fault)) => {
                regions.took(fault, frame, &());
            }
            (AnyRegions::Nothing, AnyFault::Nothing)
            | (AnyRegions::FreeBsd(_), AnyFault::FreeBsd(_)) => {}
            _ => another_vms_records(),
        }
    }

    fn walk(common: &AnyCommon<M>, frame: Frame, page: &PageState<M>) {
        match common {
            AnyCommon::Nothing | AnyCommon::FreeBsd => {}
            AnyCommon::LinuxSpinLocks(of) => Linux::walk(of, frame, page),
            AnyCommon::LinuxMutexes(of) => Linux::walk(of, frame, page),
            AnyCommon::LinuxRwsems(of) => Linux::walk(of, frame, page),
            AnyCommon::OpenBsd(of) => MapEntries::walk(of, frame, &()),
        }
    }
}
