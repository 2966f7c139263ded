//! How long an object lives, and the list of its attachments: both by CPU.
//!
//! # Protocol
//! An object is kept by its handles ([`ObjectRef`]) and by its attachments. Each CPU that
//! attaches has a *shard*: a list of attachments under a lock, made when first needed. As
//! long as there is a handle nothing is counted. When the last goes, the object is *closed*:
//! from then on a counter says how many shards have attachments (plus one for the task that
//! closes), as Linux's `percpu_ref` switches to one counter when it is killed. Only
//! a shard's first attachment and its last touch the counter.
//!
//! - Closing: say so, fence, then lock each shard there is, mark it closed and count
//!   it if it has attachments.
//! - A shard that is made late: publish it, fence, and close it if the object is. Either
//!   the maker sees that, or the closer sees the shard. Until then the maker's source, an
//!   attachment that is counted or a handle, keeps the object.
//! - The task that takes the last attachment out of a closed shard counts down; with the last
//!   of all the object goes.
//!
//! The shards' locks spin, and are not touched after they are released: a task that releases one
//! may be the last but one.

use super::Object;
use super::attachment::{Attached, Attachment};
use crate::error::Error;
use crate::heap::try_box;
use crate::lock::ShardLock;
use crate::policy::Policies;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::iter;
use core::marker::PhantomData;
use core::ptr::{self, NonNull};
use machine::{
    Atomic, AtomicInt, CpuRange, Machine, Ordering, Pinned, Platform, SharedCell, VaRange,
};
use sync::Padded;

/// See the module.
pub(super) struct Life<M: Platform, P: Policies<M>> {
    cpus: CpuRange,
    /// A [`Shard`] for each CPU, or null. Written once each.
    shards: Box<[M::AtomicPtr]>,
    /// 1 when the last handle has gone.
    closed: M::AtomicU32,
    counts: Padded<Counts<M>>,
    of: PhantomData<fn() -> P>,
}

struct Counts<M: Machine> {
    /// Handles.
    handles: M::AtomicUsize,
    /// Closed shards that have attachments, and one for the task that closes.
    shards: M::AtomicUsize,
}

/// The attachments made on one CPU.
pub(super) struct Shard<M: Platform, P: Policies<M>>(ShardLock<M, List<M, P>>);

/// Its list; and whether it is counted.
pub(super) struct List<M: Platform, P: Policies<M>> {
    first: *const Attachment<M, P>,
    closed: bool,
}

// SAFETY: attachments may be used by all CPUs, and links are followed under the lock.
unsafe impl<M: Platform, P: Policies<M>> Send for List<M, P> {}

impl<M: Platform, P: Policies<M>> Life<M, P> {
    /// The life of an object with one handle.
    pub(super) fn new(cpus: CpuRange) -> Result<Self, Error> {
        let mut shards = Vec::new();
        shards.try_reserve_exact(cpus.len())?;
        shards.extend((0..cpus.len()).map(|_| M::AtomicPtr::new(ptr::null_mut())));
        Ok(Life {
            cpus,
            shards: shards.into_boxed_slice(),
            closed: M::AtomicU32::new(0),
            counts: Padded(Counts {
                handles: M::AtomicUsize::new(1),
                shards: M::AtomicUsize::new(1),
            }),
            of: PhantomData,
        })
    }

    pub(super) fn label(&self) {
        M::label_value(&*self.shards, "Object.shards");
        M::label_value(&self.counts, "Object.counts");
    }

    /// The calling CPU's shard, and its index.
    ///
    /// # Panics
    /// If the caller runs on no CPU of the machine.
    pub(super) fn own_shard(&self) -> Result<(&Shard<M, P>, usize), Error> {
        let index = self.cpus.index_of(M::pin().cpu());
        match self.shard(index) {
            Some(shard) => Ok((shard, index)),
            None => Ok((self.make_shard(index)?, index)),
        }
    }

    fn shard(&self, index: usize) -> Option<&Shard<M, P>> {
        // Acquire: pairs with the release in `make_shard`.
        let shard = self.shards[index].load(Ordering::Acquire);
        // SAFETY: a shard that was published stays until `self` is dropped.
        unsafe { shard.cast::<Shard<M, P>>().as_ref() }
    }

