//! The machine's memory as one whole: frames, pages, and the policies' state.
//!
//! Spaces, pmaps and objects are made from it and keep it alive. A trait ([`Spare`]) has its
//! requests to a pmap when no page can be freed.

mod asids;
mod current;
mod hand;
mod keep;
mod options;
mod overcommit;
mod owned;
mod pages;
mod roster;

pub(crate) use asids::SHARED;
pub(crate) use current::CurrentSpaces;
pub(crate) use hand::Hand;
pub(crate) use keep::{Children, Keep};
pub use options::{FAULT_AROUND, Interrupted, Options, OutOfMemory};
pub use overcommit::Overcommit;
pub use pages::Hold;
pub(crate) use roster::TAGS;

use crate::error::Error;
use crate::flags::Superpages;
use crate::frames::{Frames, RUN};
use crate::heap::filled;
use crate::swap::{SwapSlots, SwapSpace};
use crate::system::{Extent, ForkTables, ObjectPages, Part, Reservation, System, Victim};
use alloc::boxed::Box;
use alloc::sync::Arc;
use asids::Asids;
use machine::{Asid, Atomics, KernelEntries, Mmu, Platform, Topology, pte};
use owned::Owned;
use pages::Descriptors;
use roster::Roster;
use sync::Padded;

/// A reclaimer's requests to a pmap when no page can be freed. The caller holds no lock of the
/// VM's.
pub(crate) trait Spare: Send + Sync {
    /// Frees about `wanted` leaf tables that can be made again, and returns their number. If it is
    /// less than `wanted`, no more are left. O(slots).
    fn sweep(&self, wanted: usize) -> usize;

    /// Removes the mappings whose PV entries are in the victim's chunk, as far as they can be made
    /// again, and returns their number.
    fn empty_chunk(&self, victim: Victim) -> usize;
}

/// The VM of one machine.
///
/// Fields that are written lie behind pointers or on cache lines of their own.
pub struct Vm<S: System> {
    frames: Frames<S::Machine>,
    pages: Box<[Descriptors<S>]>,
    gate: S::Gate,
    invalidation: Padded<S::Invalidation>,
    swap: Padded<S::Swap>,
    queues: S::Queues,
    pv_locks: S::PvLocks,
    /// `None` if PV entries are in tables.
    pv_chunks: Option<S::PvChunks>,
    asids: Asids<S::Machine>,
    current: CurrentSpaces<S::Machine>,
    kernel: Option<KernelEntries>,
    roster: Roster<S::Machine, dyn Spare>,
    swap_space: Option<SwapSpace<S::Machine>>,
    out_of_memory: Option<OutOfMemory>,
    interrupted: Option<Interrupted>,
    hand: Padded<Hand<S::Machine>>,
    overcommit: Overcommit,
    /// The most pages that one request may commit.
    most_pages: u64,
    superpages: Superpages,
    fork_tables: ForkTables,
    object_pages: ObjectPages,
    fault_around: usize,
    /// True if all parts are silent ([`Part::is_silent`]), so that short paths may be taken.
    has_short_paths: bool,
    /// Dropped last: until then the frames are the VM's.
    machine: Owned<S::Machine>,
}

impl<S: System> Vm<S> {
    /// A VM with its policies' defaults, and twice as much swap as memory.
    ///
    /// # Errors
    /// Those of [`Vm::with_options`].
    pub fn new(machine: S::Machine) -> Result<Arc<Self>, Error> {
        Self::with_options(machine, Options::default())
    }

