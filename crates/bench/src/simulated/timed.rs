//! Systems under whose locks time passes.
//!
//! Most of a system call's code runs with the map locked: Linux's `mmap`, `munmap` and `brk`
//! acquire `mmap_lock` a few instructions behind the entry, FreeBSD's and OpenBSD's the lock of
//! their `vm_map`. Of that code a simulated machine sees the lines which it shares with other CPUs,
//! and of the rest it knows only how long it takes, if that has been fitted
//! ([`Fitted::Change`](super::Fitted::Change)). So this time passes where the map has been locked
//! for writing.

use crate::ours::pass;
use machine::Frame;
use sim::Sim;
use std::marker::PhantomData;
use vm::system::{Change, Extent, Gate, Op, Part};
use vm::{Error, Options, System};

/// The system `S`, where a change of a map takes some time more.
pub struct Timed<S>(PhantomData<S>);

impl<S: System<Machine = Sim>> System for Timed<S> {
    type Machine = Sim;
    type Invalidation = S::Invalidation;
    type Swap = S::Swap;
    type Gate = TimedGate<S::Gate>;
    type Queues = S::Queues;
    type PvLocks = S::PvLocks;
    type PvChunks = S::PvChunks;
}

/// Adds to `options` the nanoseconds by which a change of a map takes longer.
pub fn timed<S: System<Machine = Sim>>(options: Options<S>, change: f64) -> Options<Timed<S>> {
    Options {
        gate: (options.gate, change),
        invalidation: options.invalidation,
        swap: options.swap,
        queues: options.queues,
        pv_locks: options.pv_locks,
        pv_chunks: options.pv_chunks,
        swap_pages: options.swap_pages,
        swap_space: options.swap_space,
        out_of_memory: options.out_of_memory,
        interrupted: options.interrupted,
        overcommit: options.overcommit,
        superpages: options.superpages,
        frame_pools: options.frame_pools,
        fork_tables: options.fork_tables,
        object_pages: options.object_pages,
        fault_around: options.fault_around,
    }
}

pub struct TimedGate<G> {
    gate: G,
    /// Nanoseconds.
    change: f64,
}

impl<G: Gate<Sim>> Part<Sim> for TimedGate<G> {
    type Config = (G::Config, f64);

    fn new((gate, change): &Self::Config, extent: Extent) -> Result<Self, Error> {
        Ok(TimedGate {
            gate: G::new(gate, extent)?,
            change: *change,
        })
    }

    fn is_silent(&self) -> bool {
        self.gate.is_silent()
    }
}

impl<G: Gate<Sim>> Gate<Sim> for TimedGate<G> {
    type Space = G::Space;
    type Page = G::Page;
    type Object = G::Object;
    type Guard<'a> = G::Guard<'a>;
    type Pmap<'a> = G::Pmap<'a>;

    fn new_space(&self) -> G::Space {
        self.gate.new_space()
    }

    fn new_object(&self) -> G::Object {
        self.gate.new_object()
    }

    fn label_space(space: &G::Space) {
        G::label_space(space);
    }

    #[track_caller]
    fn begin<'a>(&'a self, space: &'a G::Space, op: Op) -> G::Guard<'a> {
        let guard = self.gate.begin(space, op);
        if matches!(op, Op::Change) && !self.gate.is_silent() {
            pass(self.change);
        }
        guard
    }

    #[track_caller]
    fn report<'a>(
        &'a self,
        space: &'a G::Space,
        guard: &mut G::Guard<'a>,
        change: Change<'_, Sim, Self>,
    ) {
        self.gate.report(space, guard, change.of());
    }

    #[track_caller]
    fn lock_pmap<'a>(&self, space: &'a G::Space) -> G::Pmap<'a> {
        self.gate.lock_pmap(space)
    }

    #[track_caller]
    fn try_lock_pmap<'a>(&self, space: &'a G::Space) -> Option<G::Pmap<'a>> {
        self.gate.try_lock_pmap(space)
    }

    fn walk(&self, frame: Frame, page: &G::Page) {
        self.gate.walk(frame, page);
    }
}
