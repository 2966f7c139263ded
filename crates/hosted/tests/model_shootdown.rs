//! The shootdown protocol under loom: the very code of the hosted machine, on
//! checked atomics, and two mutants of it that loom catches.

use checked::Checked;
use checked::loom::model::Builder;
use hosted::shootdown::{Gate, Order};
use machine::{Asid, Atomic, AtomicInt, Atomics, Cpus, Execute, Flush, Job, Ordering, SharedCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// A page, the entry that maps it, and the CPU that has both in its TLB.
struct Shared<M: Atomics> {
    gate: Gate<M>,
    /// 1 while the page is mapped.
    entry: M::AtomicU64,
    /// Plain memory: an access that races with its reuse ends the model.
    page: M::Cell<u64>,
}

/// One access: through the TLB's entry, or the tables if it has none.
fn access<M: Atomics>(shared: &Shared<M>, cached: &mut bool) {
    let _access = shared.gate.begin();
    shared.gate.serve(|order| {
        let request = Order::Flush(Asid(1), Flush::All);
        assert_eq!(order, request, "an order that was not given");
        *cached = false;
    });
    if *cached || shared.entry.load(Ordering::Acquire) == 1 {
        // SAFETY: the model checks this access; loom reports a race.
        unsafe { *shared.page.write() += 1 };
    }
}

/// Unmaps the page, and then has it exclusively.
fn take<M: Atomics + Cpus>(shared: &Shared<M>, fenced: bool) {
    shared.entry.swap(0, Ordering::AcqRel);
    shared.gate.post(Asid(1), Flush::All);
    if fenced {
        M::fence(Ordering::SeqCst);
    }
    shared.gate.settle(|| ());
    // SAFETY: the model checks this access; loom reports a race.
    unsafe { *shared.page.write() = 0 };
}

/// Whether loom finds no error.
fn holds<M: Atomics + Cpus + 'static>(fenced: bool) -> bool {
    let model = move || {
        let shared = Arc::new(Shared::<M> {
            gate: Gate::new(),
            entry: M::AtomicU64::new(1),
            page: M::Cell::new(0),
        });
        let target = shared.clone();
        let jobs: Vec<Job> = vec![
            Box::new(move || take(&shared, fenced)),
            Box::new(move || {
                let mut cached = true;
                access(&target, &mut cached);
                access(&target, &mut cached);
            }),
        ];
        Checked::new(2).execute(jobs);
    };
    let mut builder = Builder::new();
    builder.preemption_bound = Some(3);
    catch_unwind(AssertUnwindSafe(move || builder.check(model))).is_ok()
}

#[test]
fn no_access_outlives_a_shootdown() {
    assert!(holds::<Checked>(true));
}

#[test]
fn an_initiator_without_fence_is_caught() {
    assert!(!holds::<Checked>(false));
}

#[test]
fn an_access_without_fence_is_caught() {
    assert!(!holds::<Unfenced>(true));
}

/// The checked machine, with a `publish` that does not fence.
struct Unfenced;

struct Word(<Checked as Atomics>::AtomicU64);

impl Atomic<u64> for Word {
    fn new(value: u64) -> Self {
        Word(Atomic::new(value))
    }
    fn load(&self, order: Ordering) -> u64 {
        self.0.load(order)
    }
    fn store(&self, value: u64, order: Ordering) {
        self.0.store(value, order);
    }
    fn swap(&self, value: u64, order: Ordering) -> u64 {
        self.0.swap(value, order)
    }
    fn compare_exchange(&self, a: u64, b: u64, yes: Ordering, no: Ordering) -> Result<u64, u64> {
        self.0.compare_exchange(a, b, yes, no)
    }
    fn compare_exchange_weak(
        &self,
        a: u64,
        b: u64,
        yes: Ordering,
        no: Ordering,
    ) -> Result<u64, u64> {
        self.0.compare_exchange_weak(a, b, yes, no)
    }
    fn publish(&self, value: u64) {
        self.0.store(value, Ordering::Release);
    }
}

impl AtomicInt<u64> for Word {
    fn fetch_add(&self, value: u64, order: Ordering) -> u64 {
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

impl Atomics for Unfenced {
    type AtomicU8 = <Checked as Atomics>::AtomicU8;
    type AtomicU16 = <Checked as Atomics>::AtomicU16;
    type AtomicU32 = <Checked as Atomics>::AtomicU32;
    type AtomicU64 = Word;
    type AtomicUsize = <Checked as Atomics>::AtomicUsize;
    type AtomicPtr = <Checked as Atomics>::AtomicPtr;
    type AtomicPair = <Checked as Atomics>::AtomicPair;
    type Cell<T: Send> = <Checked as Atomics>::Cell<T>;

    fn fence(order: Ordering) {
        Checked::fence(order);
    }
}

// SAFETY: every method forwards to the checked machine, which keeps the contract.
unsafe impl Cpus for Unfenced {
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
