//! The machine's memory as one whole: frames, pages, and the policies' state.

use crate::asids::Asids;
use crate::error::{Error, Resource};
use crate::frames::{Content, Frames, RUN};
use crate::overcommit::Overcommit;
use crate::page::{Identity, Last, Page, PvList};
use crate::pmap::Pmap;
use crate::policy::{
    ForkTables, Invalidation, MapLocking, PageQueues, Policies, PvChunks, PvLocking, Regions,
    Reservation,
};
use crate::reclaim::{Hand, OutOfMemory};
use crate::roster::Roster;
use crate::superpages::Superpages;
use crate::swap::SwapSpace;
use alloc::boxed::Box;
use alloc::sync::Arc;
use core::array;
use machine::{Asid, Frame, Platform};
use sync::Padded;

/// The VM of one machine.
///
/// What is written lies behind pointers or on lines of its own.
pub struct Vm<M: Platform, P: Policies<M>> {
    machine: M,
    frames: Frames<M>,
    pages: Box<[Run<M, P>]>,
    invalidation: Padded<P::Invalidation>,
    swap: Padded<P::Swap>,
    locking: <P::Locking as MapLocking<M>>::Config,
    regions: <P::Regions as Regions<M>>::Common,
    queues: P::Queues,
    pv_locks: P::PvLocks,
    pv_chunks: P::PvChunks,
    asids: Asids<M>,
    roster: Roster<M, Pmap<M, P>>,
    swap_space: Option<Arc<SwapSpace<M>>>,
    out_of_memory: Option<OutOfMemory>,
    hand: Padded<Hand<M>>,
    overcommit: Overcommit,
    superpages: Superpages,
    fork_tables: ForkTables,
}

/// The descriptors of a run of frames, which the pool hands out together: on lines of
/// their own.
#[repr(align(64))]
struct Run<M: Platform, P: Policies<M>> {
    pages: [Page<M, P::Invalidation>; RUN],
    /// What the policy keeps of each: nothing by default.
    regions: [<P::Regions as Regions<M>>::Page; RUN],
}

impl<M: Platform, P: Policies<M>> Run<M, P> {
    fn new() -> Self {
        Run {
            pages: array::from_fn(|_| Page::new()),
            regions: array::from_fn(|_| P::Regions::new_page()),
        }
    }
}

/// How a VM is made.
pub struct Options<M: Platform, P: Policies<M>> {
    /// Which delayed invalidation, if the policy leaves a choice.
    pub invalidation: <P::Invalidation as Invalidation<M>>::Config,
    /// Which account of swap space, if the policy leaves a choice.
    pub swap: <P::Swap as Reservation<M>>::Config,
    /// Which locks a space has, if the policy leaves a choice.
    pub locking: <P::Locking as MapLocking<M>>::Config,
    /// What is kept of regions, if the policy leaves a choice.
    pub regions: <P::Regions as Regions<M>>::Config,
    /// Which queues of pages, if the policy leaves a choice.
    pub queues: <P::Queues as PageQueues<M>>::Config,
    /// Which lock protects a page's PV list, if the policy leaves a choice.
    pub pv_locks: <P::PvLocks as PvLocking<M>>::Config,
    /// Where PV entries are kept, if the policy leaves a choice.
    pub pv_chunks: <P::PvChunks as PvChunks<M>>::Config,
    /// Pages of swap space that may be reserved; by default twice the memory's.
    pub swap_pages: Option<u64>,
    /// Where pages go when memory is short; without it, private memory stays.
    pub swap_space: Option<Arc<SwapSpace<M>>>,
    /// Who knows a way when memory is out.
    pub out_of_memory: Option<OutOfMemory>,
    /// Whether more may be committed than `swap_pages`.
    pub overcommit: Overcommit,
    /// Where private anonymous memory gets superpages.
    pub superpages: Superpages,
    /// What a fork does with leaf tables; policies whose PV entries are in chunks always copy.
    pub fork_tables: ForkTables,
}

impl<M: Platform, P: Policies<M>> Default for Options<M, P> {
    fn default() -> Self {
        Options {
            invalidation: Default::default(),
            swap: Default::default(),
            locking: Default::default(),
            regions: Default::default(),
            queues: Default::default(),
            pv_locks: Default::default(),
            pv_chunks: Default::default(),
            swap_pages: None,
            swap_space: None,
            out_of_memory: None,
            overcommit: Overcommit::default(),
            superpages: Superpages::default(),
            fork_tables: ForkTables::default(),
        }
    }
}

impl<M: Platform, P: Policies<M>> Vm<M, P> {
    /// A VM with its policies' defaults, and twice as much swap as memory.
    pub fn new(machine: M) -> Arc<Self> {
        Self::with_options(machine, Options::default())
    }

