//! Any way of keeping regions.

use crate::openbsd::{AmapList, FaultLocks, MapEntries, Uobj};
use machine::{Access, CpuRange, Frame, Machine, VaRange};
use vm::Prot;
use vm::policy::{Mapping, Regions};

/// What [`AnyRegions`] are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keeping {
    /// Nothing beside `vm`'s tree.
    #[default]
    Nothing,
    /// [`MapEntries`].
    OpenBsd,
}

/// A space's regions, of the kind that was chosen when the VM was made.
pub enum AnyRegions<M: Machine> {
    /// See [`Keeping::Nothing`].
    Nothing,
    /// See [`Keeping::OpenBsd`].
    OpenBsd(MapEntries<M>),
}

/// What the spaces have in common.
pub enum AnyCommon<M: Machine> {
    /// See [`Keeping::Nothing`].
    Nothing,
    /// See [`Keeping::OpenBsd`].
    OpenBsd(AmapList<M>),
}

/// What an object keeps.
pub enum AnyObject<M: Machine> {
    /// See [`Keeping::Nothing`].
    Nothing,
    /// See [`Keeping::OpenBsd`].
    OpenBsd(Uobj<M>),
}

/// What a fault holds.
pub enum AnyFault<'a, M: Machine> {
    /// See [`Keeping::Nothing`].
    Nothing,
    /// See [`Keeping::OpenBsd`].
    OpenBsd(FaultLocks<'a, M>),
}

impl<M: Machine> Clone for AnyObject<M> {
    fn clone(&self) -> Self {
        match self {
            AnyObject::Nothing => AnyObject::Nothing,
            AnyObject::OpenBsd(object) => AnyObject::OpenBsd(object.clone()),
        }
    }
}

/// The object's part of a mapping; of a kind that is not this VM's there is none.
macro_rules! mapping {
    ($mapping:expr, $kind:ident) => {
        Mapping {
            prot: $mapping.prot,
            shared: $mapping.shared,
            object: $mapping.object.and_then(|(object, first)| match object {
                AnyObject::$kind(object) => Some((object, first)),
                _ => None,
            }),
        }
    };
}

/// Does `$do` with the regions and what they have in common, if something is kept.
macro_rules! dispatch {
    ($any:expr, $common:expr, |$regions:ident, $of:ident| $do:expr) => {
        match ($any, $common) {
            (AnyRegions::OpenBsd($regions), AnyCommon::OpenBsd($of)) => $do,
            _ => {}
        }
    };
}

impl<M: Machine> Regions<M> for AnyRegions<M> {
    type Config = Keeping;
    type Common = AnyCommon<M>;
    type Page = ();
    type Object = AnyObject<M>;
    type Fault<'a> = AnyFault<'a, M>;

    fn common(keeping: &Keeping, cpus: CpuRange, frames: usize) -> AnyCommon<M> {
        match keeping {
            Keeping::Nothing => AnyCommon::Nothing,
            Keeping::OpenBsd => {
                AnyCommon::OpenBsd(<MapEntries<M> as Regions<M>>::common(&(), cpus, frames))
            }
        }
    }

    fn new(common: &AnyCommon<M>) -> Self {
        match common {
            AnyCommon::Nothing => AnyRegions::Nothing,
            AnyCommon::OpenBsd(of) => AnyRegions::OpenBsd(MapEntries::new(of)),
        }
    }

    fn new_page() {}

    fn new_object(common: &AnyCommon<M>) -> AnyObject<M> {
        match common {
            AnyCommon::Nothing => AnyObject::Nothing,
            AnyCommon::OpenBsd(of) => AnyObject::OpenBsd(MapEntries::new_object(of)),
        }
    }

    fn map(&self, common: &AnyCommon<M>, range: VaRange, mapping: Mapping<AnyObject<M>>) {
        dispatch!(self, common, |regions, of| regions.map(
            of,
            range,
            mapping!(mapping, OpenBsd)
        ));
    }

    #[track_caller]
    fn unmap(&self, common: &AnyCommon<M>, range: VaRange) {
        dispatch!(self, common, |regions, of| regions.unmap(of, range));
    }

    #[track_caller]
    fn protect(&self, common: &AnyCommon<M>, range: VaRange, prot: Prot) {
        dispatch!(self, common, |regions, of| regions.protect(of, range, prot));
    }

    #[track_caller]
    fn fork(&self, common: &AnyCommon<M>, child: &Self) {
        if let AnyRegions::OpenBsd(child) = child {
            dispatch!(self, common, |regions, of| regions.fork(of, child));
        }
    }

    fn wants_copy(&self, address: usize, access: Access) -> bool {
        match self {
            AnyRegions::Nothing => false,
            AnyRegions::OpenBsd(regions) => regions.wants_copy(address, access),
        }
    }

    #[track_caller]
    fn copy(&self, common: &AnyCommon<M>, address: usize) {
        dispatch!(self, common, |regions, of| regions.copy(of, address));
    }

    #[track_caller]
    fn fault<'a>(
        &'a self,
        common: &'a AnyCommon<M>,
        address: usize,
        access: Access,
    ) -> AnyFault<'a, M> {
        match (self, common) {
            (AnyRegions::OpenBsd(regions), AnyCommon::OpenBsd(of)) => {
                AnyFault::OpenBsd(regions.fault(of, address, access))
            }
            _ => AnyFault::Nothing,
        }
    }

    fn took(&self, fault: &AnyFault<'_, M>, frame: Frame, page: &()) {
        if let (AnyRegions::OpenBsd(regions), AnyFault::OpenBsd(fault)) = (self, fault) {
            regions.took(fault, frame, page);
        }
    }

    fn walk(_: &AnyCommon<M>, _: Frame, _: &()) {}
}
