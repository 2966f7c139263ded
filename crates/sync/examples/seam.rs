//! One algorithm through the machine contract and straight on `core::sync::atomic`,
//! for counting instructions: `seam CASE ITERATIONS`. Hazard pointers have cases too,
//! which are compared with the epochs.
//!
//! `tests/seam.rs` runs each pair under callgrind and asks for equal counts.

use hosted::Hosted;
use machine::Topology;
use std::hint::black_box;
use sync::epoch::Domain;
use sync::hazard;
use sync::spin::{Mcs, McsNode};

fn main() {
    let mut args = std::env::args().skip(1);
    let case = args.next().unwrap_or_default();
    let iterations: u64 = args.next().and_then(|n| n.parse().ok()).unwrap_or(1);
    let machine = Hosted::new(2);
    machine.attach(0);
    match case.as_str() {
        "mcs-machine" => mcs_machine(iterations),
        "mcs-core" => mcs_core(iterations),
        "epoch-machine" => epoch_machine(&machine, iterations),
        "epoch-core" => epoch_core(iterations),
        "hazard-enter" => hazard_enter(&machine, iterations),
        "hazard-protect" => hazard_protect(&machine, iterations),
        other => {
            eprintln!("seam: unknown case '{other}'");
            std::process::exit(2);
        }
    }
}

#[inline(never)]
fn mcs_machine(iterations: u64) {
    let lock = black_box(Mcs::<Hosted>::new());
    let node = McsNode::default();
    for _ in 0..iterations {
        // SAFETY: the node outlives the loop and is in one queue at a time.
        unsafe {
            lock.lock_with(&node);
            lock.unlock_with(&node);
        }
    }
}

#[inline(never)]
fn mcs_core(iterations: u64) {
    let lock = black_box(plain::Mcs::default());
    let node = plain::Node::default();
    for _ in 0..iterations {
        lock.lock(&node);
        lock.unlock(&node);
    }
}

#[inline(never)]
fn epoch_machine(machine: &Hosted, iterations: u64) {
    let domain = black_box(Domain::<Hosted>::new(machine.cpus()));
    for _ in 0..iterations {
        let _section = domain.enter();
    }
}

#[inline(never)]
fn epoch_core(iterations: u64) {
    let domain = black_box(plain::Domain::new(2));
    plain::CPU.set(black_box(plain::BASE));
    for _ in 0..iterations {
        let section = domain.enter();
        section.exit();
    }
}

#[inline(never)]
fn hazard_enter(machine: &Hosted, iterations: u64) {
    let domain = black_box(hazard::Domain::<Hosted>::new(machine.cpus()));
    for _ in 0..iterations {
        black_box(&domain.enter());
    }
}

#[inline(never)]
fn hazard_protect(machine: &Hosted, iterations: u64) {
    let domain = black_box(hazard::Domain::<Hosted>::new(machine.cpus()));
    let shared = black_box(hazard::Shared::new(&domain, Some(1u64)));
    for _ in 0..iterations {
        black_box(section_with(&domain, &shared));
    }
}

#[inline(always)]
fn section_with(domain: &hazard::Domain<Hosted>, shared: &hazard::Shared<Hosted, u64>) -> u64 {
    let section = domain.enter();
    let object = section.protect(shared);
    object.map_or(0, |object| *object)
}

/// The machine's algorithms, written by hand.
mod plain {
    use std::cell::{Cell, UnsafeCell};
    use std::hint::spin_loop;
    use std::ptr::null_mut;
    use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

    /// Waits as hosted CPUs do: pauses, then yields the time slice.
    #[inline]
    fn spin_until(mut condition: impl FnMut() -> bool) {
        let mut round = 0u32;
        while !condition() {
            if round < 64 {
                spin_loop();
            } else {
                std::thread::yield_now();
            }
            round = round.saturating_add(1);
        }
    }

    #[derive(Default)]
    pub struct Mcs {
        tail: AtomicPtr<Node>,
    }

    #[derive(Default)]
    pub struct Node {
        next: AtomicPtr<Node>,
        waiting: AtomicU32,
    }

    impl Mcs {
        #[inline]
        pub fn lock(&self, node: &Node) {
            node.next.store(null_mut(), Ordering::Relaxed);
            node.waiting.store(1, Ordering::Relaxed);
            let this = std::ptr::from_ref(node).cast_mut();
            let predecessor = self.tail.swap(this, Ordering::AcqRel);
            if !predecessor.is_null() {
                // SAFETY: a predecessor waits in `unlock` until it has seen `next`.
                unsafe { (*predecessor).next.store(this, Ordering::Release) };
                spin_until(|| node.waiting.load(Ordering::Acquire) == 0);
            }
        }

        #[inline]
        pub fn unlock(&self, node: &Node) {
            let this = std::ptr::from_ref(node).cast_mut();
            let mut next = node.next.load(Ordering::Acquire);
            if next.is_null() {
                if self
                    .tail
                    .compare_exchange(this, null_mut(), Ordering::Release, Ordering::Relaxed)
                    .is_ok()
                {
                    return;
                }
                spin_until(|| {
                    next = node.next.load(Ordering::Acquire);
                    !next.is_null()
                });
            }
            // SAFETY: the successor's node stays in place until `waiting` is cleared.
            unsafe { (*next).waiting.store(0, Ordering::Release) };
        }
    }

    /// Where this machine's CPU ids begin.
    pub const BASE: u64 = 1 << 16;

    thread_local! {
        pub static CPU: Cell<u64> = const { Cell::new(u64::MAX) };
    }

    #[repr(align(128))]
    struct Epoch(AtomicU64);

    pub struct Domain {
        epoch: Epoch,
        base: u64,
        records: Box<[Record]>,
    }

    #[repr(align(128))]
    pub struct Record {
        section: AtomicU64,
        epoch: AtomicU64,
        nesting: UnsafeCell<u32>,
    }

    impl Domain {
        pub fn new(cpus: usize) -> Self {
            let record = || Record {
                section: AtomicU64::new(0),
                epoch: AtomicU64::new(0),
                nesting: UnsafeCell::new(0),
            };
            Domain {
                epoch: Epoch(AtomicU64::new(1)),
                base: BASE,
                records: (0..cpus).map(|_| record()).collect(),
            }
        }

        #[inline]
        fn record(&self) -> &Record {
            match self.records.get(CPU.get().wrapping_sub(self.base) as usize) {
                Some(record) => record,
                None => panic!("no CPU"),
            }
        }

        #[inline]
        pub fn enter(&self) -> &Record {
            let record = self.record();
            let section = record.section.load(Ordering::Relaxed);
            if section & 1 == 0 {
                let epoch = self.epoch.0.load(Ordering::Relaxed);
                record.section.store(section + 1, Ordering::Release);
                record.epoch.store(epoch, Ordering::Release);
                machine::full_fence();
            } else {
                // SAFETY: one thread is the CPU.
                unsafe { *record.nesting.get() += 1 };
            }
            record
        }
    }

    impl Record {
        #[inline]
        pub fn exit(&self) {
            let nesting = self.nesting.get();
            // SAFETY: one thread is the CPU.
            let inner = unsafe { *nesting };
            if inner != 0 {
                // SAFETY: only this CPU uses its record's word.
                unsafe { *nesting = inner - 1 };
                return;
            }
            let section = self.section.load(Ordering::Relaxed);
            self.section.store(section + 1, Ordering::Release);
        }
    }
}
