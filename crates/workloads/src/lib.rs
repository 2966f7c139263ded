//! The workloads of will-it-scale, written once and run on every system.
//!
//! A [`Workload`] is a loop over the operations of a [`System`]: the kernel of this computer, or
//! scalevm's own virtual memory on some machine. Each task runs the loop on its own handle of the
//! system and counts with its own [`Counter`]; the measuring program reads the counters from
//! outside.
//!
//! The loops and the sizes are those of will-it-scale
//! (<https://github.com/antonblanchard/will-it-scale>), so results compare with published ones. Of
//! those that it lacks, fork1 and exec1 follow lmbench, and pft the test of that name; build,
//! desktop, exim, fragment, madvise1, mprotect1, mremap1, reclaim1 and smaps1 are new here. The
//! differences: a workload stops when its counter says so, instead of being killed, and checks
//! every call.
#![no_std]

extern crate alloc;

mod brk1;
mod build;
mod context_switch1;
mod counter;
mod desktop;
mod error;
mod exec1;
mod exim;
mod feature;
mod fork1;
mod fragment;
mod futex1;
mod lock1;
mod madvise1;
mod malloc1;
mod mmap1;
mod mmap2;
mod mprotect1;
mod mremap1;
mod one_mapping;
mod open1;
mod page_fault1;
mod page_fault2;
mod page_fault3;
mod pipe1;
mod player;
mod poll1;
mod program;
mod reclaim1;
pub mod replay;
mod signal1;
mod sized;
mod smaps1;
mod steps;
mod system;
mod tlb_flush;
mod unit;
mod unix1;

pub use build::compile;
pub use counter::{Counter, Spend, Timed};
pub use error::{Call, Error};
pub use exim::{Daemon, Mail};
pub use feature::Feature;
use one_mapping::Pages;
pub use player::{Frame, PERIOD, PLAYER, play};
pub use program::{Files, Input, Program};
pub use system::{Backing, Child, Descriptor, Forked, LAST, Prot, System, work};

/// Bytes that the mapping workloads map: 128 MiB.
pub const SIZE: usize = 128 << 20;

/// A workload's needs beyond anonymous mappings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needs {
    /// Mappings of files.
    pub files: bool,
    /// A program break.
    pub brk: bool,
    /// Changing the rights of a mapping.
    pub protect: bool,
    /// Dropping pages of a mapping (`MADV_DONTNEED`).
    pub discard: bool,
    /// The most bytes that a task touches.
    pub memory: usize,
    /// Further features.
    pub features: &'static [Feature],
}

impl Needs {
    /// Anonymous mappings are enough.
    pub const NOTHING: Needs = Needs {
        files: false,
        brk: false,
        protect: false,
        discard: false,
        memory: 0,
        features: &[],
    };
}

/// A workload: its name, its description, its needs.
#[derive(Debug, PartialEq, Eq)]
pub struct Workload {
    /// The name on the command line, as in will-it-scale.
    pub name: &'static str,
    /// The text that will-it-scale prints after `testcase:`.
    pub description: &'static str,
    /// The unit of its counter, in the plural.
    pub unit: &'static str,
    /// The features that the system must offer.
    pub needs: Needs,
    /// Bytes that it maps at a time; 0 if it maps none, or they cannot be chosen.
    pub size: usize,
    body: Body,
}

/// Names the loop; a function pointer cannot be generic over the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Body {
    Brk1,
    Build,
    ContextSwitch1,
    Desktop,
    Exec1,
    Exim,
    Fork1,
    Fragment,
    Futex1,
    Lock1,
    Madvise1,
    Malloc1,
    Mmap1,
    Mmap2,
    Mprotect1,
    Mremap1,
    NearFault1,
    Open1,
    PageFault1,
    PageFault2,
    PageFault3,
    Pft,
    Pipe1,
    Poll1,
    Reclaim1,
    Replay(&'static replay::Replay),
    Signal1,
    Smaps1,
    TlbFlush1,
    TlbFlush2,
    Unix1,
}

impl Workload {
    /// Returns true if a task that has done an operation takes the next that has not begun, as
    /// make's jobs do. Otherwise each task has its share.
    pub const fn is_dealt(&self) -> bool {
        matches!(self.body, Body::Build)
    }

    /// The number of operations that a task counts until it does what ends an iteration, if that is
    /// more than a few, with pages of `page` bytes.
    pub const fn round(&self, page: usize) -> u64 {
        match self.body {
            Body::PageFault1
            | Body::PageFault2
            | Body::PageFault3
            | Body::NearFault1
            | Body::Pft
            | Body::TlbFlush1
            | Body::TlbFlush2
            | Body::Madvise1 => (self.size / page) as u64,
            Body::Replay(replay) => replay.operations,
            _ => 1,
        }
    }

