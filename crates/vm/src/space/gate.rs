//! The calls of the gate.

use super::Space;
use super::map::New;
use crate::flags::Flags;
use crate::object::Attached;
use crate::system::{Change, Gate, Mapping, Op, System};
use crate::tree::Attributes;
use machine::VaRange;

/// Held by an operation.
pub(super) type Guard<'a, S> = <<S as System>::Gate as Gate<<S as System>::Machine>>::Guard<'a>;
type GateObject<S> = <<S as System>::Gate as Gate<<S as System>::Machine>>::Object;

impl<S: System> Space<S> {
    /// Begins an operation. No lock of the VM is held.
    #[inline]
    #[track_caller]
    pub(super) fn begin(&self, op: Op) -> Guard<'_, S> {
        self.vm.gate().begin(&self.pmap.gate, op)
    }

    /// Tells the gate what the operation with this guard changes.
    #[inline]
    #[track_caller]
    pub(super) fn report<'a>(
        &'a self,
        guard: &mut Guard<'a, S>,
        change: Change<'_, S::Machine, S::Gate>,
    ) {
        self.vm.gate().report(&self.pmap.gate, guard, change);
    }

    /// Tells the gate that `new` is mapped at `range`, where nothing was.
    #[inline]
    #[track_caller]
    pub(super) fn report_new<'a>(
        &'a self,
        guard: &mut Guard<'a, S>,
        range: VaRange,
        new: &New<'_, S>,
    ) {
        let object = new.object.map(|(object, first)| (object.gate(), first));
        self.report_mapped(guard, range, new.flags.get(), object);
    }

    /// Tells the gate that a mapping with `attributes` is at `range`, where nothing was.
    #[track_caller]
    pub(super) fn report_like<'a>(
        &'a self,
        guard: &mut Guard<'a, S>,
        range: VaRange,
        attributes: &Attributes<S>,
    ) {
        let object = attributes
            .attachment
            .as_ref()
            .map(|at: &Attached<S>| (at.object().gate(), at.index(range.start)));
        self.report_mapped(guard, range, attributes.flags, object);
    }

    #[inline]
    #[track_caller]
    fn report_mapped<'a>(
        &'a self,
        guard: &mut Guard<'a, S>,
        range: VaRange,
        flags: Flags,
        object: Option<(&GateObject<S>, u64)>,
    ) {
        let mapping = Mapping {
            prot: flags.prot(),
            shared: flags.has(Flags::SHARED),
            object,
        };
        self.report(guard, Change::Mapped(range, mapping));
    }
}
