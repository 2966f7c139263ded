//! `Debug` of what CPUs share: its name.

use crate::frames::Frames;
use crate::invalidation::Snapshots;
use crate::object::{Attached, Attachment, Home, Object, ObjectRef, PageRef};
use crate::page::Page;
use crate::pager::MemoryPager;
use crate::pmap::Pmap;
use crate::policy::{Invalidation, Policies, PvByteHeld};
use crate::proc::Names;
use crate::pv::Links;
use crate::space::{Request, Space};
use crate::swap::{Loading, PerCpuSwap, SwapIn, SwapSpace};
use crate::vm::{Hold, Options, Vm};
use machine::{Machine, Platform, opaque_debug};

opaque_debug! {
    [M: Platform, P: Policies<M>] Attached<M, P>;
    [M: Platform, P: Policies<M>] Attachment<M, P>;
    [M: Platform] Frames<M>;
    [M: Platform, P: Policies<M>] Hold<M, P>;
    [M: Platform, P: Policies<M>] Home<'_, M, P>;
    [] Links;
    [M: Platform] Loading<'_, M>;
    [M: Platform] MemoryPager<M>;
    [] Names<'_>;
    [M: Platform, P: Policies<M>] Object<M, P>;
    [M: Platform, P: Policies<M>] ObjectRef<M, P>;
    [M: Platform, P: Policies<M>] Options<M, P>;
    [M: Machine, I: Invalidation<M>] Page<M, I>;
    [M: Platform, P: Policies<M>] PageRef<'_, M, P>;
    [M: Machine] PerCpuSwap<M>;
    [M: Platform, P: Policies<M>] Pmap<M, P>;
    [M: Machine] PvByteHeld<'_, M>;
    [M: Platform, P: Policies<M>] Request<'_, M, P>;
    [M: Machine] Snapshots<M>;
    [M: Platform, P: Policies<M>] Space<M, P>;
    [M: Platform, H] SwapIn<'_, M, H>;
    [M: Platform] SwapSpace<M>;
    [M: Platform, P: Policies<M>] Vm<M, P>;
}
