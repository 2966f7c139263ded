//! `__mp_lock`: the lock of the whole kernel, and that of the scheduler.
//!
//! A ticket lock that its CPU may take again, and that can be released altogether, however often it
//! was taken, as `KERNEL_LOCK` is when its holder sleeps (OpenBSD 7.0, sys/kern/kern_lock.c). Each
//! CPU counts its depth in an element of 8 bytes of one array, so the depths of eight CPUs share a
//! cache line, as they do in OpenBSD.
//!
//! # Protocol
//! The task that acquires the lock writes its name as the owner; a task reads its own name there
//! only if it holds the lock. Only the owner accesses the count of its acquisitions and the value
//! to be returned to the observer. The CPUs' elements hold the depths as well and are written as
//! often as OpenBSD's: they exist only for their cost, since CPUs of two machines in one process
//! may have the same number.
//!
//! A switch hands the lock from one context to the next ([`MpLock::lock_for_switch`]). Meanwhile
//! the CPU owns it, and no task.

use alloc::boxed::Box;
use core::cell::UnsafeCell;
use core::panic::Location;
use core::ptr::from_ref;
use core::sync::atomic::AtomicUsize;
use machine::{Atomic, MAX_CPUS, Machine, Ordering, Pinned};
use sync::off_cpu::{self, GivenUp};
use sync::spin::Ticket;
use sync::watch::{DefaultObserver, LockClass, Observer, Watched};
use sync::{Padded, RawLock};

type Words<M, C, O> = Watched<M, Ticket<M>, C, O>;
type Held<M, C, O> = <Words<M, C, O> as RawLock<M>>::Held;

/// A recursive ticket lock. Code that runs on no CPU may take it too, if it is alone.
pub struct MpLock<M: Machine, C: LockClass, O: Observer<M> = DefaultObserver> {
    /// `mpl_users` and `mpl_ticket`.
    words: Box<Padded<Words<M, C, O>>>,
    /// `mpl_cpus`; the last one is for code that runs on no CPU.
    cpus: Box<[Depth<M>]>,
    /// The owner, 0 for none. No kernel has this field or `taken`, so both are plain memory, for
    /// which a machine does not charge.
    owner: AtomicUsize,
    /// The functions by which the holder gives the lock up while it is off its CPU, if it does.
    given_up: Option<&'static GivenUp>,
    taken: Taken<Held<M, C, O>>,
}

/// How often a CPU has taken the lock. OpenBSD keeps the CPU's ticket in the same element.
#[repr(align(8))]
struct Depth<M: Machine>(M::AtomicU32);

/// How often the owner has taken the lock, and the observer's ticket for the release.
struct Taken<T>(UnsafeCell<(u32, Option<T>)>);

// SAFETY: only the owner touches it, and the lock orders owners.
unsafe impl<T> Send for Taken<T> {}
// SAFETY: only the owner touches it, and the lock orders owners.
unsafe impl<T> Sync for Taken<T> {}

/// The owner while the lock is handed from one context to another: no task's name, which is an
/// address.
const HANDED: usize = 1;

/// The calling task: the address of its local words, which is unique while the task lives.
fn me<M: Machine>() -> usize {
    M::with_locals(|locals| from_ref(locals) as usize)
}

impl<M: Machine, C: LockClass, O: Observer<M>> MpLock<M, C, O> {
    /// An unlocked lock, for any number of CPUs.
    pub fn new() -> Self {
        Self::with(None)
    }

    /// An unlocked lock that its holder gives up while it is off its CPU, by these functions.
    pub fn given_up(by: &'static GivenUp) -> Self {
        Self::with(Some(by))
    }

    fn with(given_up: Option<&'static GivenUp>) -> Self {
        MpLock {
            words: Box::new(Padded(RawLock::new())),
            cpus: (0..=MAX_CPUS)
                .map(|_| Depth(M::AtomicU32::new(0)))
                .collect(),
            owner: AtomicUsize::new(0),
            given_up,
            taken: Taken(UnsafeCell::new((0, None))),
        }
    }

    /// Acquires the lock, or takes it once more if this task holds it.
    #[track_caller]
    pub fn lock(&self) {
        if self.is_mine() {
            return self.deepen(1);
        }
        self.note(1);
        self.own(self.words.lock(), 1);
    }