    /// The recorded program that it runs, if it is one.
    pub const fn replay(&self) -> Option<&'static replay::Replay> {
        match self.body {
            Body::Replay(replay) => Some(replay),
            _ => None,
        }
    }

    /// Runs the loop on `system` until `tick` tells it to stop, then unmaps its mappings.
    ///
    /// # Errors
    /// The first call that fails or gives a wrong result ends the loop.
    pub fn run<S: System>(&self, system: &mut S, tick: &Counter) -> Result<(), Error> {
        match self.body {
            Body::Brk1 => brk1::run(system, tick),
            Body::Build => build::run(system, tick),
            Body::ContextSwitch1 => context_switch1::run(system, tick),
            Body::Desktop => desktop::run(system, tick),
            Body::Exec1 => exec1::run(system, tick),
            Body::Exim => exim::run(system, tick),
            Body::Fork1 => fork1::run(system, tick),
            Body::Fragment => fragment::run(system, tick),
            Body::Futex1 => futex1::run(system, tick),
            Body::Lock1 => lock1::run(system, tick),
            Body::Madvise1 => madvise1::run(system, tick, self.size),
            Body::Malloc1 => malloc1::run(system, tick, self.size),
            Body::Mmap1 => mmap1::run(system, tick, self.size),
            Body::Mmap2 => mmap2::run(system, tick, self.size),
            Body::Mprotect1 => mprotect1::run(system, tick),
            Body::Mremap1 => mremap1::run(system, tick),
            Body::NearFault1 => one_mapping::run(system, tick, self.size, Pages::Near),
            Body::Open1 => open1::run(system, tick),
            Body::PageFault1 => page_fault1::run(system, tick, self.size),
            Body::PageFault2 => page_fault2::run(system, tick, self.size),
            Body::PageFault3 => page_fault3::run(system, tick, self.size),
            Body::Pft => one_mapping::run(system, tick, self.size, Pages::Apart),
            Body::Pipe1 => pipe1::run(system, tick),
            Body::Poll1 => poll1::run(system, tick),
            Body::Reclaim1 => reclaim1::run(system, tick, self.size),
            Body::Replay(replay) => replay::run(replay, system, tick),
            Body::Signal1 => signal1::run(system, tick),
            Body::Smaps1 => smaps1::run(system, tick),
            Body::TlbFlush1 => tlb_flush::run_file(system, tick, self.size),
            Body::TlbFlush2 => tlb_flush::run_anonymous(system, tick, self.size),
            Body::Unix1 => unix1::run(system, tick),
        }
    }
}

/// All workloads, by name.
pub const fn all() -> &'static [Workload] {
    const ALL: [Workload; 30] = [
        brk1::WORKLOAD,
        build::WORKLOAD,
        context_switch1::WORKLOAD,
        desktop::WORKLOAD,
        exec1::WORKLOAD,
        exim::WORKLOAD,
        fork1::WORKLOAD,
        fragment::WORKLOAD,
        futex1::WORKLOAD,
        lock1::WORKLOAD,
        madvise1::WORKLOAD,
        malloc1::WORKLOAD,
        mmap1::WORKLOAD,
        mmap2::WORKLOAD,
        mprotect1::WORKLOAD,
        mremap1::WORKLOAD,
        one_mapping::NEAR,
        open1::WORKLOAD,
        page_fault1::WORKLOAD,
        page_fault2::WORKLOAD,
        page_fault3::WORKLOAD,
        one_mapping::APART,
        pipe1::WORKLOAD,
        poll1::WORKLOAD,
        reclaim1::WORKLOAD,
        signal1::WORKLOAD,
        smaps1::WORKLOAD,
        tlb_flush::FILE,
        tlb_flush::ANONYMOUS,
        unix1::WORKLOAD,
    ];
    &ALL
}

/// The workload called `name`. One that maps memory may have a size other than will-it-scale's:
/// `page_fault1:1M`; it stays as long as the process.
pub fn find(name: &str) -> Option<&'static Workload> {
    let (name, size) = match name.split_once(':') {
        Some((name, size)) => (name, Some(size)),
        None => (name, None),
    };
    let found = all().iter().find(|workload| workload.name == name)?;
    match size {
        Some(size) => found.sized(size),
        None => Some(found),
    }
}
