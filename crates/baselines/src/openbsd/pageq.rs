//! The page queues: one active queue under one mutex (S13 in case study 003).
//!
//! A fault moves its page to the end of the queue; a free removes it. Both write the queue's ends
//! or the page's neighbours, under `pageqlock` (OpenBSD 7.0, sys/uvm/uvm_page.c). Free pages are
//! under another mutex, `fpageqlock`, which each CPU takes once for the pages of a magazine
//! (`uvm_pmr_cache`). The differences: the inactive queues stay empty, since the page daemon is
//! `vm`'s; and pages are freed one by one, where OpenBSD frees those of an amap together.
//!
//! # Protocol
//! The queue's ends and all links are read and written under `pageqlock`.

use alloc::boxed::Box;
use alloc::vec::Vec;
use machine::{Atomic, CpuRange, Frame, Machine, Ordering, SharedCell};
use sync::spin::TestAndSet;
use sync::watch::Watched;
use sync::{Padded, PerCpu, RawLock, lock_class};
use vm::Error;
use vm::heap::filled;
use vm::policy::PageQueues;

lock_class!(
    /// The active and inactive queues. Every fault takes it, and every page freed.
    pub PageQueueLock = "pageqlock", rank 46
);
lock_class!(
    /// Free pages in no CPU's magazine. Held for a few dozen instructions.
    pub FreePageLock = "fpageqlock", rank 48
);

/// Pages of a magazine (`UVM_PMR_CACHEMAGSZ`).
const MAGAZINE: u32 = 8;

type Mutex<M, C> = Watched<M, TestAndSet<M>, C>;

/// `uvm.pageqlock`, `uvm.fpageqlock` and the state under the first.
pub struct GlobalQueues<M: Machine> {
    pages: Padded<Mutex<M, PageQueueLock>>,
    free: Padded<Mutex<M, FreePageLock>>,
    /// `uvm.page_active`: its first and its last page.
    ends: Padded<M::Cell<Ends>>,
    /// `pageq` of each page.
    links: Box<[Link<M>]>,
    /// How often a CPU may allocate or free until its magazine is empty, or full.
    magazines: PerCpu<M::AtomicU32, M>,
}

/// No page.
const NONE: u32 = u32::MAX;

struct Ends {
    first: u32,
    last: u32,
}

/// A page's neighbours; a cache line, as a `vm_page` has at least.
#[repr(align(64))]
struct Link<M: Machine>(M::Cell<Neighbours>);

struct Neighbours {
    queued: bool,
    before: u32,
    after: u32,
}

/// The free pages, locked, if that takes a lock.
#[must_use = "the lock is released when this is dropped"]
pub struct FreePages<'a, M: Machine> {
    locked: Option<(&'a Mutex<M, FreePageLock>, Held<M>)>,
}

type Held<M> = <Mutex<M, FreePageLock> as RawLock<M>>::Held;

impl<M: Machine> Drop for FreePages<'_, M> {
    fn drop(&mut self) {
        if let Some((lock, held)) = self.locked.take() {
            // SAFETY: `held` comes from this lock's acquisition, and is taken only once.
            unsafe { lock.unlock(held) };
        }
    }
}

impl<M: Machine> GlobalQueues<M> {
    /// The active pages, in the order of their activation.
    pub fn active(&self) -> Vec<Frame> {
        let mut pages = Vec::new();
        self.locked(|queues| {
            // SAFETY: the queue is locked.
            let mut page = unsafe { (*queues.ends.read()).first };
            while let Some(link) = queues.links.get(page as usize) {
                pages.push(Frame(page));
                // SAFETY: the queue is locked.
                page = unsafe { (*link.0.read()).after };
            }
        });
        pages
    }

    /// Does `work` under `pageqlock`.
    #[track_caller]
    fn locked(&self, work: impl FnOnce(&Self)) {
        let held = self.pages.lock();
        work(self);
        // SAFETY: the mutex was locked above, by this call.
        unsafe { self.pages.unlock(held) };
    }

    /// Removes the page from its queue. Under `pageqlock`.
    fn dequeue(&self, page: u32) {
        // SAFETY: the caller holds `pageqlock`, which guards all links.
        let link = unsafe { &mut *self.links[page as usize].0.write() };
        if !link.queued {
            return;
        }
        link.queued = false;
        let (before, after) = (link.before, link.after);
        self.join(before, after);
    }

    /// Appends the page, which stands in no queue. Under `pageqlock`.
    fn enqueue(&self, page: u32) {
        // SAFETY: the caller holds `pageqlock`, which guards the ends.
        let last = unsafe { (*self.ends.write()).last };
        self.join(last, page);
        self.join(page, NONE);
        // SAFETY: the caller holds `pageqlock`, which guards all links.
        unsafe { (*self.links[page as usize].0.write()).queued = true };
    }

    /// Makes `after` follow `before`; either may be the end of the queue. Under `pageqlock`.
    fn join(&self, before: u32, after: u32) {
        // SAFETY: the caller holds `pageqlock`, which guards the ends and all links.
        unsafe {
            match self.links.get(before as usize) {
                Some(link) => (*link.0.write()).after = after,
                None => (*self.ends.write()).first = after,
            }
            match self.links.get(after as usize) {
                Some(link) => (*link.0.write()).before = before,
                None => (*self.ends.write()).last = before,
            }
        }
    }
}

impl<M: Machine> PageQueues<M> for GlobalQueues<M> {
    type Config = ();
    type Free<'a> = FreePages<'a, M>;

    fn new(_: &(), cpus: CpuRange, frames: usize) -> Result<Self, Error> {
        let alone = || Neighbours {
            queued: false,
            before: NONE,
            after: NONE,
        };
        Ok(GlobalQueues {
            pages: Padded(RawLock::new()),
            free: Padded(RawLock::new()),
            ends: Padded(SharedCell::new(Ends {
                first: NONE,
                last: NONE,
            })),
            links: filled(frames, || Link(SharedCell::new(alone())))?,
            magazines: PerCpu::try_new(cpus, |_| M::AtomicU32::new(0))?,
        })
    }

    fn label(&self) {
        M::label_value(&self.pages, "pageqlock");
        M::label_value(&self.free, "fpageqlock");
        M::label_value(&self.ends, "page_active");
        M::label_value(&*self.links, "vm_page.pageq");
        self.magazines.label("uvm_pmr_cache");
    }

    fn is_used(&self) -> bool {
        true
    }

    #[track_caller]
    fn free(&self) -> FreePages<'_, M> {
        let pin = M::pin();
        let magazine = self.magazines.get(&pin);
        // Relaxed: the CPU's own.
        let left = magazine.load(Ordering::Relaxed);
        magazine.store(
            left.checked_sub(1).unwrap_or(MAGAZINE - 1),
            Ordering::Relaxed,
        );
        // Not pinned while it waits: the holder may be a task that is off this CPU.
        drop(pin);
        let locked = (left == 0).then(|| (&*self.free, self.free.lock()));
        FreePages { locked }
    }

    #[track_caller]
    fn activate(&self, frame: Frame) {
        let page = frame.index() as u32;
        self.locked(|queues| {
            queues.dequeue(page);
            queues.enqueue(page);
        });
    }

    #[track_caller]
    fn remove(&self, frame: Frame) {
        let page = frame.index() as u32;
        self.locked(|queues| queues.dequeue(page));
    }
}