    /// A VM made to measure.
    pub fn with_options(machine: M, options: Options<M, P>) -> Arc<Self> {
        let (cpus, frames) = (machine.cpus(), machine.frame_count());
        let swap_pages = options.swap_pages.unwrap_or(2 * frames as u64);
        let swap_pages = options.overcommit.account(swap_pages);
        let invalidation = P::Invalidation::new(&options.invalidation, cpus, frames);
        let pv_chunks = P::PvChunks::new(&options.pv_chunks, cpus, frames);
        let fork_tables = match pv_chunks.is_used() {
            true => ForkTables::Copied,
            false => options.fork_tables,
        };
        let vm = Arc::new(Vm {
            frames: Frames::new(&machine),
            pages: (0..frames.div_ceil(RUN)).map(|_| Run::new()).collect(),
            invalidation: Padded(invalidation),
            swap: Padded(P::Swap::new(&options.swap, cpus, swap_pages)),
            locking: options.locking,
            regions: P::Regions::common(&options.regions, cpus, frames),
            queues: P::Queues::new(&options.queues, cpus, frames),
            pv_locks: P::PvLocks::new(&options.pv_locks, cpus, frames),
            pv_chunks,
            asids: Asids::new(cpus),
            roster: Roster::new(),
            swap_space: options.swap_space,
            out_of_memory: options.out_of_memory,
            hand: Padded(Hand::new()),
            overcommit: options.overcommit,
            superpages: options.superpages,
            fork_tables,
            machine,
        });
        vm.label();
        vm
    }

    /// Says what is where, for machines that tell lines by name.
    fn label(&self) {
        M::label_value(self, "Vm");
        M::label_value(&*self.pages, "Page");
        self.frames.label();
        M::label_value(&self.invalidation, "invalidation");
        self.invalidation.label();
        M::label_value(&self.swap, "swap account");
        self.swap.label();
        self.queues.label();
        self.pv_locks.label();
        self.pv_chunks.label();
        self.asids.label();
        self.roster.label();
        M::label_value(&self.hand, "Vm.hand");
    }

    /// The machine.
    pub fn machine(&self) -> &M {
        &self.machine
    }

    /// Physical memory.
    pub fn frames(&self) -> &Frames<M> {
        &self.frames
    }

    /// The frame's descriptor.
    pub fn page(&self, frame: Frame) -> &Page<M, P::Invalidation> {
        &self.pages[frame.index() / RUN].pages[frame.index() % RUN]
    }

