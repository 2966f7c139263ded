//! `__mp_lock`: the lock of the whole kernel, and that of the scheduler.
//!
//! A ticket lock that its CPU may take again, and that can be let go altogether, however
//! often it was taken: `KERNEL_LOCK` is when its holder sleeps (OpenBSD 7.0,
//! sys/kern/kern_lock.c). Each CPU counts how deep it is in an element of 8 bytes beside
//! those of the other CPUs, so the depths of eight CPUs share a line, as they do there.
//!
//! # Protocol
//! A CPU's element is written by that CPU only, with interrupts disabled there, pinned
//! here. A depth above 0 says that the CPU has the ticket that is served.

use alloc::boxed::Box;
use core::cell::UnsafeCell;
use machine::{Atomic, MAX_CPUS, Machine, Ordering, Pinned};
use sync::spin::Ticket;
use sync::watch::{DefaultObserver, LockClass, Observer, Watched};
use sync::{Padded, RawLock};

type Words<M, C, O> = Watched<M, Ticket<M>, C, O>;
type Held<M, C, O> = <Words<M, C, O> as RawLock<M>>::Held;

/// A recursive ticket lock. Code that runs on no CPU may take it too, if it is alone.
pub struct MpLock<M: Machine, C: LockClass, O: Observer<M> = DefaultObserver> {
    /// `mpl_users` and `mpl_ticket`.
    words: Box<Padded<Words<M, C, O>>>,
    /// `mpl_cpus`; the last is of code that runs on no CPU.
    cpus: Box<[Depth<M>]>,
    /// What the observer is given back at the release; of no kernel.
    held: Box<[Slot<Held<M, C, O>>]>,
}

/// How often a CPU has taken the lock. OpenBSD keeps the CPU's ticket beside it.
#[repr(align(8))]
struct Depth<M: Machine>(M::AtomicU32);

/// Of one CPU.
struct Slot<T>(UnsafeCell<Option<T>>);

// SAFETY: a slot is touched by its CPU only, while that has the lock.
unsafe impl<T> Send for Slot<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Slot<T> {}

impl<M: Machine, C: LockClass, O: Observer<M>> MpLock<M, C, O> {
    /// An unlocked lock, for any number of CPUs.
    pub fn new() -> Self {
        MpLock {
            words: Box::new(Padded(RawLock::new())),
            cpus: (0..=MAX_CPUS)
                .map(|_| Depth(M::AtomicU32::new(0)))
                .collect(),
            held: (0..=MAX_CPUS).map(|_| Slot(None.into())).collect(),
        }
    }

    /// Takes the lock, once more if this CPU has it.
    #[track_caller]
    pub fn lock(&self) {
        if let Some(cpu) = self.deepen(1) {
            self.keep(cpu, self.words.lock());
        }
    }

    /// Undoes one [`MpLock::lock`].
    ///
    /// # Panics
    /// If the CPU does not have the lock.
    pub fn unlock(&self) {
        let pin = M::pin();
        let cpu = index(&pin);
        let depth = self.depth(cpu);
        assert!(depth > 0, "released by a CPU that does not have it");
        self.cpus[cpu].0.store(depth - 1, Ordering::Relaxed);
        if depth == 1 {
            self.release(cpu);
        }
    }

    /// Whether this CPU has the lock.
    pub fn is_mine(&self) -> bool {
        let pin = M::pin();
        self.depth(index(&pin)) > 0
    }

    /// Lets the lock go, if this CPU has it; how often it was taken, for
    /// [`MpLock::lock_again`].
    pub fn release_all(&self) -> u32 {
        let pin = M::pin();
        let cpu = index(&pin);
        let depth = self.depth(cpu);
        if depth > 0 {
            self.cpus[cpu].0.store(0, Ordering::Relaxed);
            self.release(cpu);
        }
        depth
    }

    /// Takes the lock `count` times, as it was before [`MpLock::release_all`]. Locks that the
    /// task has taken since may be held: whoever waits for them lets this lock go.
    #[track_caller]
    pub fn lock_again(&self, count: u32) {
        if count > 0
            && let Some(cpu) = self.deepen(count)
        {
            self.keep(cpu, self.words.lock_again());
        }
    }

    /// Says what is where, see [`machine::Atomics::label`].
    pub fn label(&self, words: &'static str, cpus: &'static str) {
        M::label_value(&*self.words, words);
        M::label_value(&*self.cpus, cpus);
    }

    /// Counts `count` more; the CPU, if it does not have the lock yet.
    #[inline]
    fn deepen(&self, count: u32) -> Option<usize> {
        let pin = M::pin();
        let cpu = index(&pin);
        let depth = self.depth(cpu);
        self.cpus[cpu].0.store(depth + count, Ordering::Relaxed);
        (depth == 0).then_some(cpu)
    }

    /// Notes that the CPU has the lock.
    #[inline]
    fn keep(&self, cpu: usize, held: Held<M, C, O>) {
        // SAFETY: the slot is this CPU's, which has the lock now.
        unsafe { *self.held[cpu].0.get() = Some(held) };
    }

    /// The CPU's depth is 0 again.
    fn release(&self, cpu: usize) {
        // SAFETY: the slot is this CPU's, which still has the lock.
        let held = unsafe { (*self.held[cpu].0.get()).take() };
        let held = held.expect("noted when it was taken");
        // SAFETY: from this lock's acquisition, and given back once.
        unsafe { self.words.unlock(held) };
    }

    /// Relaxed: only the CPU itself writes it.
    fn depth(&self, cpu: usize) -> u32 {
        self.cpus[cpu].0.load(Ordering::Relaxed)
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
