//! Waiting until one of several ends of pipes is ready (`poll`, `select`).
//!
//! A poller checks each end and registers itself where the end is not ready, under that pipe's
//! lock; so a change either comes after the check and finds the poller, or before and is seen. A
//! task that changes a pipe unregisters its pollers, marks each and wakes it by
//! [`Kernel::select_wakeup`]; the poller, awake, unregisters everywhere and checks again.

use crate::{End, Kernel, Pipe};
use core::ptr;
use machine::{Atomic, Machine, Ordering};

/// A polling task; on its stack, in place while it is registered.
pub(crate) struct Poller<M: Machine> {
    /// 1 once one of its ends has changed.
    told: M::AtomicU32,
}

impl<M: Machine> Poller<M> {
    /// Marks the poller, under the lock of a pipe; returns the key to wake it by, which outlives
    /// it.
    pub(crate) fn tell(&self) -> *const () {
        // Relaxed: the kernel's lock for sleepers orders it, see `Pipe::when_ready`.
        self.told.store(1, Ordering::Relaxed);
        self.key()
    }

    fn key(&self) -> *const () {
        ptr::from_ref(self).cast()
    }
}

/// Returns which of `ends` are ready, by index, as bits. Waits until one is, if `wait` says so;
/// otherwise checks once. Of more than 64 ends the first 64 count.
pub fn poll<M: Machine, K: Kernel<M>>(kernel: &K, ends: &[(&Pipe<M>, End)], wait: bool) -> u64 {
    poll_while(kernel, ends, || wait)
}

/// Returns which of `ends` are ready, as bits, and waits while `waits` returns true; it is called
/// before each sleep. Returns 0 if it would have to wait longer.
pub fn poll_while<M: Machine, K: Kernel<M>>(
    kernel: &K,
    ends: &[(&Pipe<M>, End)],
    waits: impl Fn() -> bool,
) -> u64 {
    let ends = ends.iter().take(64);
    look_while(kernel, ends.map(|&(pipe, end)| (pipe, end, None)), waits)
}

/// Waits until one of `ends` is ready and has changed since its [`Pipe::changes`] were counted, as
/// long as `waits` returns true; it is called before each sleep. Returns false if it would have to
/// wait longer.
pub fn poll_changes<'a, M: Machine, K: Kernel<M>>(
    kernel: &K,
    ends: impl Iterator<Item = (&'a Pipe<M>, End, u64)> + Clone,
    waits: impl Fn() -> bool,
) -> bool {
    let ends = ends.map(|(pipe, end, seen)| (pipe, end, Some(seen)));
    look_while(kernel, ends, waits) != 0
}

/// Returns which of `ends` are ready, and have changed since the count of changes, if there is one;
/// as bits, the last one for all ends from the 64th on.
fn look_while<'a, M: Machine, K: Kernel<M>>(
    kernel: &K,
    ends: impl Iterator<Item = Looked<'a, M>> + Clone,
    waits: impl Fn() -> bool,
) -> u64 {
    let poller = Poller {
        told: M::AtomicU32::new(0),
    };
    loop {
        let registered = Registered {
            poller: &poller,
            ends: ends.clone(),
        };
        let wait = waits();
        let ready = registered.look(wait);
        if ready != 0 || !wait {
            return ready;
        }
        let key = registered.poller.key();
        kernel.sleep(key, || poller.told.load(Ordering::Relaxed) == 0);
        drop(registered);
        poller.told.store(0, Ordering::Relaxed); // it is registered nowhere
    }
}

/// An end, and the count of its changes that are known.
type Looked<'a, M> = (&'a Pipe<M>, End, Option<u64>);

/// Unregisters the poller everywhere when dropped.
struct Registered<'p, 'a, M: Machine, E: Iterator<Item = Looked<'a, M>> + Clone> {
    poller: &'p Poller<M>,
    ends: E,
}

impl<'a, M: Machine, E: Iterator<Item = Looked<'a, M>> + Clone> Registered<'_, 'a, M, E> {
    /// Returns which ends are ready. While none is, registers at each, if asked to.
    fn look(&self, register: bool) -> u64 {
        let mut ready = 0;
        for (place, (pipe, end, seen)) in self.ends.clone().enumerate() {
            let poller = (register && ready == 0).then_some(self.poller);
            // SAFETY: the poller stays until this is dropped, which unregisters it.
            ready |= u64::from(unsafe { pipe.look(end, seen, poller) }) << place.min(63);
        }
        ready
    }
}

impl<'a, M: Machine, E: Iterator<Item = Looked<'a, M>> + Clone> Drop for Registered<'_, 'a, M, E> {
    fn drop(&mut self) {
        self.ends
            .clone()
            .for_each(|(pipe, ..)| pipe.forget(self.poller));
    }
}