    /// Locks the PV list of the page in `frame`.
    #[inline]
    #[track_caller]
    pub(crate) fn lock_pv(&self, frame: Frame) -> PvList<'_, M, P> {
        PvList::lock(&self.pv_locks, frame, self.page(frame))
    }

    /// As [`Vm::lock_pv`], for who has had the list of another page locked last, which he needs no
    /// more.
    #[inline]
    #[track_caller]
    pub(crate) fn lock_pv_after<'a>(
        &'a self,
        last: Option<Last<'a, M, P>>,
        frame: Frame,
    ) -> PvList<'a, M, P> {
        match last {
            Some(Last(list, of)) if self.pv_locks.is_same(of, frame) => {
                list.pass_to(self.page(frame))
            }
            last => {
                drop(last);
                self.lock_pv(frame)
            }
        }
    }

    /// Lets go the list of the page in `frame`, unless its lock is that of neighbours too and the next
    /// one may need it.
    #[inline]
    pub(crate) fn keep_pv<'a>(
        &self,
        list: PvList<'a, M, P>,
        frame: Frame,
    ) -> Option<Last<'a, M, P>> {
        self.pv_locks.is_per_block().then(|| Last(list, frame))
    }

    /// Which lock protects a page's PV list.
    #[inline]
    pub(crate) fn pv_locks(&self) -> &P::PvLocks {
        &self.pv_locks
    }

    /// Where PV entries are kept.
    #[inline]
    pub(crate) fn pv_chunks(&self) -> &P::PvChunks {
        &self.pv_chunks
    }

    /// Which locks a space has.
    pub(crate) fn locking(&self) -> &<P::Locking as MapLocking<M>>::Config {
        &self.locking
    }

    /// What the spaces have in common of their regions.
    pub(crate) fn regions(&self) -> &<P::Regions as Regions<M>>::Common {
        &self.regions
    }

    /// What the policy of regions keeps of the frame's page.
    pub(crate) fn page_regions(&self, frame: Frame) -> &<P::Regions as Regions<M>>::Page {
        &self.pages[frame.index() / RUN].regions[frame.index() % RUN]
    }

    /// Where pages queue.
    pub(crate) fn queues(&self) -> &P::Queues {
        &self.queues
    }

    /// The delayed-invalidation policy.
    pub fn invalidation(&self) -> &P::Invalidation {
        &self.invalidation
    }

    /// Where there are superpages.
    #[inline]
    pub fn superpages(&self) -> Superpages {
        self.superpages
    }

    /// What a fork does with leaf tables.
    #[inline]
    pub fn fork_tables(&self) -> ForkTables {
        self.fork_tables
    }

    /// The account of swap space.
    pub fn swap(&self) -> &P::Swap {
        &self.swap
    }

    /// When memory that is asked for is refused.
    pub fn overcommit(&self) -> Overcommit {
        self.overcommit
    }

    /// Where pages go when memory is short.
    pub fn swap_space(&self) -> Option<&Arc<SwapSpace<M>>> {
        self.swap_space.as_ref()
    }

    pub(crate) fn out_of_memory(&self) -> Option<&OutOfMemory> {
        self.out_of_memory.as_ref()
    }

    pub(crate) fn hand(&self) -> &Hand<M> {
        &self.hand
    }

    /// Takes a frame for a page, with one reference.
    pub(crate) fn allocate_page(&self, content: Content) -> Result<Frame, Error> {
        let frame = self.allocate(content)?;
        self.page(frame).begin();
        Ok(frame)
    }

    /// Takes a frame that is no page: a table.
    pub(crate) fn allocate(&self, content: Content) -> Result<Frame, Error> {
        let _free = self.queues.free();
        let frame = self.frames.allocate(&self.machine, content);
        frame.ok_or(Error::OutOfMemory(Resource::Frames))
    }

    /// Gives back a frame that [`Vm::allocate`] gave. `zeroed` says it is all zero.
    pub(crate) fn free(&self, frame: Frame, zeroed: bool) {
        let _free = self.queues.free();
        self.frames.free(&self.machine, frame, zeroed);
    }

    /// Frees the page that [`Vm::allocate_page`] gave and nobody has seen. `zeroed` says
    /// it is all zero.
    pub(crate) fn release_unused(&self, frame: Frame, zeroed: bool) {
        // Somebody with an old hint may hold it for a moment.
        if self.page(frame).release() {
            self.free_page(frame, zeroed);
        }
    }

    /// Drops a reference to a page, and frees its frame with the last.
    pub(crate) fn release_page(&self, frame: Frame) {
        if self.page(frame).release() {
            self.free_page(frame, false);
        }
    }

    /// Frees a page that nobody has any more. `zeroed` says it is all zero.
    pub(crate) fn free_page(&self, frame: Frame, zeroed: bool) {
        self.queues.remove(frame);
        self.free(frame, zeroed);
    }

    /// Looks for a page's mappings as the policy of regions does.
    pub(crate) fn walk_regions(&self, frame: Frame) {
        P::Regions::walk(&self.regions, frame, self.page_regions(frame));
    }

    /// Whether the page in `frame`, which the caller has mapped, is only his: nobody else
    /// maps it, holds it or knows it by another name. Under the lock of its slot, by which
    /// alone there could be more.
    pub(crate) fn is_exclusive(&self, frame: Frame) -> bool {
        let page = self.page(frame);
        page.references() == 1 && page.identity() == Identity::Private
    }

    /// Keeps a page from being freed; `None` if it has been.
    pub fn hold(self: &Arc<Self>, frame: Frame) -> Option<Hold<M, P>> {
        self.page(frame).try_retain().then(|| Hold {
            vm: self.clone(),
            frame,
        })
    }

    /// A page of zeroes that no space has mapped.
    pub fn new_page(self: &Arc<Self>) -> Result<Hold<M, P>, Error> {
        let frame = self.allocate_page(Content::Zeroed)?;
        let vm = self.clone();
        Ok(Hold { vm, frame })
    }

    /// The pmaps that there are.
    pub(crate) fn roster(&self) -> &Roster<M, Pmap<M, P>> {
        &self.roster
    }

    /// Takes a tag, and makes room for its owner.
    pub(crate) fn allocate_asid(&self) -> Result<Asid, Error> {
        let asid = self.asids.take()?;
        let prepared = self.roster.prepare(asid);
        prepared.inspect_err(|_| self.asids.give(asid))?;
        Ok(asid)
    }

    /// Gives a tag back. No TLB has an entry of it any more.
    pub(crate) fn free_asid(&self, asid: Asid) {
        self.roster.strike(asid);
        self.asids.give(asid);
    }
}

/// A reference to a page.
pub struct Hold<M: Platform, P: Policies<M>> {
    vm: Arc<Vm<M, P>>,
    frame: Frame,
}

impl<M: Platform, P: Policies<M>> Hold<M, P> {
    /// The page's frame.
    pub fn frame(&self) -> Frame {
        self.frame
    }
}

impl<M: Platform, P: Policies<M>> Drop for Hold<M, P> {
    fn drop(&mut self) {
        self.vm.release_page(self.frame);
    }
}
