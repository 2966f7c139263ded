//! The workloads of will-it-scale, written once and run on every system.
//!
//! A [`Workload`] is a loop over the operations of a [`System`]: the kernel of
//! this computer, or scalevm's own virtual memory on some machine. Each task runs
//! the loop on its own handle of the system and counts with its own [`Counter`];
//! whoever measures reads the counters from outside.
//!
//! The loops and the sizes are those of will-it-scale
//! (<https://github.com/antonblanchard/will-it-scale>), so figures can be held
//! beside published ones. What differs: a workload stops when its counter says so,
//! instead of being killed, and every call is checked.
#![no_std]

mod brk1;
mod counter;
mod error;
mod mmap1;
mod mmap2;
mod page_fault1;
mod page_fault2;
mod page_fault3;
mod system;
mod tlb_flush1;

pub use counter::Counter;
pub use error::{Call, Error};
pub use system::{Backing, Prot, System};

/// Bytes that the mapping workloads map: 128 MiB.
pub const SIZE: usize = 128 << 20;

/// What a workload asks of a system beyond anonymous mappings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needs {
    /// Mappings of files.
    pub files: bool,
    /// A program break.
    pub brk: bool,
    /// Dropping pages of a mapping (`MADV_DONTNEED`).
    pub discard: bool,
    /// Bytes that a task touches at most.
    pub memory: usize,
}

impl Needs {
    /// Anonymous mappings are enough.
    pub const NOTHING: Needs = Needs {
        files: false,
        brk: false,
        discard: false,
        memory: 0,
    };
}

/// A workload: what it is called, what it says of itself, what it needs.
#[derive(Debug, PartialEq, Eq)]
pub struct Workload {
    /// The name on the command line, as in will-it-scale.
    pub name: &'static str,
    /// What will-it-scale prints behind `testcase:`.
    pub description: &'static str,
    /// What the counter counts, in the plural.
    pub unit: &'static str,
    /// What the system must offer.
    pub needs: Needs,
    body: Body,
}

/// Names the loop; a function pointer can not be generic over the system.
#[derive(Debug, PartialEq, Eq)]
enum Body {
    Brk1,
    Mmap1,
    Mmap2,
    PageFault1,
    PageFault2,
    PageFault3,
    TlbFlush1,
}

impl Workload {
    /// Runs the loop on `system` until `tick` tells it to stop, then takes away
    /// what it has mapped.
    ///
    /// # Errors
    /// The first call that fails or gives a wrong result ends the loop.
    pub fn run<S: System>(&self, system: &mut S, tick: &Counter) -> Result<(), Error> {
        match self.body {
            Body::Brk1 => brk1::run(system, tick),
            Body::Mmap1 => mmap1::run(system, tick),
            Body::Mmap2 => mmap2::run(system, tick),
            Body::PageFault1 => page_fault1::run(system, tick),
            Body::PageFault2 => page_fault2::run(system, tick),
            Body::PageFault3 => page_fault3::run(system, tick),
            Body::TlbFlush1 => tlb_flush1::run(system, tick),
        }
    }
}

/// All workloads, by name.
pub const fn all() -> &'static [Workload] {
    const ALL: [Workload; 7] = [
        brk1::WORKLOAD,
        mmap1::WORKLOAD,
        mmap2::WORKLOAD,
        page_fault1::WORKLOAD,
        page_fault2::WORKLOAD,
        page_fault3::WORKLOAD,
        tlb_flush1::WORKLOAD,
    ];
    &ALL
}

/// The workload called `name`.
pub fn find(name: &str) -> Option<&'static Workload> {
    all().iter().find(|workload| workload.name == name)
}
