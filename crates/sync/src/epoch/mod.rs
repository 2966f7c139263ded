//! Epochs: waiting until every reader that might still look has left.
//!
//! Epoch-based reclamation as case study 000 describes it: readers mark *sections*; a task that has
//! unlinked something waits ([`Domain::wait`]), polls ([`Domain::snapshot`], [`Domain::has_left`])
//! or leaves a callback ([`Domain::call`]) for the moment at which no section can still see it.
//!
//! # Protocol
//! Each CPU has a record; each [`Domain`] has a global epoch `g`, which only grows.
//!
//! - **enter** (outermost): read `g`; make `record.section` odd, with release; then *publish* the
//!   value read in `record.epoch`: a store with release, and a full fence.
//! - **exit** (outermost): make `record.section` even, with release.
//! - **scan**: after a full fence, find the oldest epoch among odd records.
//! - **advance**: read `g`, fence, scan; if no odd record is older than `g`, exchange `g` for `g +
//!   1`.
//! - **stamp**: after the object was unlinked: fence, read `g`.
//! - a stamp `e` **has passed** when `g >= e + 2`, or when a scan made after the stamp finds no odd
//!   record at `e` or below.
//!
//! # Why it holds
//! Let `X` be a section with recorded epoch `x`, and `P` the fence of its publication; let `F` be
//! the fence of a stamp, `e` the epoch it read. All CPUs agree on one order of fences.
//!
//! 1. If `F` comes before `P`, `X` reads nothing older than what was written before `F`: `X` cannot
//!    find the unlinked object. Only sections with `P` before `F` matter.
//! 2. For these `x <= e`: `X` read `g` before `P`, the stamp read it after `F`, and `g` only grows.
//! 3. A scan whose fence is `F` or later sees `X` odd at `x`, or sees that it has ended. So a scan
//!    that finds no odd record at `e` or below proves the end of every such `X`.
//! 4. When `g` becomes `e + 2`, the advancing CPU had read `e + 1`, *then* fenced and scanned. The
//!    stamp read `e` after `F`, so that fence is later than `F`; the scan found no odd record below
//!    `e + 1`; by 3 every such `X` had ended. (One step, to `e + 1`, proves nothing: a section at
//!    `e` does not hinder it.)
//! 5. A CPU that sees the end sees what the section did: exit is a release, the scan acquires, and
//!    the exchanges of `g` pass that on to the CPUs that read `g`.
//!
//! `g` may have moved on between the read and the publication; the record is then
//! behind, which delays an advance and never permits one. For the same reason a
//! stamp must not be taken from the caller's own record: see [`Domain::call`].
//!
//! A record's two words are not read as one. A scan may see a section with the epoch of an
//! *earlier* one, which is no greater: a delay. It may see a section with the epoch of a *later*
//! one, and then treat it as ended: it has ended, and since the store of `epoch` is a release the
//! scan also sees what it did.
//!
//! Which of the two words is published matters only for speed: this order was the faster one on
//! x86-64, where publishing is an `xchg`.
//!
//! # Cost
//! Enter and exit write one cache line of the CPU's own and read the line of `g`, which changes
//! only while a task waits. A scan reads one line per CPU.
//!
//! A section holds its CPU, so its task must not sleep. [`Sleepable`] has sections for tasks that
//! do.

mod barrier;
mod defer;
mod protocol;
mod queue;
mod section;
mod sleepable;
mod snapshot;
mod stall;
mod wait;

pub use crate::deferred::Deferred;
pub use defer::Full;
pub use protocol::{Protocol, Standard};
pub use section::Section;
pub use sleepable::{Sleepable, SleepableSection};
pub use snapshot::{SectionId, Snapshot};
pub use stall::{Options, Stall};

use crate::padded::Padded;
use crate::percpu::PerCpu;
use alloc::collections::TryReserveError;
use core::marker::PhantomData;
use machine::{Atomic, CpuRange, Machine, Ordering, Pinned, SharedCell};
use queue::Queue;

