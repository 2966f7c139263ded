//! A blocking mutex with a window between its last check and its sleep.

use machine::{Atomic, Atomics, Ordering, Tasks};
use sim::{Sim, Task};
use sync::spin::TestAndSet;
use sync::{Mutex, RawLock};

/// A mutex whose waiter checks, enters the queue and parks: an unlock between the check and the
/// queue finds no task to wake.
pub struct NoSecondLook {
    locked: <Sim as Atomics>::AtomicU8,
    queue: Mutex<Sim, TestAndSet<Sim>, Vec<Task>>,
}

// SAFETY: only one task exchanges the flag from 0. That it may not wake the others only affects
// progress.
unsafe impl RawLock<Sim> for NoSecondLook {
    type Held = ();
    const NAME: &'static str = "lost-wake-up";

    fn new() -> Self {
        NoSecondLook {
            locked: Atomic::new(0),
            queue: Mutex::new(Vec::new()),
        }
    }

    fn lock(&self) {
        while self.try_lock().is_none() {
            self.queue.lock().push(Sim::current_task());
            Sim::park();
        }
    }

    fn try_lock(&self) -> Option<()> {
        (self.locked.swap(1, Ordering::Acquire) == 0).then_some(())
    }

    unsafe fn unlock(&self, (): ()) {
        self.locked.store(0, Ordering::Release);
        let first = self.queue.lock().pop();
        if let Some(task) = first {
            Sim::unpark(task);
        }
    }

    fn is_locked(&self) -> bool {
        self.locked.load(Ordering::Relaxed) != 0
    }
}
