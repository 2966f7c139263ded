//! Epochs on threads: scripts that fix the order of events, and stress.

pub mod actor;
mod stress;

use actor::actors;
use hosted::Hosted;
use machine::{Cpus, Topology};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use sync::epoch::{
    Deferred, Domain, Full, Options, Protocol, SectionId, Snapshot, Stall, Standard,
};

fn limited(machine: &Hosted, limit: usize) -> Domain<Hosted> {
    let options = Options {
        limit,
        ..Options::default()
    };
    Domain::with_options(machine.cpus(), options)
}

/// A value that counts its drop.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// Counts, and makes values that count their drops there.
fn counted() -> (Arc<AtomicUsize>, impl Fn() -> Box<Counted> + Send + Clone) {
    let drops = Arc::new(AtomicUsize::new(0));
    let counter = drops.clone();
    (drops, move || Box::new(Counted(counter.clone())))
}

fn panics(job: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(job)).expect_err("must panic");
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|s| s.to_string()))
        .expect("a message")
}

#[test]
fn sizes() {
    assert_eq!(size_of::<Deferred<Hosted>>(), 16);
    assert_eq!(size_of::<Option<SectionId>>(), 8);
}

#[test]
fn wait_returns_only_after_open_sections() {
    let machine = Hosted::new(3);
    let [reader, waiter, late] = actors(&machine);
    let domain = Arc::new(Domain::<Hosted>::new(machine.cpus()));
    reader.enter(&domain);
    let shared = domain.clone();
    waiter.start(move || shared.wait());
    assert!(!waiter.finished_within(30));
    late.enter(&domain);
    // The early section delays the wait; the late one may, depending on the epoch.
    assert!(!waiter.finished_within(30));
    late.exit(&domain);
    reader.exit(&domain);
    waiter.finish();
}

#[test]
fn wait_is_not_held_by_later_sections() {
    let machine = Hosted::new(3);
    let [reader, waiter, late] = actors(&machine);
    let domain = Arc::new(Domain::<Hosted>::new(machine.cpus()));
    reader.enter(&domain);
    let before = domain.snapshot();
    assert!(!domain.has_passed(&before)); // and the epoch advances
    late.enter(&domain);
    reader.exit(&domain);
    assert!(domain.has_passed(&before));
    let shared = domain.clone();
    waiter.start(move || shared.wait());
    assert!(!waiter.finished_within(30), "late was open at this one");
    late.exit(&domain);
    waiter.finish();
}

#[test]
fn nested_sections_are_one() {
    let machine = Hosted::new(1);
    let domain = Domain::<Hosted>::new(machine.cpus());
    machine.on_cpu(0, || {
        let outer = domain.enter();
        let id = outer.id();
        let inner = domain.enter();
        assert_eq!(inner.id(), id);
        drop(outer);
        assert!(!domain.has_left(id), "the inner one still holds it");
        drop(inner);
        assert!(domain.has_left(id));
        let next = domain.enter();
        assert_ne!(next.id(), id);
        assert!(domain.has_left(id) && !domain.has_left(next.id()));
    });
}

#[test]
fn section_ids_are_words() {
    let machine = Hosted::new(2);
    let domain = Domain::<Hosted>::new(machine.cpus());
    machine.on_cpu(1, || {
        let section = domain.enter();
        let bits = section.id().to_bits();
        assert_ne!(bits, 0);
        let id = SectionId::from_bits(bits).expect("an id");
        assert_eq!((id, id.cpu()), (section.id(), 1));
        assert_eq!(SectionId::from_bits(0), None);
        assert_eq!(SectionId::from_bits(2 << 10 | 1), None, "no open section");
        let foreign = SectionId::from_bits(1 << 10 | 7).expect("an id");
        assert!(domain.has_left(foreign), "the domain has no CPU 7");
    });
}

#[test]
fn snapshots_are_words_that_no_section_has() {
    let machine = Hosted::new(1);
    let domain = Domain::<Hosted>::new(machine.cpus());
    machine.on_cpu(0, || {
        for _ in 0..4 {
            let snapshot = domain.snapshot();
            let bits = snapshot.to_bits();
            assert_eq!(SectionId::from_bits(bits), None);
            assert_eq!(Snapshot::from_bits(bits), Some(snapshot));
            // Only a section that is open at the snapshot lets the epoch go on.
            let _section = domain.enter();
            assert!(!domain.has_passed(&domain.snapshot()));
        }
    });
}

#[test]
fn domains_are_independent() {
    let machine = Hosted::new(1);
    let (one, other) = (limited(&machine, 4), limited(&machine, 4));
    machine.on_cpu(0, || {
        let _section = one.enter();
        other.wait();
        other.barrier();
    });
}

