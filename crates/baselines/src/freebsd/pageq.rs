//! The page queues: one active queue for each memory domain, changed by batches (FreeBSD 14,
//! sys/vm/vm_page.c).
//!
//! A task records in the page what is to be done with it, and puts the page into its CPU's batch
//! (`vm_page_pqbatch_submit`). A full batch of 31 is processed under the queue's mutex
//! (`vm_pqbatch_process`), with the page that did not fit. A page that is freed stays in the queue
//! until its batch is processed (`vm_page_dequeue_deferred`); if it is used again before that, it
//! is removed at once, which takes the mutex (`vm_page_dequeue`).
//!
//! # Protocol
//! | bits of a page's state | meaning | changed by |
//! |---|---|---|
//! | `QUEUED` | the page belongs to its domain's queue | a task that maps the page: set, with `REQUEUE`; as `DEQUEUE` is done: cleared |
//! | `ENQUEUED` | it is in the list | under the queue's mutex |
//! | `REQUEUE` | to be put at the end of the list | done under the mutex |
//! | `DEQUEUE` | to be removed; the page is free | a task that frees the page: set; done under the mutex, or by the task that uses the page next if it is not in the list |
//! | the rest | the page's domain | with `QUEUED` |
//!
//! States change by exchanges. Only its own CPU accesses a batch, pinned.
//!
//! The differences: inactive pages and laundry have no queues, since the page daemon is `vm`'s; a
//! page's domain is the node of the CPU that mapped it first.

use super::domain::{DOMAINS, FreeHeld, MemoryDomains};
use super::pgcache::PageCache;
use crate::page_list::{Ends, PageLinks};
use alloc::vec::Vec;
use core::array;
use machine::{Atomic, Frame, Machine, Ordering, SharedCell};
use sync::adaptive::FreebsdMutex;
use sync::watch::Watched;
use sync::{Padded, PerCpu, RawGuard, RawLock, lock_class};
use vm::Error;
use vm::system::{Extent, PageQueues, Part, Purpose};

lock_class!(
    /// The lock of a domain's active queue (`pq_mutex`). Held for a batch.
    pub PageQueue = "vm active pagequeue", rank 46
);

/// Pages of a batch (`VM_BATCHQUEUE_SIZE` of amd64).
const BATCH: usize = 31;

const QUEUED: u32 = 1;
const ENQUEUED: u32 = 2;
const REQUEUE: u32 = 4;
const DEQUEUE: u32 = 8;
const DOMAIN_SHIFT: u32 = 4;

/// The queues, and the caches of free pages.
pub struct BatchedQueues<M: Machine> {
    queues: [Queue<M>; DOMAINS],
    pages: PageLinks<M, M::AtomicU32>,
    cpus: PerCpu<M::Cell<[Batch; DOMAINS]>, M>,
    cache: PageCache<M>,
}

/// The mutex and the ends are on one line, as in FreeBSD.
type Queue<M> = Padded<(
    Watched<M, FreebsdMutex<M>, PageQueue>,
    <M as machine::Atomics>::Cell<Ends>,
)>;

/// A CPU's batch of pages of one domain.
struct Batch {
    pages: [u32; BATCH],
    count: usize,
}

fn domain_of(state: u32) -> usize {
    (state >> DOMAIN_SHIFT) as usize
}

impl<M: Machine> BatchedQueues<M> {
    /// The pages in the queues, domain by domain.
    pub fn listed(&self) -> Vec<Frame> {
        let mut all = Vec::new();
        for queue in &self.queues {
            let _lock = RawGuard::new(&queue.0.0);
            all.extend(self.pages.iter(&queue.0.1).map(Frame));
        }
        all
    }

    fn state(&self, page: u32) -> u32 {
        self.pages.state(page).load(Ordering::Relaxed)
    }

    /// Changes the state from `from` to `to`. Returns true if it was `from`.
    fn exchange(&self, page: u32, from: u32, to: u32) -> bool {
        // Acquire and release: the next task that changes the state sees what was done to the
        // page's links.
        self.pages
            .state(page)
            .compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    }