    #[cold]
    fn make_shard(&self, index: usize) -> Result<&Shard<M, P>, Error> {
        let made = try_box(Padded(Shard(ShardLock::<M, _>::new(List::<M, P> {
            first: ptr::null(),
            closed: false,
        }))))?;
        M::label_value(&*made, "Object.shard");
        let made = Box::into_raw(made);
        // Release: a task that finds the shard finds it whole. Another task on this CPU may have
        // been faster.
        let won = self.shards[index].compare_exchange(
            ptr::null_mut(),
            made.cast(),
            Ordering::Release,
            Ordering::Relaxed,
        );
        if won.is_err() {
            // SAFETY: made above, and seen by nobody.
            drop(unsafe { Box::from_raw(made) });
        }
        let shard = self.shard(index).expect("there is one now");
        // Pairs with the fence in `close`.
        M::fence(Ordering::SeqCst);
        if self.closed.load(Ordering::Relaxed) != 0 {
            self.close_shard(shard);
        }
        Ok(shard)
    }

    /// Counts one handle more.
    pub(super) fn add_handle(&self) {
        // Relaxed: the caller has one, which keeps the object.
        self.counts.handles.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts one handle less; whether it was the last.
    pub(super) fn drop_handle(&self) -> bool {
        // AcqRel: the task that drops the last one sees what others did before they dropped theirs.
        self.counts.handles.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// Counts from now on what keeps the object: the last handle has gone.
    pub(super) fn close(&self) {
        // Then a fence: pairs with that in `make_shard`.
        self.closed.publish(1);
        for shard in (0..self.shards.len()).filter_map(|index| self.shard(index)) {
            self.close_shard(shard);
        }
    }

    /// Counts the shard from now on.
    fn close_shard(&self, shard: &Shard<M, P>) {
        let mut list = shard.0.lock();
        if !list.closed {
            list.closed = true;
            self.count_if(!list.first.is_null());
        }
    }

    /// Adds one to the counter, which is not 0.
    fn count_if(&self, counts: bool) {
        if counts {
            // Relaxed: the caller keeps the object otherwise.
            self.counts.shards.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Puts a new attachment on the list.
    pub(super) fn insert(&self, shard: &Shard<M, P>, attachment: NonNull<Attachment<M, P>>) {
        let mut list = shard.0.lock();
        self.count_if(list.closed && list.first.is_null());
        // SAFETY: what is on the list lives, and the lock is held.
        unsafe {
            let next = list.first;
            (*attachment.as_ref().links.write()).next = next;
            if let Some(next) = next.as_ref() {
                (*next.links.write()).previous = attachment.as_ptr();
            }
        }
        list.first = attachment.as_ptr();
    }
}

impl<M: Platform, P: Policies<M>> List<M, P> {
    /// # Safety
    /// `attachment` is on this list, which is locked.
    unsafe fn remove(&mut self, attachment: &Attachment<M, P>) {
        // SAFETY: it and its neighbours are on the list, and the lock is held.
        unsafe {
            let links = attachment.links.read();
            let (next, previous) = ((*links).next, (*links).previous);
            match previous.as_ref() {
                Some(previous) => (*previous.links.write()).next = next,
                None => self.first = next,
            }
            if let Some(next) = next.as_ref() {
                (*next.links.write()).previous = previous;
            }
        }
    }

    /// The attachments, while the list is locked.
    fn iter(&self) -> impl Iterator<Item = &Attachment<M, P>> {
        // SAFETY: what is on the list lives while the lock is held.
        let follow = |at: *const Attachment<M, P>| unsafe { at.as_ref() };
        // SAFETY: links are under the lock.
        iter::successors(follow(self.first), move |at| unsafe {
            follow((*at.links.read()).next)
        })
    }

    /// The first attachment behind `after` (`None`: of all) that is not about to go.
    fn next(&self, after: Option<&Attachment<M, P>>) -> Option<Attached<M, P>> {
        // SAFETY: what is on the list lives while the lock is held, and it is.
        unsafe {
            let mut at = after.map_or(self.first, |after| (*after.links.read()).next);
            while let Some(attachment) = at.as_ref() {
                if attachment.try_retain() {
                    return Some(Attached::from_raw(attachment));
                }
                at = (*attachment.links.read()).next;
            }
        }
        None
    }
}

/// Takes an attachment whose last reference has gone off its list, and frees it.
///
/// # Safety
/// It is so, and the caller dropped that reference.
pub(super) unsafe fn detach<M: Platform, P: Policies<M>>(place: NonNull<Attachment<M, P>>) {
    // SAFETY: on its list until it is taken off here, with the object.
    let (object, is_last) = unsafe {
        let attachment = place.as_ref();
        let object = attachment.object_pointer();
        let shard = object.as_ref().life.shard(attachment.shard as usize);
        let mut list = shard.expect("the shard that lists it").0.lock();
        list.remove(attachment);
        (object, list.closed && list.first.is_null())
    };
    // SAFETY: from `Attached::make`, and nobody finds it any more.
    drop(unsafe { Box::from_raw(place.as_ptr()) });
    if is_last {
        // SAFETY: the shard was counted, and its attachments are gone.
        unsafe { count_down(object) };
    }
}

/// Takes one from the counter of a closed object, which goes with the last.
///
/// # Safety
/// The one is the caller's.
pub(super) unsafe fn count_down<M: Platform, P: Policies<M>>(object: NonNull<Object<M, P>>) {
    // SAFETY: the counter is not 0 yet.
    let counts = unsafe { &object.as_ref().life.counts };
    // AcqRel: the task that counts the last one sees what all others did.
    if counts.shards.fetch_sub(1, Ordering::AcqRel) == 1 {
        // SAFETY: from `ObjectRef::first`; neither a handle nor an attachment is left.
        drop(unsafe { Box::from_raw(object.as_ptr()) });
    }
}

impl<M: Platform, P: Policies<M>> Drop for Life<M, P> {
    fn drop(&mut self) {
        for shard in &self.shards {
            let shard = shard.load(Ordering::Relaxed).cast::<Padded<Shard<M, P>>>();
            if !shard.is_null() {
                // SAFETY: from `make_shard`; nobody else is left.
                drop(unsafe { Box::from_raw(shard) });
            }
        }
    }
}

impl<M: Platform, P: Policies<M>> Object<M, P> {
    /// Calls `visit` with each attachment that is there during the whole call, once, and
    /// with some of those that come or go meanwhile. No lock is held then.
    pub fn for_each_attachment(&self, mut visit: impl FnMut(&Attached<M, P>)) {
        let life = &self.life;
        for shard in (0..life.shards.len()).filter_map(|index| life.shard(index)) {
            let mut at = shard.0.lock().next(None);
            while let Some(attached) = at {
                visit(&attached);
                // The one that was visited stays on the list until the next is found.
                at = shard.0.lock().next(Some(&attached));
            }
        }
    }
}

impl<M: Platform, P: Policies<M>> Object<M, P> {
    /// The owners that map the object, each with where, and from which page of the object on: all that
    /// do during the whole call. O(mappings).
    ///
    /// # Safety
    /// All owners are `T`s, each in an `Arc` that stays while an attachment of its own is listed.
    pub(crate) unsafe fn mappers<T>(&self) -> Result<Vec<Mapper<T>>, Error> {
        let mut mappers = Vec::new();
        for shard in (0..self.life.shards.len()).filter_map(|index| self.life.shard(index)) {
            loop {
                mappers.try_reserve(1)?;
                let room = mappers.capacity() - mappers.len();
                let list = shard.0.lock();
                let count = list.iter().count();
                if count <= room {
                    // SAFETY: the shard's lock keeps them listed, so by the caller's promise the owners
                    // are there.
                    mappers.extend(list.iter().map(|at| unsafe { at.mapper() }));
                    break;
                }
                drop(list);
                mappers.try_reserve(count)?;
            }
        }
        Ok(mappers)
    }
}

/// The owner of an attachment, where it maps the object, and from which of its pages on.
pub(crate) type Mapper<T> = (Arc<T>, VaRange, u64);