    /// A VM with these options.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] if the kernel's heap has no room for the descriptors of all frames.
    /// [`Error::Invalid`] if the machine's account of its memory or of the kernel's entries is
    /// impossible; if another VM has the machine's memory ([`machine::Memory::owned`]); if the swap
    /// space was made for another machine; or if [`Options::fault_around`] is not what it may be.
    pub fn with_options(machine: S::Machine, options: Options<S>) -> Result<Arc<Self>, Error> {
        options.check(machine.cpus())?;
        let machine = Owned::new(machine)?;
        let cpus = machine.cpus();
        let kernel = kernel_entries(&*machine)?;
        let frames = Frames::with_pools(&*machine, options.frame_pools)?;
        let end = frames.end();
        let swap_pages = options.swap_pages.unwrap_or(2 * frames.total() as u64);
        let swap_pages = options.overcommit.account(swap_pages);
        let swap_space = options.swap_space.as_ref();
        let swap_slots = swap_space.map_or(0, |space| space.slots().into());
        let all_pages = frames.total() as u64 + swap_slots;
        let extent = Extent::new(cpus, end, swap_pages);
        let gate = S::Gate::new(&options.gate, extent)?;
        let invalidation = S::Invalidation::new(&options.invalidation, extent)?;
        let swap = S::Swap::new(&options.swap, extent)?;
        let queues = S::Queues::new(&options.queues, extent)?;
        let pv_locks = S::PvLocks::new(&options.pv_locks, extent)?;
        let chunks = options.pv_chunks.as_ref();
        let chunks = chunks.map(|chunks| S::PvChunks::new(chunks, extent));
        let pv_chunks = chunks.transpose()?;
        let (fork_tables, object_pages) = match pv_chunks {
            Some(_) => (ForkTables::Copied, ObjectPages::Listed),
            None => (options.fork_tables, options.object_pages),
        };
        let has_short_paths = gate.is_silent()
            && invalidation.is_silent()
            && queues.is_silent()
            && pv_locks.is_silent()
            && pv_chunks.is_none();
        let vm = Arc::new(Vm {
            frames,
            pages: filled(end.div_ceil(RUN), Descriptors::new)?,
            gate,
            invalidation: Padded(invalidation),
            swap: Padded(swap),
            queues,
            pv_locks,
            pv_chunks,
            asids: Asids::new(cpus, machine.asids())?,
            current: CurrentSpaces::new(cpus)?,
            kernel,
            roster: Roster::new()?,
            swap_space: options.swap_space,
            out_of_memory: options.out_of_memory,
            interrupted: options.interrupted,
            hand: Padded(Hand::new()),
            overcommit: options.overcommit,
            most_pages: options.overcommit.most(all_pages),
            superpages: options.superpages,
            fork_tables,
            object_pages,
            fault_around: options.fault_around,
            has_short_paths,
            machine,
        });
        vm.label();
        Ok(vm)
    }

    /// Labels its memory, for machines that report lines by name.
    fn label(&self) {
        S::Machine::label_value(self, "Vm");
        S::Machine::label_value(&*self.pages, "Page");
        self.frames.label();
        S::Machine::label_value(&self.invalidation, "invalidation");
        self.invalidation.label();
        S::Machine::label_value(&self.swap, "swap account");
        self.swap.label();
        self.queues.label();
        self.pv_locks.label();
        if let Some(chunks) = &self.pv_chunks {
            chunks.label();
        }
        self.asids.label();
        self.current.label();
        self.roster.label();
        S::Machine::label_value(&self.hand, "Vm.hand");
    }

    /// The machine.
    pub fn machine(&self) -> &S::Machine {
        &self.machine
    }

    /// Physical memory.
    pub fn frames(&self) -> &Frames<S::Machine> {
        &self.frames
    }

    /// The locks of pages' PV lists.
    #[inline]
    pub(crate) fn pv_locks(&self) -> &S::PvLocks {
        &self.pv_locks
    }

    /// The chunks of PV entries, if these are not in tables.
    #[inline]
    pub(crate) fn pv_chunks(&self) -> Option<&S::PvChunks> {
        self.pv_chunks.as_ref()
    }

    /// The gate of its spaces.
    #[inline]
    pub(crate) fn gate(&self) -> &S::Gate {
        &self.gate
    }

    /// The queues of pages.
    pub(crate) fn queues(&self) -> &S::Queues {
        &self.queues
    }

