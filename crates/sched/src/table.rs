//! The places of tasks. They are never moved or freed, so that even a stale name leads to a place,
//! whose generation shows that the name is stale.
//!
//! Places lie in buckets, each twice as large as the one before, allocated when needed. A CPU keeps
//! a few free places of its own and exchanges them with the shared list in batches, so most tasks
//! are made and end without a shared lock.

use crate::Policy;
use crate::task::{INDEX_BITS, Task, TaskRef};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ptr::{NonNull, null_mut, slice_from_raw_parts_mut};
use machine::{Atomic, Contexts, Ordering, SharedCell, TaskName};
use sync::Mutex;
use sync::spin::TestAndSet;

/// log2 of the places in the first bucket.
const FIRST_BITS: u32 = 5;
/// The buckets that the bits of a name can number.
const BUCKETS: usize = (INDEX_BITS - FIRST_BITS) as usize;
/// Places moved between a CPU's list and the shared one at a time.
const BATCH: usize = 16;

/// The table of all places.
pub(crate) struct Table<M: Contexts, P: Policy<M>> {
    /// Bucket `b` has `1 << (FIRST_BITS + b)` places, or is null. Set once, by the holder of
    /// `shared`.
    buckets: [M::AtomicPtr; BUCKETS],
    shared: Mutex<M, TestAndSet<M>, Shared<M, P>>,
}

struct Shared<M: Contexts, P: Policy<M>> {
    free: FreeList<M, P>,
    /// The places below this have been handed out.
    fresh: usize,
}

/// A list of free places, linked through themselves. The list's owner owns them.
pub(crate) struct FreeList<M: Contexts, P: Policy<M>> {
    first: Option<TaskRef<M, P>>,
    count: usize,
}

impl<M: Contexts, P: Policy<M>> FreeList<M, P> {
    pub(crate) fn new() -> Self {
        FreeList {
            first: None,
            count: 0,
        }
    }

    fn push(&mut self, task: TaskRef<M, P>) {
        // SAFETY: the place is free, and from now on owned by this list.
        unsafe { *task.next_free.write() = self.first };
        self.first = Some(task);
        self.count += 1;
    }

    fn pop(&mut self) -> Option<TaskRef<M, P>> {
        let task = self.first?;
        // SAFETY: this list owns the place.
        self.first = unsafe { *task.next_free.read() };
        self.count -= 1;
        Some(task)
    }
}

/// The bucket of a place, and its position there.
fn position(index: usize) -> (usize, usize) {
    let shifted = index + (1 << FIRST_BITS);
    let bits = shifted.ilog2();
    ((bits - FIRST_BITS) as usize, shifted - (1 << bits))
}

impl<M: Contexts, P: Policy<M>> Table<M, P> {
    pub(crate) fn new() -> Self {
        let shared = Shared {
            free: FreeList::new(),
            fresh: 0,
        };
        Table {
            buckets: core::array::from_fn(|_| M::AtomicPtr::new(null_mut())),
            shared: Mutex::new(shared),
        }
    }

    /// Takes a free place, from `list` if it has one. `None` if memory is short. The caller is
    /// pinned.
    pub(crate) fn take(&self, list: &mut FreeList<M, P>) -> Option<TaskRef<M, P>> {
        if list.first.is_none() {
            self.refill(list);
        }
        list.pop()
    }

    /// Gives the place of a task that has ended to `list`. The caller is pinned.
    pub(crate) fn give(&self, list: &mut FreeList<M, P>, task: TaskRef<M, P>) {
        list.push(task);
        if list.count > 2 * BATCH {
            let mut shared = self.shared.lock();
            let batch = (0..BATCH).map_while(|_| list.pop());
            batch.for_each(|task| shared.free.push(task));
        }
    }

    #[cold]
    fn refill(&self, list: &mut FreeList<M, P>) {
        let mut shared = self.shared.lock();
        for _ in 0..BATCH {
            let Some(task) = shared.free.pop().or_else(|| self.fresh(&mut shared)) else {
                return;
            };
            list.push(task);
        }
    }

    /// A place that no task has used.
    fn fresh(&self, shared: &mut Shared<M, P>) -> Option<TaskRef<M, P>> {
        let (bucket, offset) = position(shared.fresh);
        let pointer = self.buckets.get(bucket)?;
        if pointer.load(Ordering::Relaxed).is_null() {
            let places = make_bucket::<M, P>(bucket)?;
            // Release: pairs with the acquire in `place`.
            pointer.store(places.as_ptr().cast(), Ordering::Release);
        }
        let task = self.place(bucket, offset)?;
        shared.fresh += 1;
        Some(task)
    }

    fn place(&self, bucket: usize, offset: usize) -> Option<TaskRef<M, P>> {
        // Acquire: pairs with the release in `fresh`; the places are seen initialised.
        let first = self.buckets.get(bucket)?.load(Ordering::Acquire);
        let first = NonNull::new(first.cast::<Task<M, P>>())?;
        // SAFETY: `position` yields offsets within the bucket, which lives as long as the table,
        // and the table as long as the scheduler.
        Some(unsafe { TaskRef::new(first.add(offset)) })
    }

    /// The place that a name belongs to, and the name's generation.
    pub(crate) fn find(&self, name: TaskName) -> Option<(TaskRef<M, P>, u64)> {
        let (bucket, offset) = position((name.0 & ((1 << INDEX_BITS) - 1)) as usize);
        Some((self.place(bucket, offset)?, name.0 >> INDEX_BITS))
    }
}

fn make_bucket<M: Contexts, P: Policy<M>>(bucket: usize) -> Option<NonNull<Task<M, P>>> {
    let count = 1 << (FIRST_BITS as usize + bucket);
    let first = count - (1 << FIRST_BITS);
    let mut places = Vec::new();
    places.try_reserve_exact(count).ok()?;
    places.extend((first..first + count).map(|index| Task::new(index as u32)));
    let places: *mut [Task<M, P>] = Box::into_raw(places.into_boxed_slice());
    NonNull::new(places.cast())
}

impl<M: Contexts, P: Policy<M>> Drop for Table<M, P> {
    fn drop(&mut self) {
        for (bucket, pointer) in self.buckets.iter().enumerate() {
            let first = pointer.load(Ordering::Relaxed).cast::<Task<M, P>>();
            if !first.is_null() {
                let count = 1 << (FIRST_BITS as usize + bucket);
                // SAFETY: `make_bucket` made it from a box of this length, and by the contract of
                // `TaskRef` the places are not used any more.
                drop(unsafe { Box::from_raw(slice_from_raw_parts_mut(first, count)) });
            }
        }
    }
}
