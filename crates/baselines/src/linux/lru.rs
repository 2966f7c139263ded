//! The lists of pages of a control group, and its account: `lruvec` and `page_counter`.
//!
//! They follow Linux 6.12 (mm/swap.c, mm/memcontrol.c, mm/page_counter.c); older versions differ in
//! the sizes ([`Batches`]). A CPU gathers the pages that faults have mapped in a batch of 31
//! (`folio_add_lru`), and takes the `lru_lock` of the NUMA node's lruvec for all of them
//! (`folio_batch_move_lru`); so it does with pages that are freed (`folios_put_refs`). A page is
//! charged to the group: from a CPU's stock, which holds up to 64 (`try_charge_memcg`), else 64 at
//! once by atomic additions to the counters of the group and all groups above it; those of a batch
//! that is freed are subtracted there (`uncharge_batch`). All tasks are in one group, with three
//! groups above it, as for a login session under systemd.
//!
//! # Protocol
//! | state | the page | changed by |
//! |---|---|---|
//! | `OUT` | is in no list | a task that maps it: `ADDING` |
//! | `ADDING` | is in a CPU's batch | that CPU, under the lock: `LISTED`; the task that frees it: `DROPPED` |
//! | `DROPPED` | is in a CPU's batch, and free | that CPU: `OUT`; a task that maps it: `ADDING` |
//! | `LISTED` | is in the list of a node | the task that frees it: `LEAVING`, which puts it into a batch |
//! | `LEAVING` | is in the list, and free | that batch's CPU, under the lock: `OUT`; a task that maps it: `LISTED` |
//!
//! States change by exchanges, and a CPU that empties a batch passes over pages that are no longer
//! in its state. Batches are a CPU's own, under a pin.
//!
//! # Differences
//! - A page that is freed and used again before its batch is emptied keeps its position in the
//!   list; in Linux no task can use it before.
//! - Active and inactive pages, and those of files, are in one list, as the VM has its own
//!   reclaimer.
//! - In Linux free pages in no CPU's lists are under a node's `zone->lock`. Since 6.7 a CPU's lists
//!   grow until a loop's pages fit (`pcp->high`), so that lock is hardly taken. The VM's own caches
//!   and pools are the substitute for both; before 6.7 with a pool for each node.

use crate::page_list::{Ends, PageLinks};
use alloc::vec::Vec;
use core::array;
use machine::{Atomic, AtomicInt, Frame, Machine, Ordering, SharedCell};
use sync::spin::Qspinlock;
use sync::watch::Watched;
use sync::{Padded, PerCpu, RawGuard, RawLock, lock_class};
use vm::Error;
use vm::system::{Extent, PageQueues, Part};

lock_class!(
    /// The list of pages of a node and a control group. Held for a batch.
    pub LruLock = "lru_lock", rank 46
);

/// The most pages of a batch.
const MOST: usize = 32;

/// The number of pages that are moved and charged at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batches {
    /// Mapped pages that a CPU gathers for the lists (`PAGEVEC_SIZE`).
    pub adding: usize,
    /// Freed pages that a CPU takes out of a list with one acquisition of its lock.
    pub leaving: usize,
    /// Pages that are charged at once (`MEMCG_CHARGE_BATCH`).
    pub charge: u64,
}

impl Batches {
    /// The sizes of 4.15, where `release_pages` unlocks after `SWAP_CLUSTER_MAX` pages.
    pub const V4_15: Batches = Batches {
        adding: 14,
        leaving: 32,
        charge: 32,
    };
    /// The sizes of 5.15.
    pub const V5_15: Batches = Batches {
        adding: 15,
        ..Batches::V4_15
    };
    /// The sizes of 6.12.
    pub const V6_12: Batches = Batches {
        adding: 31,
        leaving: 31,
        charge: 64,
    };
}

/// The sizes of the newest version.
impl Default for Batches {
    fn default() -> Self {
        Batches::V6_12
    }
}

