//! All that is measured. The catalogue and the command line take their names from here.

use super::alone::{Alone, alone};
use super::contended::{Stage, Sums, contended};
use super::epoch::{crossbeam, haphazard, hazard, ours, seize};
use super::rwlock::{By, Mode, Ours, Read, Write};
use super::simulated::Simulated;
use super::subject::Subject;
use super::{counter, mutex};
use bench::Failure;
use hosted::Hosted;
use machine::CpuRange;
use sim::Sim;
use sync::obm::{self, Obm, SlowPaths};
use sync::rwlock::{FreebsdRw, RawRw, Rwsem, SpinParkRw};
use sync::{RawLock, adaptive, spin};

/// The subject of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Mutual exclusion.
    Mutex,
    /// Readers and writers.
    RwLock,
    /// Sections and waits for their end.
    Epoch,
    /// Counting.
    Counter,
}

impl Group {
    /// All groups, in the order of tables.
    pub const ALL: [Group; 4] = [Group::Mutex, Group::RwLock, Group::Epoch, Group::Counter];

    /// The name on the command line; it stands for all rows of the group.
    pub fn name(self) -> &'static str {
        match self {
            Group::Mutex => "mutex",
            Group::RwLock => "rwlock",
            Group::Epoch => "epoch",
            Group::Counter => "counter",
        }
    }
}

/// One operation of one lock.
pub struct Row {
    /// The name on the command line.
    pub name: &'static str,
    /// A description in one line.
    pub about: &'static str,
    /// Its subject.
    pub group: Group,
    /// True if it is scalevm's; otherwise it is for comparison.
    pub ours: bool,
    /// The lock's size, if it is one object.
    pub bytes: Option<usize>,
    /// Counts slow paths since the process began, if the lock does.
    pub slow_paths: Option<fn() -> SlowPaths>,
    /// How to run it on the simulated machine, if it can be.
    pub simulated: Option<Simulated>,
    /// Makes a subject for one thread.
    pub(super) alone: fn(CpuRange) -> Box<dyn Alone>,
    /// Lets several threads operate on a new subject.
    pub(super) contended: fn(&'static str, &Stage<'_>) -> Result<Sums, Failure>,
}

const fn row<S: Subject>(name: &'static str, group: Group, about: &'static str) -> Row {
    Row {
        name,
        about,
        group,
        ours: true,
        bytes: None,
        slow_paths: None,
        simulated: None,
        alone: alone::<S>,
        contended: contended::<S>,
    }
}

