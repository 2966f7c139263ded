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

use crate::page_list::{Ends, PageLinks};
use alloc::vec::Vec;
use machine::{Atomic, Frame, Machine, Ordering, SharedCell};
use sync::spin::TestAndSet;
use sync::watch::Watched;
use sync::{Padded, PerCpu, RawLock, lock_class};
use vm::Error;
use vm::system::{Extent, PageQueues, Part, Purpose};

lock_class!(
    /// The lock of the active and inactive queues. Every fault and every freed page takes it.
    pub PageQueueLock = "pageqlock", rank 46
);
lock_class!(
    /// The lock of the free pages in no CPU's magazine. Held for a few dozen instructions.
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
    links: PageLinks<M>,
    /// How often a CPU may still allocate or free before its magazine is empty or full.
    magazines: PerCpu<M::AtomicU32, M>,
}

/// The free pages, locked if that takes a lock.
#[must_use = "the lock is released when this is dropped"]
pub struct FreePages<'a, M: Machine> {
    locked: Option<(&'a Mutex<M, FreePageLock>, Held<M>)>,
}

type Held<M> = <Mutex<M, FreePageLock> as RawLock<M>>::Held;

impl<M: Machine> Default for FreePages<'_, M> {
    fn default() -> Self {
        FreePages { locked: None }
    }
}

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
            pages.extend(queues.links.iter(&queues.ends).map(Frame));
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
}

impl<M: Machine> Part<M> for GlobalQueues<M> {
    type Config = ();

    fn new(_: &(), extent: Extent) -> Result<Self, Error> {
        Ok(GlobalQueues {
            pages: Padded(RawLock::new()),
            free: Padded(RawLock::new()),
            ends: Padded(SharedCell::new(Ends::EMPTY)),
            links: PageLinks::new(extent.frames, || ())?,
            magazines: PerCpu::try_new(extent.cpus, |_| M::AtomicU32::new(0))?,
        })
    }

    fn label(&self) {
        M::label_value(&self.pages, "pageqlock");
        M::label_value(&self.free, "fpageqlock");
        M::label_value(&self.ends, "page_active");
        self.links.label("vm_page.pageq");
        self.magazines.label("uvm_pmr_cache");
    }
}

impl<M: Machine> PageQueues<M> for GlobalQueues<M> {
    type Free<'a> = FreePages<'a, M>;

    #[track_caller]
    fn take(&self, _: Purpose) -> FreePages<'_, M> {
        self.free()
    }

    #[track_caller]
    fn give(&self, _: Purpose) -> FreePages<'_, M> {
        self.free()
    }

    #[track_caller]
    fn activate(&self, frame: Frame) {
        let page = frame.index() as u32;
        self.locked(|queues| {
            queues.links.dequeue(&queues.ends, page);
            queues.links.enqueue(&queues.ends, page);
        });
    }

    #[track_caller]
    fn remove(&self, frame: Frame) {
        let page = frame.index() as u32;
        self.locked(|queues| queues.links.dequeue(&queues.ends, page));
    }
}

impl<M: Machine> GlobalQueues<M> {
    /// Counts a page taken or freed, and locks the free pages if this CPU's magazine is empty or
    /// full.
    #[track_caller]
    fn free(&self) -> FreePages<'_, M> {
        let pin = M::pin();
        let magazine = self.magazines.get(&pin);
        // Relaxed: only this CPU accesses it.
        let left = magazine.load(Ordering::Relaxed);
        magazine.store(
            left.checked_sub(1).unwrap_or(MAGAZINE - 1),
            Ordering::Relaxed,
        );
        // Not pinned while waiting: the holder may be a task that was preempted on this CPU.
        drop(pin);
        let locked = (left == 0).then(|| (&*self.free, self.free.lock()));
        FreePages { locked }
    }
}
