//! Sleep queues: waiting for an event that is named by an address (S14 in seed 003).
//!
//! Two that differ only in their lock: [`Hashed`] has one for each bucket, and
//! [`GlobalQueue`] one for all, as a scheduler lock that also guards the sleep
//! queue, which is what seed 003 found contended.

use crate::locals::ASLEEP;
use crate::turnstile::Turnstiles;
use machine::Machine;

/// Lets the calling task be blocked by `block`, and counts how long it is.
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

/// Nanoseconds that the calling task has slept so far, wrapping; only differences mean
/// something.
#[inline]
pub fn slept<M: Machine>() -> usize {
    M::with_locals(|locals| locals.words[ASLEEP].get())
}

/// Tasks that sleep until somebody wakes their key.
pub trait SleepQueue<M: Machine>: Send + Sync {
    /// The queue's name, as the command prints it.
    const NAME: &'static str;

    /// An empty queue.
    fn new() -> Self;

    /// Sleeps on `key` until woken, if `still` holds; whether it slept.
    ///
    /// `still` runs under the queue's spin lock: whoever makes it false and then calls
    /// [`SleepQueue::wake`] finds the sleeper, or `still` sees the change. It must
    /// be short and not use the queue. The time is counted, see [`slept`].
    fn sleep(&self, key: *const (), still: impl FnOnce() -> bool) -> bool;

    /// Wakes the `count` tasks that have slept longest on `key`; how many there were.
    /// O(tasks woken + keys that share the bucket).
    fn wake(&self, key: *const (), count: usize) -> usize;
}

/// Buckets by the key's address, each with its lock.
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