    /// Undoes one [`MpLock::lock`].
    ///
    /// # Panics
    /// If the task does not hold the lock.
    pub fn unlock(&self) {
        assert!(self.is_mine(), "released by a task that does not hold it");
        // SAFETY: the task is the owner.
        let depth = unsafe { (*self.taken.0.get()).0 };
        if depth == 1 {
            self.release_all();
        } else {
            self.set_depth(depth - 1);
        }
    }

    /// Returns true if the calling task holds the lock.
    pub fn is_mine(&self) -> bool {
        // Relaxed: a task finds its own name only if it wrote it.
        self.owner.load(Ordering::Relaxed) == me::<M>()
    }

    /// Releases the lock altogether, if this task holds it; returns how often it was taken, for
    /// [`MpLock::lock_again`].
    pub fn release_all(&self) -> u32 {
        if !self.is_mine() {
            return 0;
        }
        // SAFETY: the task is the owner until it resets the owner below.
        let (depth, held) = unsafe {
            let taken = &mut *self.taken.0.get();
            (taken.0, taken.1.take())
        };
        self.set_depth(0);
        self.owner.store(0, Ordering::Relaxed);
        if self.given_up.is_some() {
            off_cpu::release::<M>();
        }
        let held = held.expect("noted when it was taken");
        // SAFETY: `held` comes from this lock's acquisition, and is taken only once.
        unsafe { self.words.unlock(held) };
        depth
    }

    /// Acquires the lock `count` times, as it was before [`MpLock::release_all`]. The task may hold
    /// locks that it has taken since: a task that waits for those releases this one.
    #[track_caller]
    pub fn lock_again(&self, count: u32) {
        if count == 0 {
            return;
        }
        if self.is_mine() {
            return self.deepen(count);
        }
        self.note(count);
        self.own(self.words.lock_again(), count);
    }

    /// Acquires the lock, unless the task holds it, at any depth (`__mp_release_all_but_one`), and
    /// leaves it to the CPU, for [`MpLock::unlock_after_switch`].
    #[track_caller]
    pub(crate) fn lock_for_switch(&self) {
        if !self.is_mine() {
            self.lock();
        }
        self.set_depth(1);
        self.words.hand_over();
        self.owner.store(HANDED, Ordering::Relaxed);
    }

    /// Releases the lock that [`MpLock::lock_for_switch`] has left to the calling CPU.
    ///
    /// # Panics
    /// If it was not handed over.
    #[track_caller]
    pub(crate) fn unlock_after_switch(&self) {
        // Relaxed: the CPU has held the lock since it wrote this.
        let owner = self.owner.load(Ordering::Relaxed);
        assert!(
            owner == HANDED,
            "released by a CPU that was not left with it"
        );
        self.words.take_over(Location::caller());
        self.owner.store(me::<M>(), Ordering::Relaxed);
        self.release_all();
    }

    /// Labels the lock's parts ([`machine::Atomics::label`]).
    pub fn label(&self, words: &'static str, cpus: &'static str) {
        M::label_value(&*self.words, words);
        M::label_value(&*self.cpus, cpus);
    }

    /// Records that the task has taken the lock `count` times.
    #[inline]
    fn own(&self, held: Held<M, C, O>, count: u32) {
        self.owner.store(me::<M>(), Ordering::Relaxed);
        // SAFETY: the task is the owner.
        unsafe { *self.taken.0.get() = (count, Some(held)) };
        if let Some(by) = self.given_up {
            off_cpu::hold::<M>(by);
        }
    }

    #[inline]
    fn deepen(&self, count: u32) {
        // SAFETY: the task is the owner.
        let depth = unsafe { (*self.taken.0.get()).0 };
        self.set_depth(depth + count);
    }

    /// Sets the owner's depth.
    #[inline]
    fn set_depth(&self, depth: u32) {
        // SAFETY: the task is the owner.
        unsafe { (*self.taken.0.get()).0 = depth };
        self.note(depth);
    }

    /// Writes the depth to the CPU's element, where OpenBSD has it.
    #[inline]
    fn note(&self, depth: u32) {
        let element = &self.cpus[index(&M::pin())];
        element.0.store(depth, Ordering::Relaxed);
    }
}

impl<M: Machine, C: LockClass, O: Observer<M>> Default for MpLock<M, C, O> {
    fn default() -> Self {
        Self::new()
    }
}

/// The element of the CPU that `pin` holds.
fn index(pin: &impl Pinned) -> usize {
    pin.cpu().index().min(MAX_CPUS)
}