#[test]
fn misuse_is_caught() {
    let machine = Hosted::new(1);
    let domain = Domain::<Hosted>::new(machine.cpus());
    machine.on_cpu(0, || {
        let section = domain.enter();
        assert!(panics(|| domain.wait()).contains("wait inside a section"));
        assert!(panics(|| domain.barrier()).contains("barrier inside a section"));
        drop(section);
        // SAFETY: it panics before it does anything.
        let message = panics(|| unsafe {
            let _ = domain.exit_raw(&Hosted::pin());
        });
        assert!(message.contains("in no section"));
        domain.wait();
    });
    assert!(panics(|| drop(domain.enter())).contains("no CPU"));
}

#[test]
fn barrier_inside_a_callback_is_caught() {
    struct Barrier(Arc<Domain<Hosted>>, Arc<Mutex<String>>);
    impl Drop for Barrier {
        fn drop(&mut self) {
            *self.1.lock().unwrap() = panics(|| self.0.barrier());
        }
    }
    let machine = Hosted::new(1);
    let domain = Arc::new(limited(&machine, 1));
    let message = Arc::new(Mutex::new(String::new()));
    machine.on_cpu(0, || {
        domain.defer_drop(Box::new(Barrier(domain.clone(), message.clone())));
        domain.barrier();
    });
    assert!(message.lock().unwrap().contains("inside a callback"));
}

/// Callbacks stamped with their caller's own epoch, as in ck_epoch 0.7.1.
enum OwnStamp {}
// SAFETY: none; it is a flaw, made only where it is to be found.
unsafe impl Protocol for OwnStamp {
    fn stamp(_global: u64, section: u64) -> u64 {
        section
    }
}

/// A reader one epoch ahead of the section that defers holds the object. Returns true if the object
/// is dropped while the reader still holds it.
fn dropped_under_reader_ahead<P: Protocol>() -> bool {
    let machine = Hosted::new(3);
    let [caller, reader, other] = actors(&machine);
    let options = Options::default();
    let domain = Arc::new(Domain::<Hosted, P>::with_protocol(machine.cpus(), options));
    let (drops, value) = counted();

    caller.enter(&domain); // at e
    let snapshot = domain.snapshot();
    assert!(!domain.has_passed(&snapshot)); // g = e + 1
    reader.enter(&domain); // at e + 1, and finds the object
    let (shared, make) = (domain.clone(), value);
    caller.run(move || shared.defer_drop(make())); // unlinked before
    caller.exit(&domain);
    for _ in 0..10 {
        let shared = domain.clone();
        caller.run(move || shared.settle());
        let shared = domain.clone();
        other.run(move || shared.has_passed(&shared.snapshot()));
    }
    let early = drops.load(Ordering::SeqCst) != 0;
    reader.exit(&domain);
    let shared = domain.clone();
    other.run(move || shared.barrier());
    assert_eq!(drops.load(Ordering::SeqCst), 1);
    early
}

#[test]
fn stamps_cover_readers_one_epoch_ahead() {
    assert!(!dropped_under_reader_ahead::<Standard>());
    assert!(
        dropped_under_reader_ahead::<OwnStamp>(),
        "the test tells them apart"
    );
}

#[test]
fn memory_is_bounded_under_a_stalled_reader() {
    const LIMIT: usize = 8;
    let machine = Hosted::new(2);
    let [writer, reader] = actors(&machine);
    let stalls = Arc::new(Mutex::new(Vec::new()));
    let seen = stalls.clone();
    let options = Options {
        limit: LIMIT,
        on_stall: Some(Box::new(move |stall| seen.lock().unwrap().push(stall))),
    };
    let domain = Arc::new(Domain::<Hosted>::with_options(machine.cpus(), options));
    let (drops, value) = counted();
    reader.enter(&domain);

    // At the limit `try_call` returns the object.
    let (shared, make) = (domain.clone(), value.clone());
    let accepted = writer.run(move || {
        (0..100)
            .filter(|_| shared.try_defer_drop(make()).is_ok())
            .count()
    });
    assert_eq!((accepted, domain.pending(0)), (LIMIT, LIMIT));
    assert_eq!(
        drops.load(Ordering::SeqCst),
        100 - LIMIT,
        "the refused ones"
    );

    // `call` waits, and tells the hook for which CPU.
    let (shared, make) = (domain.clone(), value.clone());
    writer.start(move || shared.defer_drop(make()));
    assert!(!writer.finished_within(30));
    assert_eq!(domain.pending(0), LIMIT);
    reader.exit(&domain);
    writer.finish();
    let stalls = stalls.lock().unwrap();
    assert!(!stalls.is_empty() && stalls.iter().all(|stall| stall.cpu == 1));
    assert_eq!(stalls[0], Stall { cpu: 1, round: 0 });
    assert!(domain.pending(0) <= LIMIT);
}