    /// Puts the page into this CPU's batch of the domain. If that is full, processes it.
    #[track_caller]
    fn submit(&self, page: u32, domain: usize) {
        let pin = M::pin();
        // SAFETY: pinned, so no other task accesses this CPU's batches.
        let batch = unsafe { &mut (*self.cpus.get(&pin).write())[domain] };
        if batch.count < BATCH {
            batch.pages[batch.count] = page;
            batch.count += 1;
            return;
        }
        drop(pin);
        let _lock = RawGuard::new(&self.queues[domain].0.0);
        let pin = M::pin();
        // SAFETY: pinned again, perhaps on another CPU, whose batches no other task accesses.
        let batch = unsafe { &mut (*self.cpus.get(&pin).write())[domain] };
        let pages = &batch.pages[..batch.count];
        pages.iter().for_each(|&page| self.process(page, domain));
        batch.count = 0;
        self.process(page, domain);
    }

    /// Does what the page's state says. Called under the mutex of the domain's queue.
    fn process(&self, page: u32, domain: usize) {
        let list = &self.queues[domain].0.1;
        loop {
            let state = self.state(page);
            // It has been done already, or the page now belongs to another queue.
            if state & (REQUEUE | DEQUEUE) == 0 || domain_of(state) != domain {
                return;
            }
            if state & DEQUEUE == 0 {
                // From here on a task that uses the page again waits for the mutex.
                if self.exchange(page, state, state & !REQUEUE | ENQUEUED) {
                    return self.pages.enqueue(list, page);
                }
                continue;
            }
            // Dequeued before the page may belong to another queue.
            self.pages.dequeue(list, page);
            if self.exchange(page, state, 0) {
                return;
            }
        }
    }

    /// Removes a page that was freed and is used again before its batch is processed.
    #[track_caller]
    fn dequeue(&self, page: u32, state: u32) {
        if state & ENQUEUED == 0 {
            self.exchange(page, state, 0);
            return;
        }
        let domain = domain_of(state);
        let _lock = RawGuard::new(&self.queues[domain].0.0);
        self.process(page, domain);
    }
}

impl<M: Machine> Part<M> for BatchedQueues<M> {
    type Config = ();

    fn new(_: &(), extent: Extent) -> Result<Self, Error> {
        let batch = || Batch {
            pages: [0; BATCH],
            count: 0,
        };
        let batches = |_| M::Cell::new(array::from_fn(|_| batch()));
        Ok(BatchedQueues {
            queues: array::from_fn(|_| Padded((RawLock::new(), SharedCell::new(Ends::EMPTY)))),
            pages: PageLinks::new(extent.frames, || M::AtomicU32::new(0))?,
            cpus: PerCpu::try_new(extent.cpus, batches)?,
            cache: PageCache::new(extent.cpus)?,
        })
    }

    fn label(&self) {
        M::label_value(&self.queues, "vm_pagequeue");
        self.pages.label("vm_page.plinks");
        self.cpus.label("vm_batchqueue");
        self.cache.label();
    }
}

impl<M: Machine> PageQueues<M> for BatchedQueues<M> {
    type Free<'a> = Option<FreeHeld<'static, M>>;

    /// Pages of objects are taken with their reservations.
    #[inline]
    #[track_caller]
    fn take(&self, purpose: Purpose) -> Option<FreeHeld<'static, M>> {
        match purpose {
            Purpose::Page => None,
            Purpose::Own => self.cache.take(),
        }
    }

    #[inline]
    #[track_caller]
    fn give(&self, purpose: Purpose) -> Option<FreeHeld<'static, M>> {
        match purpose {
            Purpose::Page => None,
            Purpose::Own => self.cache.give(),
        }
    }

    #[track_caller]
    fn activate(&self, frame: Frame) {
        let page = frame.index() as u32;
        loop {
            let state = self.state(page);
            if state & DEQUEUE != 0 {
                self.dequeue(page, state);
                continue;
            }
            if state & QUEUED != 0 {
                return;
            }
            let domain = MemoryDomains::<M>::here();
            let queued = QUEUED | REQUEUE | (domain as u32) << DOMAIN_SHIFT;
            if self.exchange(page, state, queued) {
                return self.submit(page, domain);
            }
        }
    }

    #[track_caller]
    fn remove(&self, frame: Frame) {
        let page = frame.index() as u32;
        loop {
            let state = self.state(page);
            // The page was never mapped.
            if state & QUEUED == 0 {
                return;
            }
            if self.exchange(page, state, state | DEQUEUE) {
                return self.submit(page, domain_of(state));
            }
        }
    }
}
