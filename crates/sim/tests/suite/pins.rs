//! No task sleeps while it is pinned: simulated CPUs and the lock-order checker catch one that
//! does, and the VM never does, however its tasks meet.

use crate::support;

use machine::{Clock, Cpus, Job, PAGE_SIZE, Tasks, VaRange};
use sim::{Options, Progress, Sim};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use support::profile;
use sync::obm::{Obm, slow_paths};
use sync::watch::{Order, Watched};
use sync::{RawLock, lock_class};
use vm::system::ObjectPages;
use vm::{Best, Prot, Request, Space, Vm};

lock_class!(Sleeping = "sleeping");

fn machine(cpus: &str, memory: usize) -> Sim {
    let options = Options {
        memory,
        spread: 500,
        ..Options::new(profile(cpus))
    };
    Sim::new(options).expect("address space")
}

/// The message for a pinned task that sleeps.
fn pinned(act: fn()) -> String {
    let sim = machine("pc-16c32t", 0);
    let run = || {
        sim.on_cpu(0, move || {
            let _pin = Sim::pin();
            act();
        });
    };
    let panic = catch_unwind(AssertUnwindSafe(run)).expect_err("a pinned task slept");
    match panic.downcast_ref::<&str>() {
        Some(text) => text.to_string(),
        None => panic.downcast_ref::<String>().expect("a message").clone(),
    }
}

#[test]
fn a_task_that_sleeps_pinned_is_found() {
    let expected = "a task sleeps while it is pinned";
    assert_eq!(pinned(Sim::park), expected);
    assert_eq!(pinned(Sim::yield_now), expected);
    assert_eq!(pinned(|| Sim::sleep_until(u64::MAX / 4000)), expected);
}

/// Even where the lock is free: it may be taken the next time.
#[test]
fn a_lock_that_may_sleep_is_not_waited_for_by_a_pinned_task() {
    let text = pinned(|| {
        let lock = Watched::<Sim, Obm<Sim>, Sleeping, Order>::new();
        lock.lock();
    });
    assert!(
        text.starts_with(
            "a pinned task may sleep: \"sleeping\" is waited for at crates/sim/tests/suite/pins.rs"
        ),
        "{text}"
    );
}

#[test]
fn a_pinned_task_may_try() {
    machine("pc-16c32t", 0).on_cpu(0, || {
        let lock = Watched::<Sim, Obm<Sim>, Sleeping, Order>::new();
        let _pin = Sim::pin();
        let held = lock.try_lock().expect("free");
        // SAFETY: locked above, by this call.
        unsafe { lock.unlock(held) };
    });
}

/// Processes that map and unmap the same pages, and list their mappings, contend for these pages'
/// locks, and some sleep there.
#[test]
fn an_unmap_that_meets_others_sleeps_unpinned() {
    const CPUS: usize = 16;
    const PAGES: usize = 64;
    const ROUNDS: usize = 20;
    let sim = machine("pc-16c32t", 64 << 20);
    let made = sim.clone();
    let (vm, object) = sim.on_cpu(0, move || {
        let options = vm::Options {
            object_pages: ObjectPages::Listed,
            ..vm::Options::default()
        };
        let vm: Arc<Vm<Best<Sim>>> = Vm::with_options(made, options).expect("room");
        let object = vm.shared_memory((PAGES * PAGE_SIZE) as u64);
        (vm, object.expect("an object"))
    });
    let before = sim.on_cpu(0, slow_paths::<Sim>);
    let job = |_| {
        let (vm, object) = (vm.clone(), object.clone());
        Box::new(move || {
            let space = Space::new(&vm).expect("a space");
            space.activate();
            let bytes = PAGES * PAGE_SIZE;
            for _ in 0..ROUNDS {
                let request = Request::object(&object, 0, bytes, Prot::READ).expect("a request");
                let start = space.map_as(&request.shared()).expect("room");
                for page in 0..PAGES {
                    assert_eq!(space.load(start + page * PAGE_SIZE), Ok(0));
                }
                let range = VaRange::sized(start, bytes);
                space.unmap(range).expect("mapped");
            }
        }) as Job
    };
    sim.start_on((0..CPUS).map(|cpu| (cpu, job(cpu))).collect());
    assert_eq!(sim.run(u64::MAX / 4000), Progress::Finished);
    let after = sim.on_cpu(0, slow_paths::<Sim>);
    assert!(
        after.slow_unlock > before.slow_unlock,
        "no task slept: {after:?}"
    );
    sim.on_cpu(0, move || drop((vm, object)));
}