#[test]
fn a_section_pays_for_its_excess_when_it_ends() {
    const LIMIT: usize = 4;
    let machine = Hosted::new(2);
    let [writer, reader] = actors(&machine);
    let domain = Arc::new(limited(&machine, LIMIT));
    let (drops, value) = counted();
    reader.enter(&domain);
    let (shared, make) = (domain.clone(), value);
    let (inside, told) = channel();
    writer.start(move || {
        let section = shared.enter();
        for _ in 0..3 * LIMIT {
            shared.defer_drop(make());
        }
        inside.send(shared.pending(0)).unwrap();
        drop(section);
    });
    assert_eq!(told.recv().unwrap(), 3 * LIMIT, "calls inside do not wait");
    assert!(!writer.finished_within(30), "the exit does");
    assert_eq!(drops.load(Ordering::SeqCst), 0);
    reader.exit(&domain);
    writer.finish();
    assert!(domain.pending(0) <= LIMIT);
}

#[test]
fn raw_exit_says_that_callbacks_are_due() {
    let machine = Hosted::new(1);
    let domain = limited(&machine, 1);
    let (drops, value) = counted();
    machine.on_cpu(0, || {
        let pin = Hosted::pin();
        // SAFETY: one thread, entering and leaving in turn.
        unsafe {
            domain.enter_raw(&pin);
            assert!(!domain.exit_raw(&pin));
            domain.enter_raw(&pin);
            domain.defer_drop(value());
            domain.defer_drop(value());
            domain.enter_raw(&pin);
            assert!(!domain.exit_raw(&pin), "not the outermost");
            assert!(domain.exit_raw(&pin));
        }
        assert_eq!(drops.load(Ordering::SeqCst), 0);
        domain.settle();
        assert_eq!(drops.load(Ordering::SeqCst), 2);
    });
}

#[test]
fn callbacks_run_in_order_and_may_defer() {
    struct Chain {
        domain: Arc<Domain<Hosted>>,
        log: Arc<Mutex<Vec<u32>>>,
        name: u32,
    }
    impl Drop for Chain {
        fn drop(&mut self) {
            self.log.lock().unwrap().push(self.name);
            if self.name < 100 {
                let (domain, log) = (self.domain.clone(), self.log.clone());
                let name = self.name + 100;
                self.domain
                    .defer_drop(Box::new(Chain { domain, log, name }));
            }
        }
    }
    let machine = Hosted::new(1);
    let domain = Arc::new(limited(&machine, 1_000));
    let log = Arc::new(Mutex::new(Vec::new()));
    machine.on_cpu(0, || {
        for name in 0..5 {
            let (domain, log) = (domain.clone(), log.clone());
            domain
                .clone()
                .defer_drop(Box::new(Chain { domain, log, name }));
        }
        domain.barrier();
        assert_eq!(*log.lock().unwrap(), [0, 1, 2, 3, 4]);
        domain.barrier();
    });
    assert_eq!(
        *log.lock().unwrap(),
        [0, 1, 2, 3, 4, 100, 101, 102, 103, 104]
    );
}

#[test]
fn a_panicking_callback_loses_no_other() {
    struct Panics;
    impl Drop for Panics {
        fn drop(&mut self) {
            panic!("planted");
        }
    }
    let machine = Hosted::new(1);
    let domain = limited(&machine, 100);
    let (drops, value) = counted();
    machine.on_cpu(0, || {
        domain.defer_drop(value());
        domain.defer_drop(Box::new(Panics));
        domain.defer_drop(value());
        assert_eq!(panics(|| domain.settle()), "planted");
        assert_eq!(drops.load(Ordering::SeqCst), 1);
        domain.barrier();
        assert_eq!(drops.load(Ordering::SeqCst), 2);
        assert_eq!(domain.pending(0), 0);
    });
}

#[test]
fn barrier_drains_all_cpus() {
    let machine = Hosted::new(3);
    let [one, two, three] = actors(&machine);
    let domain = Arc::new(limited(&machine, 1_000));
    let (drops, value) = counted();
    for (actor, count) in [(&one, 5), (&two, 70)] {
        let (shared, make) = (domain.clone(), value.clone());
        actor.run(move || {
            let _section = shared.enter();
            (0..count).for_each(|_| shared.defer_drop(make()));
        });
    }
    assert!(drops.load(Ordering::SeqCst) < 75);
    let shared = domain.clone();
    three.run(move || shared.barrier());
    assert_eq!(drops.load(Ordering::SeqCst), 75);
}

#[test]
fn dropping_a_domain_runs_what_is_pending() {
    let machine = Hosted::new(2);
    let domain = limited(&machine, 100);
    let (drops, value) = counted();
    machine.on_cpu(1, || (0..10).for_each(|_| domain.defer_drop(value())));
    let before = drops.load(Ordering::SeqCst);
    drop(domain);
    assert_eq!((before, drops.load(Ordering::SeqCst)), (0, 10));
}

#[test]
fn full_is_an_error() {
    assert_eq!(
        Full.to_string(),
        "too many callbacks are pending on this CPU"
    );
}
