//! Readers and reclaimers on each CPU at once.

use super::limited;
use hosted::Hosted;
use machine::Topology;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::thread;
use sync::epoch::{Deferred, Domain};

/// An object of the stress tests: never freed, poisoned instead.
#[repr(C)]
struct Object {
    node: Deferred<Hosted>,
    state: AtomicU64,
}

const ALIVE: u64 = 0x600D;
const POISON: u64 = 0xDEAD;

impl Object {
    fn new() -> &'static Object {
        Box::leak(Box::new(Object {
            node: Deferred::new(),
            state: AtomicU64::new(ALIVE),
        }))
    }

    fn as_ptr(&'static self) -> *mut Object {
        std::ptr::from_ref(self).cast_mut()
    }

    unsafe fn poison(node: *mut Deferred<Hosted>) {
        // SAFETY: the node is an object's first field, and objects live forever.
        let object = unsafe { &*node.cast::<Object>() };
        assert_eq!(object.state.swap(POISON, Ordering::Relaxed), ALIVE);
    }
}

/// Readers read the object that a pointer names; `reclaim` replaces and reclaims it, on each CPU in
/// turn.
fn stress(domain: &Domain<Hosted>, machine: &Hosted, reclaim: impl Fn(&'static Object) + Sync) {
    const ROUNDS: usize = 3_000;
    let current = AtomicPtr::new(Object::new().as_ptr());
    let stop = AtomicBool::new(false);
    let replace = || {
        let old = current.swap(Object::new().as_ptr(), Ordering::AcqRel);
        // SAFETY: objects live forever.
        reclaim(unsafe { &*old });
    };
    thread::scope(|scope| {
        for cpu in 1..machine.cpus().len() {
            let (current, stop, replace) = (&current, &stop, &replace);
            scope.spawn(move || {
                machine.attach(cpu);
                let mut round = 0u32;
                while !stop.load(Ordering::Relaxed) {
                    {
                        let _section = domain.enter();
                        // SAFETY: objects live forever.
                        let object = unsafe { &*current.load(Ordering::Acquire) };
                        for _ in 0..8 {
                            assert_eq!(object.state.load(Ordering::Relaxed), ALIVE);
                        }
                        if round.is_multiple_of(512) {
                            thread::yield_now(); // a preempted reader
                            assert_eq!(object.state.load(Ordering::Relaxed), ALIVE);
                        }
                    }
                    round = round.wrapping_add(1);
                    if round.is_multiple_of(64) {
                        replace();
                    }
                }
            });
        }
        scope.spawn(|| {
            machine.attach(0);
            (0..ROUNDS).for_each(|_| replace());
            stop.store(true, Ordering::Relaxed);
        });
    });
}

#[test]
fn stress_wait() {
    let machine = Hosted::new(4);
    let domain = Domain::<Hosted>::new(machine.cpus());
    stress(&domain, &machine, |old| {
        domain.wait();
        // SAFETY: the object is `old`.
        unsafe { Object::poison(old.as_ptr().cast()) };
    });
}

#[test]
fn stress_call() {
    let machine = Hosted::new(4);
    let domain = limited(&machine, 100);
    stress(&domain, &machine, |old| {
        // SAFETY: `old` is unlinked, once.
        unsafe { domain.call(old.as_ptr().cast(), Object::poison) };
        assert!((0..4).all(|cpu| domain.pending(cpu) <= 100));
    });
    machine.on_cpu(0, || domain.barrier());
    assert!((0..4).all(|cpu| domain.pending(cpu) == 0));
}

#[test]
fn stress_call_in_section_with_barriers() {
    let machine = Hosted::new(3);
    let domain = limited(&machine, 10);
    let turns = AtomicUsize::new(0);
    stress(&domain, &machine, |old| {
        {
            let _section = domain.enter();
            // SAFETY: `old` is unlinked, once.
            unsafe { domain.call(old.as_ptr().cast(), Object::poison) };
        }
        if turns.fetch_add(1, Ordering::Relaxed).is_multiple_of(100) {
            domain.barrier();
            assert_eq!(old.state.load(Ordering::Relaxed), POISON);
        }
    });
}