/// The groups: a session's, and those above it (user, slice, root).
const GROUPS: usize = 4;
/// The most lists. A machine with more NUMA nodes shares them.
const NODES: usize = 16;

const OUT: u32 = 0;
const ADDING: u32 = 1;
const DROPPED: u32 = 2;
const LISTED: u32 = 3;
const LEAVING: u32 = 4;

/// The lists of pages, and the charges of the groups.
pub struct Lruvecs<M: Machine> {
    batches: Batches,
    nodes: [Lruvec<M>; NODES],
    /// `memory.usage` of each group, the session's first.
    charged: [Padded<M::AtomicU64>; GROUPS],
    pages: PageLinks<M, Page<M>>,
    cpus: PerCpu<M::Cell<Gathered>, M>,
}

/// The lock and the ends are on lines of their own, as in Linux.
struct Lruvec<M: Machine> {
    lock: Padded<Watched<M, Qspinlock<M>, LruLock>>,
    /// Guarded by the lock.
    list: Padded<M::Cell<Ends>>,
}

struct Page<M: Machine> {
    state: M::AtomicU32,
    /// The node whose list the page is in. Written under that list's lock, before the page is
    /// `LISTED`.
    node: M::AtomicU32,
}

/// What a CPU has gathered. Only that CPU accesses it, pinned.
struct Gathered {
    adding: Batch,
    leaving: Batch,
    /// Pages charged and not used yet.
    stock: u64,
}

struct Batch {
    pages: [u32; MOST],
    count: usize,
}

impl Batch {
    const EMPTY: Batch = Batch {
        pages: [0; MOST],
        count: 0,
    };

    /// Adds a page. Returns the pages if there are now `full` of them.
    fn push(&mut self, page: u32, full: usize) -> Option<&[u32]> {
        self.pages[self.count] = page;
        self.count = (self.count + 1) % full;
        (self.count == 0).then_some(&self.pages[..full])
    }
}

impl<M: Machine> Lruvecs<M> {
    /// The pages in the lists, node by node.
    pub fn listed(&self) -> Vec<Frame> {
        let mut all = Vec::new();
        for node in &self.nodes {
            let _pin = M::pin();
            let _lock = RawGuard::new(&*node.lock);
            all.extend(self.pages.iter(&node.list).map(Frame));
        }
        all
    }

    /// Pages that are charged to the session: in use, in a CPU's stock, or freed and still in a
    /// batch.
    pub fn charged(&self) -> u64 {
        self.charged[0].load(Ordering::Relaxed)
    }

    /// Changes the state from `from` to `to`. Returns true if it was `from`.
    fn exchange(&self, page: u32, from: u32, to: u32) -> bool {
        let state = &self.pages.state(page).state;
        // Acquire and release: the next task that changes the state sees what was done to the
        // page's links and its node.
        state
            .compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    }

    /// Charges a page, on the CPU whose `gathered` is given.
    fn charge(&self, gathered: &mut Gathered) {
        if gathered.stock == 0 {
            for group in &self.charged {
                group.fetch_add(self.batches.charge, Ordering::Relaxed);
            }
            gathered.stock = self.batches.charge;
        }
        gathered.stock -= 1;
    }

    /// Charges the page and changes its state to a mapped one, on the CPU whose `gathered` is
    /// given.
    fn map(&self, gathered: &mut Gathered, page: u32) {
        loop {
            let state = self.pages.state(page).state.load(Ordering::Acquire);
            let (next, joins) = match state {
                OUT => (ADDING, true),
                DROPPED => (ADDING, false),
                LEAVING => (LISTED, false),
                _ => return,
            };
            if self.exchange(page, state, next) {
                self.charge(gathered);
                if joins && let Some(batch) = gathered.adding.push(page, self.batches.adding) {
                    self.add(batch);
                }
                return;
            }
        }
    }

