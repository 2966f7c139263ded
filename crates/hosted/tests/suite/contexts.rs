//! CPUs that switch between the tasks of a scheduler, the smallest there is.

use hosted::Hosted;
use machine::conformance::{self, Smallest, alike};
use machine::{Clock, Cpus, Execute, Pinned, Tasks, Topology};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

fn machine(cpus: usize) -> Hosted {
    let machine = Hosted::new(cpus);
    machine
        .schedule(Smallest::<Hosted>::new)
        .expect("addresses for stacks");
    machine
}

/// Computes for `time` nanoseconds by the clock.
fn spin(time: u64) {
    let end = Hosted::now() + time;
    while Hosted::now() < end {
        Hosted::relax(0);
    }
}

/// Computes for `time`, with safe points.
fn compute(time: u64) {
    let end = Hosted::now() + time;
    while Hosted::now() < end {
        Hosted::safe_point();
    }
}

#[test]
fn contexts() {
    for cpus in [1, 2, 4] {
        let machine = machine(cpus);
        let run = |jobs| machine.execute(jobs);
        conformance::outnumber::<Hosted>(&run);
        conformance::pins::<Hosted>(&run, compute, spin);
        conformance::wake_ups::<Hosted>(&run);
    }
}

/// Where pins are counted, a safe point below one is none.
#[test]
#[cfg(debug_assertions)]
fn safe_points_below_a_pin_switch_nothing() {
    let machine = machine(2);
    let run = |jobs| machine.execute(jobs);
    conformance::pins::<Hosted>(&run, compute, compute);
}

/// A task finds its own words and its present CPU wherever it goes on, also where the compiler sees
/// the look before the switch and the one behind it at once.
#[test]
fn a_task_takes_its_words_from_thread_to_thread() {
    let machine = machine(4);
    let cpus = machine.cpus();
    let moves = Arc::new(AtomicUsize::new(0));
    let seen = moves.clone();
    alike(&machine, 12, move |me| {
        Hosted::with_locals(|locals| locals.words[7].set(me + 1));
        let mut thread = std::thread::current().id();
        // The host decides when the other threads run.
        let late = Hosted::now() + 5_000_000_000;
        let goes_on = |round| round < 300 || seen.load(Relaxed) == 0 && Hosted::now() < late;
        for _ in (0..).take_while(|&round| goes_on(round)) {
            let before = Hosted::pin().cpu();
            Hosted::yield_now();
            let after = Hosted::pin().cpu();
            let now = std::thread::current().id();
            assert_eq!(before == after, thread == now, "a CPU is a thread");
            assert!(cpus.index_of(after) < cpus.len());
            Hosted::with_locals(|locals| assert_eq!(locals.words[7].get(), me + 1));
            assert_eq!(Hosted::pins(), 0);
            seen.fetch_add(usize::from(thread != now), Relaxed);
            thread = now;
        }
    });
    assert!(moves.load(Relaxed) > 0, "no task ever moved");
}

#[test]
fn words_that_stand_on_a_stack_tell_who_runs() {
    let machine = machine(1);
    let place = Arc::new(AtomicUsize::new(0));
    alike(&machine, 2, move |_| {
        let mine = Hosted::with_locals(|locals| std::ptr::from_ref(locals).addr());
        assert_eq!(Hosted::is_running(mine), Some(true));
        let other = place.swap(mine, Relaxed);
        if other != 0 {
            assert_eq!(Hosted::is_running(other), Some(false));
        }
        let outside = 0_u64;
        let outside = Box::new(outside);
        assert_eq!(
            Hosted::is_running(std::ptr::from_ref(&*outside).addr()),
            None
        );
        // The other one is still there when it is asked for.
        (0..4).for_each(|_| Hosted::yield_now());
    });
}

#[test]
fn a_panic_of_a_task_is_passed_on_and_the_machine_goes_on() {
    let machine = machine(2);
    let ended = Arc::new(AtomicUsize::new(0));
    let count = ended.clone();
    let found = catch_unwind(AssertUnwindSafe(|| {
        alike(&machine, 6, move |me| {
            Hosted::yield_now();
            assert!(me != 3, "task 3 fails");
            count.fetch_add(1, Relaxed);
        });
    }));
    let panic = found.expect_err("task 3 has failed");
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"task 3 fails"));
    assert_eq!(ended.load(Relaxed), 5, "the others come to their ends");
    alike(&machine, 6, |_| Hosted::yield_now());
}

/// Time off a CPU is told apart: blocked, and ready while another task ran.
#[test]
fn time_off_cpus_has_two_kinds() {
    const MILLI: u64 = 1_000_000;
    let machine = machine(1);
    alike(&machine, 2, |_| {
        compute(5 * MILLI);
        Hosted::sleep_until(Hosted::now() + 20 * MILLI);
        // The last return counts, too.
        assert!(hosted::off_cpu() > Some(20 * MILLI));
    });
    let off = machine.off();
    assert!(off.blocked >= 30 * MILLI, "{off:?}");
    assert!(off.queued >= 3 * MILLI, "{off:?}");
    assert_eq!(hosted::off_cpu(), None, "not a task");
}

/// A task that stands by waits for another's work.
#[test]
fn a_task_that_stands_by_is_not_blocked() {
    const MILLI: u64 = 1_000_000;
    let machine = machine(1);
    let off = Arc::new(AtomicU64::new(0));
    let all = off.clone();
    alike(&machine, 1, move |_| {
        hosted::stand_by(|| Hosted::sleep_until(Hosted::now() + 20 * MILLI));
        Hosted::sleep_until(Hosted::now() + 5 * MILLI);
        all.store(hosted::off_cpu().expect("a task"), Relaxed);
    });
    let (off, blocked) = (off.load(Relaxed), machine.off().blocked);
    assert!(blocked >= 4 * MILLI, "{blocked} ns");
    assert!(blocked + 19 * MILLI <= off, "{blocked} of {off} ns");
}

/// A thread that attaches itself is a CPU with one task, whose waits are the host's.
#[test]
fn threads_may_be_cpus_between_runs() {
    drop(machine(3));
    let machine = machine(2);
    for _ in 0..3 {
        alike(&machine, 5, |_| Hosted::yield_now());
        machine.on_cpu(1, || {
            let me = Hosted::current_task();
            Hosted::unpark(me);
            Hosted::park();
            Hosted::safe_point();
            assert_eq!(Hosted::is_running(0), None);
        });
    }
}
