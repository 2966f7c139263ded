//! `Debug` of what CPUs share: its name.

use crate::frames::Frames;
use crate::invalidation::{Snapshots, Stamp};
use crate::object::{Attached, Attachment, Home, Object, ObjectRef, PageRef};
use crate::page::Page;
use crate::pager::MemoryPager;
use crate::pmap::Pmap;
use crate::proc::Names;
use crate::pv::Links;
use crate::space::{Request, Space};
use crate::swap::{Loading, PerCpuSwap, SwapIn, SwapSpace};
use crate::system::{Change, Gate, PvByteHeld, System};
use crate::vm::{Hold, Options, Vm};
use machine::{Machine, Platform, opaque_debug};

opaque_debug! {
    [S: System] Attached<S>;
    [S: System] Attachment<S>;
    [M: Machine, G: Gate<M>] Change<'_, M, G>;
    [M: Platform] Frames<M>;
    [S: System] Hold<S>;
    [S: System] Home<'_, S>;
    [] Links;
    [M: Platform] Loading<'_, M>;
    [M: Platform] MemoryPager<M>;
    [] Names<'_>;
    [S: System] Object<S>;
    [S: System] ObjectRef<S>;
    [S: System] Options<S>;
    [S: System] Page<S>;
    [S: System] PageRef<'_, S>;
    [M: Machine] PerCpuSwap<M>;
    [S: System] Pmap<S>;
    [M: Machine] PvByteHeld<'_, M>;
    [S: System] Request<'_, S>;
    [M: Machine] Snapshots<M>;
    [S: System] Space<S>;
    [M: Machine] Stamp<M>;
    [M: Platform, H] SwapIn<'_, M, H>;
    [M: Platform] SwapSpace<M>;
    [S: System] Vm<S>;
}