/// A row for one of `sync`'s mutexes: the type `L` on threads, `S` on the simulated machine.
const fn lock<L, S>(about: &'static str) -> Row
where
    L: RawLock<Hosted> + 'static,
    S: RawLock<Sim> + 'static,
{
    let row = row::<mutex::Ours<Hosted, L>>(L::NAME, Group::Mutex, about);
    row.sized::<L>().simulated::<mutex::Ours<Sim, S>>()
}

/// A row for an operation on one of `sync`'s reader-writer locks: the type `L` on threads, `S` on
/// the simulated machine.
const fn rw<L, S, O>(name: &'static str, about: &'static str) -> Row
where
    L: RawRw<Hosted> + 'static,
    S: RawRw<Sim> + 'static,
    O: Mode,
{
    let row = row::<By<Ours<Hosted, L>, O>>(name, Group::RwLock, about);
    row.sized::<L>().simulated::<By<Ours<Sim, S>, O>>()
}

impl Row {
    /// Sets the size to that of the lock `L`.
    const fn sized<L>(mut self) -> Self {
        self.bytes = Some(size_of::<L>());
        self
    }

    /// Marks the row as not scalevm's.
    const fn theirs(mut self) -> Self {
        self.ours = false;
        self
    }

    /// Sets the subject on the simulated machine to `S`.
    const fn simulated<S: Subject>(mut self) -> Self {
        self.simulated = Some(Simulated::of::<S>());
        self
    }

    const fn counting(mut self, slow_paths: fn() -> SlowPaths) -> Self {
        self.slow_paths = Some(slow_paths);
        self
    }
}

type StdRw = std::sync::RwLock<()>;
type ParkingLotRw = parking_lot::RawRwLock;

/// Mutexes, reader-writer locks, epochs and counters, scalevm's first.
pub static ROWS: &[Row] = &[
    lock::<spin::TestAndSet<Hosted>, spin::TestAndSet<Sim>>("test-and-set"),
    lock::<spin::Ticket<Hosted>, spin::Ticket<Sim>>("ticket lock"),
    lock::<spin::Proportional<Hosted>, spin::Proportional<Sim>>(
        "ticket lock with proportional backoff",
    ),
    lock::<spin::Conbo<Hosted>, spin::Conbo<Sim>>(
        "ticket lock with conservative backoff (case study 004)",
    ),
    lock::<spin::Mcs<Hosted>, spin::Mcs<Sim>>("queue lock, spins locally"),
    lock::<spin::Clh<Hosted>, spin::Clh<Sim>>("queue lock, spins on the predecessor's node"),
    lock::<spin::K42<Hosted>, spin::K42<Sim>>(
        "MCS variant without a node carried to unlock (case study 004)",
    ),
    lock::<spin::Reciprocating<Hosted>, spin::Reciprocating<Sim>>(
        "stack of arrivals, served a segment at a time (Dice and Kogan, 2025)",
    ),
    lock::<spin::Hapax<Hosted>, spin::Hapax<Sim>>(
        "numbers that occur once, no node (Dice and Kogan, 2025)",
    ),
    lock::<spin::Qspinlock<Hosted>, spin::Qspinlock<Sim>>(
        "Linux's: the first waiter on the lock, then an MCS queue",
    ),
    lock::<spin::Cna<Hosted>, spin::Cna<Sim>>(
        "the same with a queue that prefers its NUMA node (Dice and Kogan, 2019)",
    ),
    lock::<Obm<Hosted>, Obm<Sim>>("one-byte mutex on shared turnstiles (case study 002)")
        .counting(obm::slow_paths::<Hosted>),
    lock::<adaptive::Adaptive<Hosted>, adaptive::Adaptive<Sim>>(
        "spins while the owner runs, then a turnstile",
    ),
    row::<mutex::ParkingLot>("parking_lot", Group::Mutex, "parking_lot::RawMutex")
        .sized::<mutex::ParkingLot>()
        .theirs(),
    row::<mutex::Std>("std", Group::Mutex, "std::sync::Mutex<()>")
        .sized::<mutex::Std>()
        .theirs(),
    row::<mutex::Spin>("spin", Group::Mutex, "spin::mutex::SpinMutex<()>")
        .sized::<mutex::Spin>()
        .theirs(),
    row::<mutex::SpinTicket>("spin-ticket", Group::Mutex, "spin::mutex::TicketMutex<()>")
        .sized::<mutex::SpinTicket>()
        .theirs(),
    rw::<SpinParkRw<Hosted>, SpinParkRw<Sim>, Read>("spin-park-rw-read", "spins, parks; reading"),
    rw::<SpinParkRw<Hosted>, SpinParkRw<Sim>, Write>("spin-park-rw-write", "spins, parks; writing"),
    rw::<Rwsem<Hosted>, Rwsem<Sim>, Read>("rwsem-read", "Linux's rw_semaphore; reading"),
    rw::<Rwsem<Hosted>, Rwsem<Sim>, Write>("rwsem-write", "Linux's rw_semaphore; writing"),
    rw::<FreebsdRw<Hosted>, FreebsdRw<Sim>, Read>("freebsd-rw-read", "FreeBSD's sx; reading"),
    rw::<FreebsdRw<Hosted>, FreebsdRw<Sim>, Write>("freebsd-rw-write", "FreeBSD's sx; writing"),
    row::<By<ParkingLotRw, Read>>(
        "parking_lot-rw-read",
        Group::RwLock,
        "parking_lot::RawRwLock, reading",
    )
    .sized::<ParkingLotRw>()
    .theirs(),
    row::<By<ParkingLotRw, Write>>(
        "parking_lot-rw-write",
        Group::RwLock,
        "parking_lot::RawRwLock, writing",
    )
    .sized::<ParkingLotRw>()
    .theirs(),
    row::<By<StdRw, Read>>(
        "std-rw-read",
        Group::RwLock,
        "std::sync::RwLock<()>, reading",
    )
    .sized::<StdRw>()
    .theirs(),
    row::<By<StdRw, Write>>(
        "std-rw-write",
        Group::RwLock,
        "std::sync::RwLock<()>, writing",
    )
    .sized::<StdRw>()
    .theirs(),
    row::<ours::Enter>("epoch-enter", Group::Epoch, "enter and exit a section"),
    row::<ours::Nested>(
        "epoch-nested",
        Group::Epoch,
        "the same inside another section",
    ),
    row::<ours::Wait>("epoch-wait", Group::Epoch, "wait for all sections"),
    row::<ours::Call>("epoch-call", Group::Epoch, "allocate, free in a callback"),
    row::<hazard::Enter>("hazard-enter", Group::Epoch, "enter and exit a section"),
    row::<hazard::Protect>(
        "hazard-protect",
        Group::Epoch,
        "enter, protect an object, let go, exit",
    ),
    row::<hazard::Retire>(
        "hazard-retire",
        Group::Epoch,
        "allocate, free once no slot names it",
    ),
    row::<crossbeam::Pin>(
        "crossbeam-pin",
        Group::Epoch,
        "crossbeam_epoch::pin and unpin",
    )
    .theirs(),
    row::<crossbeam::Handle>(
        "crossbeam-handle-pin",
        Group::Epoch,
        "LocalHandle::pin and unpin",
    )
    .theirs(),
    row::<crossbeam::Nested>("crossbeam-nested", Group::Epoch, "pin inside a pin").theirs(),
    row::<crossbeam::Flush>("crossbeam-flush", Group::Epoch, "pin and Guard::flush").theirs(),
    row::<crossbeam::Defer>(
        "crossbeam-defer",
        Group::Epoch,
        "allocate, free in Guard::defer",
    )
    .theirs(),
    row::<haphazard::Protect>(
        "haphazard-protect",
        Group::Epoch,
        "haphazard::HazardPointer, protect and let go",
    )
    .theirs(),
    row::<haphazard::Retire>(
        "haphazard-retire",
        Group::Epoch,
        "allocate, free by Domain::retire_ptr",
    )
    .theirs(),
    row::<seize::Enter>(
        "seize-enter",
        Group::Epoch,
        "seize::Collector, enter and leave",
    )
    .theirs(),
    row::<seize::Protect>("seize-protect", Group::Epoch, "enter, protect, leave").theirs(),
    row::<seize::Retire>(
        "seize-retire",
        Group::Epoch,
        "allocate, free by Collector::retire",
    )
    .theirs(),
    row::<counter::Limited<Hosted>>(
        "limited",
        Group::Counter,
        "per-CPU counter with an exact limit: reserve and release",
    )
    .simulated::<counter::Limited<Sim>>(),
    row::<counter::FetchAdd<Hosted>>(
        "fetch_add",
        Group::Counter,
        "one shared counter: one addition",
    )
    .simulated::<counter::FetchAdd<Sim>>()
    .theirs(),
];
