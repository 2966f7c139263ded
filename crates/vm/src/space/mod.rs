//! An address space: its mapped ranges and their rights.
//!
//! The pmap's tree of slots ([`crate::tree`]) has the mappings: an operation locks
//! the slots of its range and nothing else, so operations on different 2 MiB share no
//! line. Where a mapping goes is found per CPU ([`arena`]).

mod access;
mod advise;
mod arena;
mod around;
mod brk;
mod duplicate;
mod fault;
mod footprint;
mod fork;
mod gate;
mod limits;
mod lock;
mod map;
mod moving;
mod msync;
mod pages;
mod place;
mod protect;
mod query;
mod remap;
mod request;
mod stack;
mod supply;
mod touch;
mod unmap;

pub use advise::Advice;
pub use footprint::{Footprint, PagePlace, Stats};
pub use lock::{Bring, Mappings};
pub use query::{MappedObject, Region};
pub use remap::Move;
pub use request::{At, Request};

use crate::error::Error;
use crate::heap::try_box;
use crate::pmap::Pmap;
use crate::system::{Op, System};
use crate::tree::ALL;
use crate::vm::{Children, Keep, Vm};
use alloc::boxed::Box;
use alloc::sync::Arc;
use arena::Arenas;
use brk::HeapEnd;
use gate::Guard;
use limits::Limits;
use machine::{Atomics, PAGE_SIZE, Platform, Topology, VaRange, pte};
use sync::Padded;

/// The lowest address that is ever mapped.
pub const LOWEST: usize = 1 << 16;
/// The first address that is never mapped.
pub const HIGHEST: usize = pte::USER_END - PAGE_SIZE;
/// The address at which a space's heap begins.
pub const HEAP_START: usize = 1 << 32;
/// The address from which `map` looks for room.
pub const MAP_START: usize = 1 << 40;

/// An address space. Dropping it unmaps all.
///
/// The fields are written once; the data that operations write is elsewhere.
pub struct Space<S: System> {
    vm: Keep<S>,
    /// Keeps the VM alive for the spaces that are forked from here.
    children: Children<S>,
    pmap: Arc<Pmap<S>>,
    arenas: Arenas<S::Machine>,
    written: Box<Written<S::Machine>>,
}

/// The data that operations on a space write, on lines of its own.
struct Written<M: Platform> {
    heap_end: Padded<HeapEnd<M>>,
    limits: Padded<Limits<M>>,
}

impl<S: System> Space<S> {
    /// An empty space.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    ///
    /// # Panics
    /// If the caller runs on no CPU of the VM's machine, as do all operations that need one.
    pub fn new(vm: &Arc<Vm<S>>) -> Result<Self, Error> {
        Self::kept(Keep::new(vm)?)
    }

    fn kept(vm: Keep<S>) -> Result<Self, Error> {
        let arenas = Arenas::new(vm.machine().cpus())?;
        let written = try_box(Written {
            heap_end: Padded(HeapEnd::new()),
            limits: Padded(Limits::new()),
        })?;
        S::Machine::label_value(&written.heap_end, "Space.heap_end");
        S::Machine::label_value(&written.limits, "Space.limits");
        Ok(Space {
            pmap: vm.with_frames(|| Pmap::kept(vm.clone()))?,
            children: Children::none(),
            arenas,
            written,
            vm,
        })
    }

    /// The VM the space belongs to.
    pub fn vm(&self) -> &Arc<Vm<S>> {
        &self.vm
    }

    /// The space as the hardware sees it.
    pub fn pmap(&self) -> &Arc<Pmap<S>> {
        &self.pmap
    }

    /// Makes the calling CPU run in this space.
    pub fn activate(&self) {
        self.pmap.activate();
    }

    /// Unmaps all, as `exec` does before it maps the new program. When it returns, no CPU reaches
    /// the old pages. Limits stay; new memory is not locked any more. O(slots + pages).
    pub fn exec(&self) {
        let mut op = self.begin(Op::Change);
        self.clear_all(&mut op);
    }

    /// Unmaps all for the only task that uses the space; at less cost than [`Space::exec`], since
    /// it holds one slot at a time.
    ///
    /// # Safety
    /// Until it returns no other task does anything with the space except activate it.
    pub unsafe fn exec_alone(&self) {
        let mut op = self.begin(Op::Change);
        if self.clear_slots().is_err() {
            return self.clear_all(&mut op);
        }
        self.written.heap_end.set(HEAP_START);
        // SAFETY: the caller says that no other task uses them.
        unsafe { self.forget_future() };
    }

    /// Unmaps all, slot by slot: no other task maps anything here. Fails if there is no memory to
    /// unmap parts.
    fn clear_slots(&self) -> Result<(), Error> {
        let mut occupied = self.pmap.tree.occupied(ALL);
        occupied.try_for_each(|place| {
            self.clear(place, place.range, &mut Guard::<S>::default())
                .map(drop)
        })
    }

    /// `range` with its end rounded up to pages, if a request may name that.
    fn in_pages(range: VaRange) -> Result<VaRange, Error> {
        let end = whole_pages(range.end).unwrap_or(0);
        let range = VaRange { end, ..range };
        Self::check(range)?;
        Ok(range)
    }

    /// The range of `bytes` from `at` on, if a request may name that.
    fn in_pages_at(at: usize, bytes: usize) -> Result<VaRange, Error> {
        let end = at.checked_add(bytes).unwrap_or(0);
        Self::in_pages(VaRange { start: at, end })
    }

    /// Checks that a request may name `range`.
    fn check(range: VaRange) -> Result<(), Error> {
        let invalid = |reason| Err(Error::Invalid { reason });
        if !range.start.is_multiple_of(PAGE_SIZE) {
            return invalid("the address is not page-aligned");
        }
        if range.end <= range.start {
            return invalid("the length is zero or wraps around");
        }
        if range.start < LOWEST || range.end > HIGHEST {
            return invalid("the range is outside of a task's addresses");
        }
        Ok(())
    }
}

impl<S: System> Drop for Space<S> {
    fn drop(&mut self) {
        if self.clear_slots().is_err() {
            self.clear_all(&mut Guard::<S>::default());
        }
    }
}

/// `bytes` in whole pages; `None` if that overflows.
pub(crate) fn whole_pages(bytes: usize) -> Option<usize> {
    bytes.checked_next_multiple_of(PAGE_SIZE)
}
