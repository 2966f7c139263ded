//! The checked machine with one weak spot.

use checked::Checked;
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

pub struct Weak<const FLAW: Flaw>(Checked);

impl<const FLAW: Flaw> Weak<FLAW> {
    pub fn new(sound: Checked) -> Self {
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
    type AtomicU8 = <Checked as Atomics>::AtomicU8;
    type AtomicU16 = <Checked as Atomics>::AtomicU16;
    type AtomicU32 = WeakAtomic<<Checked as Atomics>::AtomicU32, FLAW>;
    type AtomicU64 = WeakAtomic<<Checked as Atomics>::AtomicU64, FLAW>;
    type AtomicUsize = <Checked as Atomics>::AtomicUsize;
    type AtomicPtr = <Checked as Atomics>::AtomicPtr;
    type AtomicPair = <Checked as Atomics>::AtomicPair;
    type Cell<T: Send> = <Checked as Atomics>::Cell<T>;

    fn fence(order: Ordering) {
        Checked::fence(order);
    }
}

// SAFETY: every method forwards to the checked machine, which keeps the contract.
unsafe impl<const FLAW: Flaw> Cpus for Weak<FLAW> {
    type Pin = <Checked as Cpus>::Pin;

    fn pin() -> Self::Pin {
        Checked::pin()
    }
    fn pins() -> u32 {
        Checked::pins()
    }
    fn relax(round: u32) {
        Checked::relax(round);
    }
    fn delay(pauses: u32) {
        Checked::delay(pauses);
    }
}

impl<const FLAW: Flaw> Tasks for Weak<FLAW> {
    type Task = <Checked as Tasks>::Task;

    fn current_task() -> Self::Task {
        Checked::current_task()
    }
    fn park() {
        Checked::park();
    }
    fn unpark(task: Self::Task) {
        if FLAW != LOSES_WAKE_UPS {
            Checked::unpark(task);
        }
    }
    fn yield_now() {
        Checked::yield_now();
    }
    fn with_locals<R>(f: impl FnOnce(&Locals) -> R) -> R {
        Checked::with_locals(f)
    }
    fn anchor() -> &'static Anchor {
        Checked::anchor()
    }
}

impl<const FLAW: Flaw> Clock for Weak<FLAW> {
    fn now() -> u64 {
        Checked::now()
    }

    fn sleep_until(time: u64) {
        Checked::sleep_until(time);
    }
}

impl<const FLAW: Flaw> Execute for Weak<FLAW> {
    fn execute(&self, jobs: Vec<Job>) {
        self.0.execute(jobs);
    }
}