    /// Puts a batch into this CPU's node's list. Pinned.
    fn add(&self, batch: &[u32]) {
        let index = M::numa_node() % NODES;
        let node = &self.nodes[index];
        let _lock = RawGuard::new(&*node.lock);
        for &page in batch {
            let of = &self.pages.state(page).node;
            of.store(index as u32, Ordering::Relaxed);
            // A page in this batch is `ADDING` or `DROPPED`.
            loop {
                if self.exchange(page, ADDING, LISTED) {
                    self.pages.enqueue(&node.list, page);
                    break;
                }
                if self.exchange(page, DROPPED, OUT) {
                    break;
                }
            }
        }
    }

    /// Takes a batch of pages that were freed out of their lists, and uncharges them. Pinned.
    fn remove_all(&self, batch: &[u32]) {
        let mut held: Option<(u32, RawGuard<'_, M, _>)> = None;
        for &page in batch {
            let Page { state, node } = self.pages.state(page);
            let index = node.load(Ordering::Relaxed);
            if held.as_ref().is_none_or(|(of, _)| *of != index) {
                drop(held.take());
                held = Some((index, RawGuard::new(&*self.nodes[index as usize].lock)));
            }
            // If it was used and freed again, the page may be in another batch too, and in another
            // list.
            let is_here =
                state.load(Ordering::Acquire) == LEAVING && node.load(Ordering::Relaxed) == index;
            if is_here {
                let list = &self.nodes[index as usize].list;
                self.pages.dequeue(list, page);
                if !self.exchange(page, LEAVING, OUT) {
                    self.pages.enqueue(list, page);
                }
            }
        }
        drop(held);
        for group in &self.charged {
            group.fetch_sub(batch.len() as u64, Ordering::Relaxed);
        }
    }
}

impl<M: Machine> Part<M> for Lruvecs<M> {
    type Config = Batches;

    fn new(&batches: &Batches, extent: Extent) -> Result<Self, Error> {
        let page = || Page {
            state: M::AtomicU32::new(OUT),
            node: M::AtomicU32::new(0),
        };
        let gathered = |_| {
            M::Cell::new(Gathered {
                adding: Batch::EMPTY,
                leaving: Batch::EMPTY,
                stock: 0,
            })
        };
        Ok(Lruvecs {
            batches,
            nodes: array::from_fn(|_| Lruvec {
                lock: Padded(RawLock::new()),
                list: Padded(SharedCell::new(Ends::EMPTY)),
            }),
            charged: array::from_fn(|_| Padded(M::AtomicU64::new(0))),
            pages: PageLinks::new(extent.frames, page)?,
            cpus: PerCpu::try_new(extent.cpus, gathered)?,
        })
    }

    fn label(&self) {
        M::label_value(&self.nodes, "lruvec");
        M::label_value(&self.charged, "memcg.memory");
        self.pages.label("page.lru");
        self.cpus.label("folio_batch");
    }
}

impl<M: Machine> PageQueues<M> for Lruvecs<M> {
    type Free<'a> = ();

    fn activate(&self, frame: Frame) {
        let page = frame.index() as u32;
        // The page was mapped before: it is in a list, or in a batch.
        if matches!(
            self.pages.state(page).state.load(Ordering::Relaxed),
            ADDING | LISTED
        ) {
            return;
        }
        let pin = M::pin();
        // SAFETY: pinned, so no other task accesses this CPU's batches.
        self.map(unsafe { &mut *self.cpus.get(&pin).write() }, page);
    }

    fn remove(&self, frame: Frame) {
        let page = frame.index() as u32;
        loop {
            let next = match self.pages.state(page).state.load(Ordering::Relaxed) {
                LISTED => (LISTED, LEAVING),
                ADDING => (ADDING, DROPPED),
                // The page was never mapped.
                _ => return,
            };
            // This fails if the page has just been listed.
            if self.exchange(page, next.0, next.1) {
                break;
            }
        }
        let pin = M::pin();
        // SAFETY: pinned, so no other task accesses this CPU's batches.
        let leaving = unsafe { &mut (*self.cpus.get(&pin).write()).leaving };
        if let Some(batch) = leaving.push(page, self.batches.leaving) {
            self.remove_all(batch);
        }
    }
}