    /// The delayed invalidation.
    pub(crate) fn invalidation(&self) -> &S::Invalidation {
        &self.invalidation
    }

    /// The mappings that get superpages.
    #[inline]
    pub fn superpages(&self) -> Superpages {
        self.superpages
    }

    /// How a fork treats leaf tables.
    #[inline]
    pub fn fork_tables(&self) -> ForkTables {
        self.fork_tables
    }

    /// Returns true if mappings of objects' pages have PV entries and references.
    #[inline]
    pub(crate) fn lists_objects(&self) -> bool {
        self.object_pages == ObjectPages::Listed
    }

    /// The most pages of an object that one read fault maps.
    #[inline]
    pub(crate) fn fault_around(&self) -> usize {
        self.fault_around
    }

    /// Returns true if no part must be told of a first touch, or of the end of a page that no
    /// other task can look for: [`Part::is_silent`].
    #[inline]
    pub(crate) fn has_short_paths(&self) -> bool {
        self.has_short_paths
    }

    /// The account of swap space.
    pub(crate) fn swap(&self) -> &S::Swap {
        &self.swap
    }

    /// The pages that are charged to the account of swap space; exact while none are charged or
    /// given back.
    pub fn committed(&self) -> u64 {
        self.swap().reserved()
    }

    /// The policy by which requests for memory are refused.
    pub fn overcommit(&self) -> Overcommit {
        self.overcommit
    }

    /// The swap space for pages when memory is short.
    #[inline]
    pub(crate) fn swap_space(&self) -> Option<&SwapSpace<S::Machine>> {
        self.swap_space.as_ref()
    }

    /// The slots of the swap space; `None` if there is no swap space. O(CPUs).
    pub fn swap_slots(&self) -> Option<SwapSlots> {
        self.swap_space().map(SwapSpace::counts)
    }

    pub(crate) fn out_of_memory(&self) -> Option<&OutOfMemory> {
        self.out_of_memory.as_ref()
    }

    /// Returns true if the calling task is to end its operation.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.interrupted.as_ref().is_some_and(|asked| asked())
    }

    pub(crate) fn hand(&self) -> &Hand<S::Machine> {
        &self.hand
    }

    /// All existing pmaps.
    pub(crate) fn roster(&self) -> &Roster<S::Machine, dyn Spare> {
        &self.roster
    }

    /// The kernel's entries of each root, if it is mapped in all spaces.
    pub(crate) fn kernel(&self) -> Option<&KernelEntries> {
        self.kernel.as_ref()
    }

    /// Takes a tag, and makes room for its owner.
    pub(crate) fn allocate_tag(&self) -> Result<Asid, Error> {
        let tag = self.asids.take()?;
        let prepared = self.roster.prepare(tag);
        prepared.inspect_err(|_| self.asids.give(tag))?;
        Ok(tag)
    }

    /// The tag of the TLB entries of the space with `tag`.
    pub(crate) fn tag_of_entries(&self, tag: Asid) -> Asid {
        self.asids.of_entries(tag)
    }

    /// The space for which each CPU translates.
    #[inline]
    pub(crate) fn current(&self) -> &CurrentSpaces<S::Machine> {
        &self.current
    }

    /// Gives a tag back. No TLB has an entry of it any more.
    pub(crate) fn free_tag(&self, tag: Asid) {
        self.roster.strike(tag);
        self.asids.give(tag);
    }
}

/// The kernel's entries, if it is mapped in all spaces; an error if they are impossible.
fn kernel_entries<M: Platform>(machine: &M) -> Result<Option<KernelEntries>, Error> {
    let kernel = machine.kernel_entries();
    let are_behind = |KernelEntries { places, .. }: &KernelEntries| {
        pte::USER_ENTRIES <= places.start && places.end <= pte::ENTRIES
    };
    if kernel.as_ref().is_none_or(are_behind) {
        return Ok(kernel);
    }
    let reason = "the kernel's entries are among the users'";
    Err(Error::Invalid { reason })
}