/// A set of sections and the tasks that wait for them.
///
/// 256 bytes per CPU, and a cache line for the global epoch. Domains are independent: a section of
/// one delays no wait in another.
///
/// Dropping a domain runs the callbacks that are still pending: the domain is no longer borrowed,
/// so none of its sections is open.
pub struct Domain<M: Machine, P: Protocol = Standard> {
    /// The global epoch, from 1. Waiting tasks advance it.
    epoch: Padded<M::AtomicU64>,
    records: PerCpu<Record<M>, M>,
    /// Callbacks. They are on other cache lines than the records, because other CPUs drain them.
    queues: PerCpu<Queue<M>, M>,
    options: Options,
    protocol: PhantomData<fn() -> P>,
}

/// One CPU's record in a domain.
struct Record<M: Machine> {
    /// Odd while the CPU is in a section; grows by 2 per section. Written by the owner.
    section: M::AtomicU64,
    /// The global epoch the current section saw. Written by the owner, just after
    /// `section` became odd; read by scanners that saw `section` odd.
    epoch: M::AtomicU64,
    /// Sections entered inside the current one, and [`section::DUE`]; 0 outside. The outermost
    /// enter and exit do not write it, because a full fence waits for each store before it. Only
    /// the owner accesses it.
    nesting: M::Cell<u32>,
    /// True if the CPU is running callbacks. Only the owner accesses it.
    running: M::Cell<bool>,
}

impl<M: Machine> Record<M> {
    fn new() -> Self {
        Record {
            section: M::AtomicU64::new(0),
            epoch: M::AtomicU64::new(0),
            nesting: M::Cell::new(0),
            running: M::Cell::new(false),
        }
    }

    /// Returns true if the calling CPU, the record's owner, is in a section.
    fn inside(&self, _pin: &M::Pin) -> bool {
        // Relaxed: the owner reads what it wrote.
        self.section.load(Ordering::Relaxed) & 1 == 1
    }

    /// Returns true if the calling CPU, the record's owner, is running callbacks.
    fn running(&self, _pin: &M::Pin) -> bool {
        // SAFETY: pinned, so no other CPU accesses `running`.
        unsafe { *self.running.read() }
    }
}

impl<M: Machine> Domain<M> {
    /// A domain for the CPUs of a machine, with default [`Options`].
    pub fn new(cpus: CpuRange) -> Self {
        Self::with_options(cpus, Options::default())
    }

    /// A domain for the CPUs of a machine.
    pub fn with_options(cpus: CpuRange, options: Options) -> Self {
        Self::with_protocol(cpus, options)
    }

    /// A domain for the CPUs of a machine, with default [`Options`]; an error if memory is short.
    pub fn try_new(cpus: CpuRange) -> Result<Self, TryReserveError> {
        let records = PerCpu::try_new(cpus, |_| Record::new())?;
        let queues = PerCpu::try_new(cpus, |_| Queue::new())?;
        Ok(Self::of(records, queues, Options::default()))
    }
}

impl<M: Machine, P: Protocol> Domain<M, P> {
    /// A domain with protocol `P`; the one sound choice is [`Standard`].
    #[doc(hidden)]
    pub fn with_protocol(cpus: CpuRange, options: Options) -> Self {
        let records = PerCpu::new(cpus, |_| Record::new());
        let queues = PerCpu::new(cpus, |_| Queue::new());
        Self::of(records, queues, options)
    }

    /// A domain with these new records and queues.
    fn of(records: PerCpu<Record<M>, M>, queues: PerCpu<Queue<M>, M>, options: Options) -> Self {
        records.label("epoch::Record");
        queues.label("epoch::Queue");
        Domain {
            epoch: Padded(M::AtomicU64::new(1)),
            records,
            queues,
            options,
            protocol: PhantomData,
        }
    }

    /// The index of the CPU that `pin` holds, if it is one of the domain's.
    fn index(&self, pin: &M::Pin) -> Option<usize> {
        let index = self.records.cpus().index_of(pin.cpu());
        (index < self.records.cpus().len()).then_some(index)
    }

    /// Panics if the caller is in a section, where `what` would wait for itself.
    fn assert_outside(&self, what: &str) {
        let pin = M::pin();
        if let Some(index) = self.index(&pin) {
            assert!(
                !self.records.of(index).inside(&pin),
                "epoch: {what} inside a section would wait for itself"
            );
        }
    }
}
