//! Sleep queues: waiting for an event that an address names (S14 in case study 003).
//!
//! The two queues differ only in their locks: [`Hashed`] has one per bucket, and [`GlobalQueue`]
//! one for all buckets, like a scheduler lock that also guards the sleep queue, which case study
//! 003 finds contended.

use crate::locals::ASLEEP;
use crate::turnstile::Turnstiles;
use machine::Machine;

/// Blocks the calling task by `block`, and adds the time to [`slept`].
#[inline]
pub fn asleep<M: Machine>(block: impl FnOnce()) {
    let from = M::now();
    block();
    let slept = M::now().saturating_sub(from);
    M::with_locals(|locals| {
        let word = &locals.words[ASLEEP];
        word.set(word.get().wrapping_add(slept as usize));
    });
}

/// Nanoseconds that the calling task has slept so far, wrapping; only differences are meaningful.
#[inline]
pub fn slept<M: Machine>() -> usize {
    M::with_locals(|locals| locals.words[ASLEEP].get())
}

/// Tasks that sleep until their key is woken.
pub trait SleepQueue<M: Machine>: Send + Sync {
    /// The queue's name, as the command prints it.
    const NAME: &'static str;

    /// An empty queue.
    fn new() -> Self;

    /// Sleeps on `key` until woken, if `still` returns true. Returns true if it slept.
    ///
    /// `still` runs under the queue's spin lock: if a task makes it false and then calls
    /// [`SleepQueue::wake`], either the call finds the sleeper, or `still` sees the change. It must
    /// be short and not use the queue. [`slept`] counts the time.
    fn sleep(&self, key: *const (), still: impl FnOnce() -> bool) -> bool;

    /// Wakes the `count` tasks that have slept longest on `key`; returns how many there were.
    /// O(tasks woken + keys that share the bucket).
    fn wake(&self, key: *const (), count: usize) -> usize;
}

/// Buckets by the key's address, each with a lock of its own.
pub struct Hashed<M: Machine>(Turnstiles<M>);

/// One bucket under one lock.
pub struct GlobalQueue<M: Machine>(Turnstiles<M>);

macro_rules! sleep_queue {
    ($queue:ident, $name:literal, $buckets:literal) => {
        impl<M: Machine> SleepQueue<M> for $queue<M> {
            const NAME: &'static str = $name;

            fn new() -> Self {
                $queue(Turnstiles::new($buckets))
            }

            fn sleep(&self, key: *const (), still: impl FnOnce() -> bool) -> bool {
                let chain = self.0.lock(key);
                let sleeps = still();
                if sleeps {
                    asleep::<M>(|| chain.wait());
                }
                sleeps
            }

            fn wake(&self, key: *const (), count: usize) -> usize {
                let mut chain = self.0.lock(key);
                (0..count).take_while(|_| chain.signal()).count()
            }
        }
    };
}

sleep_queue!(Hashed, "hashed", 128);
sleep_queue!(GlobalQueue, "global", 1);
