//! The checked machine with one weak spot.

use loomed::Loomed;
use machine::{
    Anchor, Atomic, AtomicInt, Atomics, Clock, Cpus, Execute, Job, Locals, Ordering, Tasks,
};

/// The weak spot.
pub type Flaw = u8;
pub const NONE: Flaw = 0;
pub const PUBLISHES_WITHOUT_FENCE: Flaw = 1;
pub const RELEASES_NOTHING: Flaw = 2;
pub const ADDS_IN_TWO_STEPS: Flaw = 3;
pub const LOSES_WAKE_UPS: Flaw = 4;
pub const PINGS_NOBODY: Flaw = 5;

pub struct Weak<const FLAW: Flaw>(Loomed);

impl<const FLAW: Flaw> Weak<FLAW> {
    pub fn new(sound: Loomed) -> Self {
        Weak(sound)
    }
}

/// An atomic with the flaw.
pub struct WeakAtomic<A, const FLAW: Flaw>(A);

impl<T: Copy, A: Atomic<T>, const FLAW: Flaw> Atomic<T> for WeakAtomic<A, FLAW> {
    fn new(value: T) -> Self {
        WeakAtomic(A::new(value))
    }
    fn load(&self, order: Ordering) -> T {
        self.0.load(order)
    }
    fn store(&self, value: T, order: Ordering) {
        let weak = FLAW == RELEASES_NOTHING;
        self.0
            .store(value, if weak { Ordering::Relaxed } else { order });
    }
    fn swap(&self, value: T, order: Ordering) -> T {
        self.0.swap(value, order)
    }
    fn compare_exchange(&self, a: T, b: T, yes: Ordering, no: Ordering) -> Result<T, T> {
        self.0.compare_exchange(a, b, yes, no)
    }
    fn compare_exchange_weak(&self, a: T, b: T, yes: Ordering, no: Ordering) -> Result<T, T> {
        self.0.compare_exchange_weak(a, b, yes, no)
    }
    fn publish(&self, value: T) {
        if FLAW == PUBLISHES_WITHOUT_FENCE {
            self.0.store(value, Ordering::Release);
        } else {
            self.0.publish(value);
        }
    }
}

impl<A: AtomicInt<u64>, const FLAW: Flaw> AtomicInt<u64> for WeakAtomic<A, FLAW> {
    fn fetch_add(&self, value: u64, order: Ordering) -> u64 {
        if FLAW == ADDS_IN_TWO_STEPS {
            let old = self.0.load(Ordering::Acquire);
            self.0.store(old.wrapping_add(value), Ordering::Release);
            return old;
        }
        self.0.fetch_add(value, order)
    }
    fn fetch_sub(&self, value: u64, order: Ordering) -> u64 {
        self.0.fetch_sub(value, order)
    }
    fn fetch_and(&self, value: u64, order: Ordering) -> u64 {
        self.0.fetch_and(value, order)
    }
    fn fetch_or(&self, value: u64, order: Ordering) -> u64 {
        self.0.fetch_or(value, order)
    }
}

impl<A: AtomicInt<u32>, const FLAW: Flaw> AtomicInt<u32> for WeakAtomic<A, FLAW> {
    fn fetch_add(&self, value: u32, order: Ordering) -> u32 {
        self.0.fetch_add(value, order)
    }
    fn fetch_sub(&self, value: u32, order: Ordering) -> u32 {
        self.0.fetch_sub(value, order)
    }
    fn fetch_and(&self, value: u32, order: Ordering) -> u32 {
        self.0.fetch_and(value, order)
    }
    fn fetch_or(&self, value: u32, order: Ordering) -> u32 {
        self.0.fetch_or(value, order)
    }
}

impl<const FLAW: Flaw> Atomics for Weak<FLAW> {
    type AtomicU8 = <Loomed as Atomics>::AtomicU8;
    type AtomicU16 = <Loomed as Atomics>::AtomicU16;
    type AtomicU32 = WeakAtomic<<Loomed as Atomics>::AtomicU32, FLAW>;
    type AtomicU64 = WeakAtomic<<Loomed as Atomics>::AtomicU64, FLAW>;
    type AtomicUsize = <Loomed as Atomics>::AtomicUsize;
    type AtomicPtr = <Loomed as Atomics>::AtomicPtr;
    type AtomicPair = <Loomed as Atomics>::AtomicPair;
    type Cell<T: Send> = <Loomed as Atomics>::Cell<T>;

    fn fence(order: Ordering) {
        Loomed::fence(order);
    }

    fn light_fence() {
        if FLAW != PINGS_NOBODY {
            Loomed::light_fence();
        }
    }
}

// SAFETY: every method forwards to the checked machine, which keeps the contract.
unsafe impl<const FLAW: Flaw> Cpus for Weak<FLAW> {
    type Pin = <Loomed as Cpus>::Pin;

    fn pin() -> Self::Pin {
        Loomed::pin()
    }
    fn pins() -> u32 {
        Loomed::pins()
    }
    fn relax(round: u32) {
        Loomed::relax(round);
    }
    fn delay(pauses: u32) {
        Loomed::delay(pauses);
    }
}

impl<const FLAW: Flaw> Tasks for Weak<FLAW> {
    type Task = <Loomed as Tasks>::Task;

    fn current_task() -> Self::Task {
        Loomed::current_task()
    }
    fn park() {
        Loomed::park();
    }
    fn unpark(task: Self::Task) {
        if FLAW != LOSES_WAKE_UPS {
            Loomed::unpark(task);
        }
    }
    fn yield_now() {
        Loomed::yield_now();
    }
    fn with_locals<R>(f: impl FnOnce(&Locals) -> R) -> R {
        Loomed::with_locals(f)
    }
    fn anchor() -> &'static Anchor {
        Loomed::anchor()
    }
}

impl<const FLAW: Flaw> Clock for Weak<FLAW> {
    fn now() -> u64 {
        Loomed::now()
    }

    fn sleep_until(time: u64) {
        Loomed::sleep_until(time);
    }
}

impl<const FLAW: Flaw> Execute for Weak<FLAW> {
    fn execute(&self, jobs: Vec<Job>) {
        self.0.execute(jobs);
    }
}
