//! The lock-order checker reports orders that can deadlock, with the call sites of
//! both directions, and no others.

#[allow(dead_code)]
mod watched;

use hosted::Hosted;
use machine::{Execute, Job};
use std::sync::{Arc, Barrier, Mutex};
use sync::watch::order::{self, Violation};
use sync::watch::{
    Acquired, Attempt, Both, ClassState, LockClass, LockProfile, Observer, Order, Watched,
};
use sync::{RawLock, lock_class};
use watched::{Rw, Tas};

/// A report: its kind, the classes that it names, its text.
#[derive(Debug)]
struct Report {
    kind: &'static str,
    classes: Vec<&'static str>,
    text: String,
}

static REPORTS: Mutex<Vec<Report>> = Mutex::new(Vec::new());

/// Records reports. A task that is about to wait for itself panics, since it must not go on.
fn keep(violation: &Violation<'_>) {
    let names = |edge: &order::Edge| [edge.from, edge.to].map(|c| c.map_or("", |c| c.name()));
    let (kind, classes) = match violation {
        Violation::Cycle { now, before } => {
            let mut classes = names(now).to_vec();
            before.edges().for_each(|edge| classes.extend(names(&edge)));
            ("cycle", classes)
        }
        Violation::Rank { now } => ("rank", names(now).to_vec()),
        Violation::Recursion { now } => ("recursion", names(now).to_vec()),
        Violation::Nested { now } => ("nested", names(now).to_vec()),
        Violation::Descending { now } => ("descending", names(now).to_vec()),
        Violation::NotHeld { class, .. } => ("not held", vec![class.name()]),
        Violation::Pinned { class, .. } => ("pinned", vec![class.name()]),
        Violation::Preempted { class, .. } => ("preempted", vec![class.name()]),
        Violation::TooDeep { class, .. } => ("too deep", vec![class.name()]),
    };
    let text = violation.to_string();
    let report = Report {
        kind,
        classes,
        text,
    };
    REPORTS.lock().unwrap().push(report);
    if kind == "recursion" {
        panic!("{violation}");
    }
}

/// The reports about class `C`.
fn reports<C: LockClass>() -> Vec<Report> {
    let mut all = REPORTS.lock().unwrap();
    all.extract_if(.., |report| report.classes.contains(&C::NAME))
        .collect()
}

fn kinds<C: LockClass>() -> Vec<&'static str> {
    reports::<C>().iter().map(|report| report.kind).collect()
}

type Lock<C, O = Order> = Watched<Hosted, Tas<Hosted>, C, O>;

fn new<L: RawLock<Hosted>>() -> L {
    order::set_handler(Some(keep));
    L::new()
}

/// Takes locks one inside the other.
macro_rules! take {
    ($first:expr $(, $rest:expr)*) => {{
        let held = $first.lock();
        take!(@ $($rest),*);
        // SAFETY: locked above.
        unsafe { $first.unlock(held) };
    }};
    (@) => {};
    (@ $($rest:expr),+) => { take!($($rest),+) };
}

/// Takes `a`, then `b`, at source lines of their own; returns these lines.
macro_rules! pair {
    ($a:expr, $b:expr) => {{
        let line = line!();
        take!($a, $b);
        line
    }};
}

fn abba<O: Observer<Hosted>, A: LockClass, B: LockClass>() -> Vec<Report> {
    let (a, b): (Lock<A, O>, Lock<B, O>) = (new(), new());
    let ab = pair!(a, b);
    let ba = pair!(b, a);
    let mut found = reports::<A>();
    // Said once.
    pair!(b, a);
    found.extend(reports::<A>());
    for line in [ab, ba] {
        found.retain(|report| report.text.matches(&format!("{}:{line}:", file!())).count() == 2);
    }
    found
}

fn three<O: Observer<Hosted>, A: LockClass, B: LockClass, C: LockClass>() -> Vec<Report> {
    let (a, b, c): (Lock<A, O>, Lock<B, O>, Lock<C, O>) = (new(), new(), new());
    // In tasks of their own, one after the other, and never two locks of a pair at once.
    std::thread::scope(|scope| {
        scope.spawn(|| pair!(a, b)).join().unwrap();
        scope.spawn(|| pair!(b, c)).join().unwrap();
        scope.spawn(|| pair!(c, a)).join().unwrap();
    });
    reports::<A>()
}

#[test]
fn a_reversal_is_reported_once_with_both_sites_of_both_directions() {
    lock_class!(A = "abba a");
    lock_class!(B = "abba b");
    let found = abba::<Order, A, B>();
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].kind, "cycle");
    assert_eq!(found[0].classes, ["abba b", "abba a", "abba a", "abba b"]);
    println!("{}", found[0].text);
}

#[test]
fn a_cycle_of_three_is_found_across_tasks() {
    lock_class!(A = "three a");
    lock_class!(B = "three b");
    lock_class!(C = "three c");
    let found = three::<Order, A, B, C>();
    assert_eq!(found.len(), 1, "{found:?}");
    let cycle = ["c", "a", "a", "b", "b", "c"].map(|name| format!("three {name}"));
    assert_eq!(found[0].classes, cycle);
    println!("{}", found[0].text);
}

#[test]
fn both_observers_check_as_one_does() {
    lock_class!(A = "both a");
    lock_class!(B = "both b");
    assert_eq!(abba::<Both<Order, LockProfile>, A, B>().len(), 1);
    lock_class!(C = "htob a");
    lock_class!(D = "htob b");
    assert_eq!(abba::<Both<LockProfile, Order>, C, D>().len(), 1);
}

/// The lock-order checker with one part missing.
struct Mutant<const CHECKS: bool, const PUSHES: bool>;

impl<const CHECKS: bool, const PUSHES: bool> Observer<Hosted> for Mutant<CHECKS, PUSHES> {
    type Ticket = ();
    fn asks_contention() -> bool {
        false
    }
    fn before(attempt: &Attempt) {
        // A checker that only looks at the first of two classes.
        if CHECKS || !attempt.class.name().ends_with('a') {
            <Order as Observer<Hosted>>::before(attempt);
        }
    }
    fn acquired(attempt: &Attempt, how: Acquired) {
        if PUSHES {
            <Order as Observer<Hosted>>::acquired(attempt, how);
        }
    }
    fn refused(_: &Attempt) {}
    fn releasing(class: &'static ClassState, lock: usize, ticket: &mut ()) {
        if PUSHES {
            <Order as Observer<Hosted>>::releasing(class, lock, ticket);
        }
    }
    fn released(_: &'static ClassState, (): ()) {}
}

#[test]
fn checkers_that_miss_edges_are_caught() {
    lock_class!(A0 = "whole a");
    lock_class!(B0 = "whole b");
    assert_eq!(abba::<Mutant<true, true>, A0, B0>().len(), 1);
    lock_class!(A1 = "misses edges a");
    lock_class!(B1 = "misses edges b");
    assert_eq!(abba::<Mutant<false, true>, A1, B1>().len(), 0);
    lock_class!(A2 = "misses locks a");
    lock_class!(B2 = "misses locks b");
    assert_eq!(abba::<Mutant<true, false>, A2, B2>().len(), 0);
    lock_class!(A3 = "misses edges 3a");
    lock_class!(B3 = "misses edges 3b");
    lock_class!(C3 = "misses edges 3c");
    assert_eq!(three::<Mutant<false, true>, A3, B3, C3>().len(), 0);
}

#[test]
fn a_consistent_order_is_not_reported() {
    lock_class!(A = "good a");
    lock_class!(B = "good b");
    lock_class!(C = "good c");
    let locks: Arc<(Lock<A>, Lock<B>, Lock<C>)> = Arc::new((new(), new(), new()));
    let job = |seed: usize| {
        let locks = locks.clone();
        Box::new(move || {
            let (a, b, c) = &*locks;
            for i in 0..1000 {
                match (seed + i) % 4 {
                    0 => take!(a, b, c),
                    1 => take!(a, c),
                    2 => take!(b, c),
                    _ => take!(b),
                }
            }
            // The order of releases does not matter.
            let (x, y) = (a.lock(), b.lock());
            // SAFETY: locked above.
            unsafe { a.unlock(x) };
            let z = c.lock();
            // SAFETY: locked above.
            unsafe { (b.unlock(y), c.unlock(z)) };
            assert_eq!(order::held::<Hosted>(), 0);
        }) as Job
    };
    Hosted::new(4).execute((0..4).map(job).collect());
    assert_eq!(
        kinds::<A>().len() + kinds::<B>().len() + kinds::<C>().len(),
        0
    );
}

#[test]
fn tries_say_nothing_but_what_follows_them_does() {
    lock_class!(A = "try a");
    lock_class!(B = "try b");
    let (a, b): (Lock<A>, Lock<B>) = (new(), new());
    pair!(a, b);
    // b, then a by `try_lock`: this records no order, although it is the opposite one.
    let held = b.lock();
    let tried = a.try_lock().expect("free");
    // SAFETY: locked above.
    unsafe { (a.unlock(tried), b.unlock(held)) };
    assert_eq!(kinds::<A>(), [""; 0]);
    // b by `try_lock`, then a: the task that waits for a holds b.
    let held = b.try_lock().expect("free");
    take!(a);
    // SAFETY: locked above.
    unsafe { b.unlock(held) };
    assert_eq!(kinds::<A>(), ["cycle"]);
}

#[test]
fn a_bad_pair_is_not_blamed_on_others() {
    lock_class!(A = "blame a");
    lock_class!(B = "blame b");
    lock_class!(C = "blame c");
    let (a, b, c): (Lock<A>, Lock<B>, Lock<C>) = (new(), new(), new());
    pair!(a, b);
    pair!(b, a);
    assert_eq!(kinds::<A>(), ["cycle"]);
    // Before `b` and behind `a`, and `b` before `a` does not count.
    pair!(c, b);
    pair!(a, c);
    assert_eq!(kinds::<C>(), [""; 0]);
    let of_c = |edge: &order::Edge| {
        [edge.from, edge.to].map(|class| class.unwrap().name() == "blame c") != [false; 2]
    };
    assert_eq!(order::edges().filter(of_c).count(), 2);
}

#[test]
fn locks_of_one_class_need_a_permission() {
    lock_class!(Plain = "plain");
    lock_class!(Free = "free", nesting Allowed);
    let (a, b): (Lock<Plain>, Lock<Plain>) = (new(), new());
    pair!(a, b);
    assert_eq!(kinds::<Plain>(), ["nested"]);
    let (x, y) = (a.lock(), b.lock_nested());
    // SAFETY: locked above.
    unsafe { (b.unlock(y), a.unlock(x)) };
    assert_eq!(kinds::<Plain>(), [""; 0]);
    let (a, b): (Lock<Free>, Lock<Free>) = (new(), new());
    pair!(a, b);
    pair!(b, a);
    assert_eq!(kinds::<Free>(), [""; 0]);
}

/// A CPU keeps a lock while it goes from one task to another: the one that leaves does not hold it
/// any more, the one that goes on does.
#[test]
fn a_lock_is_handed_from_one_task_to_another() {
    lock_class!(Switch = "switch");
    let lock: Lock<Switch> = new();
    let held = lock.lock();
    lock.hand_over();
    assert_eq!(order::held::<Hosted>(), 0);
    lock.take_over(std::panic::Location::caller());
    assert_eq!(order::held::<Hosted>(), 1);
    // SAFETY: locked above.
    unsafe { lock.unlock(held) };
    assert_eq!(order::held::<Hosted>(), 0);
    assert_eq!(kinds::<Switch>(), [""; 0]);
}

#[test]
fn a_run_of_locks_by_address_is_one_entry() {
    lock_class!(Page = "page", nesting ByAddress);
    lock_class!(Inner = "inner");
    let pages: Vec<Lock<Page>> = (0..512).map(|_| new()).collect();
    let inner: Lock<Inner> = new();
    let held: Vec<_> = pages.iter().map(|page| page.lock()).collect();
    assert_eq!(order::held::<Hosted>(), 1);
    take!(inner);
    for (page, held) in pages.iter().zip(held) {
        // SAFETY: locked above.
        unsafe { page.unlock(held) };
    }
    assert_eq!(order::held::<Hosted>(), 0);
    assert_eq!(kinds::<Page>(), [""; 0]);
    // A lock that is allowed out of order is an entry of its own, in any order of releases.
    let [one, three] = [1, 3].map(|i| pages[i].lock());
    let two = pages[2].lock_nested();
    assert_eq!(order::held::<Hosted>(), 2);
    for (i, held) in [(1, one), (2, two), (3, three)] {
        // SAFETY: locked above.
        unsafe { pages[i].unlock(held) };
    }
    assert_eq!(order::held::<Hosted>(), 0);
    assert_eq!(kinds::<Page>(), [""; 0]);
    pair!(pages[1], pages[0]);
    assert_eq!(kinds::<Page>(), ["descending"]);
    pair!(inner, pages[0]);
    assert_eq!(kinds::<Page>(), ["cycle"]);
}

#[test]
fn waiting_for_an_own_lock_is_reported_before_it_hangs() {
    lock_class!(Own = "own", nesting Allowed);
    let lock: Lock<Own> = new();
    let held = lock.lock();
    let again = std::panic::AssertUnwindSafe(|| _ = lock.lock());
    assert!(std::panic::catch_unwind(again).is_err());
    // SAFETY: locked above.
    unsafe { lock.unlock(held) };
    assert_eq!(kinds::<Own>(), ["recursion"]);
}

#[test]
fn declared_ranks_are_kept() {
    lock_class!(Low = "low", rank 10);
    lock_class!(High = "high", rank 20);
    lock_class!(Peer = "peer", rank 20);
    let (low, high, peer): (Lock<Low>, Lock<High>, Lock<Peer>) = (new(), new(), new());
    pair!(low, high);
    assert_eq!(kinds::<Low>(), [""; 0]);
    pair!(high, peer);
    assert_eq!(kinds::<Peer>(), ["rank"]);
    pair!(peer, low);
    assert_eq!(kinds::<Low>(), ["rank"]);
}

#[test]
fn depth_is_bounded_by_a_report() {
    lock_class!(Deep = "deep", nesting Allowed);
    let locks: Vec<Lock<Deep>> = (0..40).map(|_| new()).collect();
    let held: Vec<_> = locks.iter().map(|lock| lock.lock()).collect();
    assert_eq!(order::held::<Hosted>(), 26);
    assert_eq!(kinds::<Deep>(), ["too deep"]);
    for (lock, held) in locks.iter().zip(held).rev() {
        // SAFETY: locked above.
        unsafe { lock.unlock(held) };
    }
    assert_eq!(order::held::<Hosted>(), 0);
    assert_eq!(kinds::<Deep>(), [""; 0]);
}

#[test]
fn releasing_what_is_not_held_is_reported() {
    lock_class!(Foreign = "foreign");
    let lock: Lock<Foreign> = new();
    struct Smuggled<T>(T);
    // SAFETY: it is not; the checker is to say so.
    unsafe impl<T> Send for Smuggled<T> {}
    let held = Smuggled(lock.lock());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let held = held;
            // SAFETY: locked above, though not by this task.
            unsafe { lock.unlock(held.0) };
        });
    });
    assert_eq!(kinds::<Foreign>(), ["not held"]);
}

#[test]
fn readers_count_as_writers() {
    lock_class!(Tree = "tree");
    lock_class!(Leaf = "leaf");
    type Shared<C> = lock_api::RwLock<Watched<Hosted, Rw<Hosted>, C, Order>, ()>;
    order::set_handler(Some(keep));
    let (tree, leaf): (Shared<Tree>, Shared<Leaf>) = (Shared::new(()), Shared::new(()));
    {
        let _tree = tree.read();
        let _leaf = leaf.write();
    }
    {
        let _leaf = leaf.read();
        let _tree = tree.read();
    }
    assert_eq!(kinds::<Tree>(), ["cycle"]);
}

/// A pinned task that waits for a lock keeps its holder off the CPU, if that may be preempted.
/// Hosted counts pins with debug assertions.
#[cfg(debug_assertions)]
#[test]
fn what_is_waited_for_under_a_pin_is_held_under_one() {
    use machine::Cpus;
    fn pinned<C: LockClass>(lock: &Lock<C>) {
        let _pin = Hosted::pin();
        take!(lock);
    }
    lock_class!(Always = "always pinned");
    lock_class!(Never = "never pinned");
    lock_class!(Waited = "pinned, then not");
    lock_class!(Held = "not pinned, then pinned");
    lock_class!(Kept = "kept longer than the pin");
    lock_class!(Tried = "tried without a pin");
    lock_class!(Late = "pinned too late");
    Hosted::new(1).on_cpu(0, || {
        let (always, never): (Lock<Always>, Lock<Never>) = (new(), new());
        pinned(&always);
        take!(never);
        let (waited, held): (Lock<Waited>, Lock<Held>) = (new(), new());
        pinned(&waited);
        take!(held);
        for _ in 0..2 {
            take!(waited);
            pinned(&held);
        }
        let kept: Lock<Kept> = new();
        let pin = Hosted::pin();
        let held = kept.lock();
        drop(pin);
        // SAFETY: locked above.
        unsafe { kept.unlock(held) };
        let tried: Lock<Tried> = new();
        pinned(&tried);
        let held = tried.try_lock().expect("free");
        // SAFETY: locked above.
        unsafe { tried.unlock(held) };
        let late: Lock<Late> = new();
        pinned(&late);
        let held = late.lock();
        let pin = Hosted::pin();
        // SAFETY: locked above.
        unsafe { late.unlock(held) };
        drop(pin);
    });
    assert_eq!(kinds::<Always>().len() + kinds::<Never>().len(), 0);
    for found in [
        reports::<Waited>(),
        reports::<Held>(),
        reports::<Kept>(),
        reports::<Tried>(),
        reports::<Late>(),
    ] {
        let kinds: Vec<_> = found.iter().map(|report| report.kind).collect();
        assert_eq!(kinds, ["preempted"], "{found:?}");
        assert_eq!(found[0].text.matches(file!()).count(), 2, "{found:?}");
    }
}

/// Two tasks record opposite orders at the same time: at least one must see it.
#[test]
fn of_two_at_once_one_reports() {
    macro_rules! round {
        ($a:literal, $b:literal) => {{
            lock_class!(A = $a);
            lock_class!(B = $b);
            let barrier = Arc::new(Barrier::new(2));
            let other = barrier.clone();
            // Locks of their own: only the class counts.
            let one = move || {
                let (a, b): (Lock<A>, Lock<B>) = (new(), new());
                barrier.wait();
                pair!(a, b);
            };
            let two = move || {
                let (a, b): (Lock<A>, Lock<B>) = (new(), new());
                other.wait();
                pair!(b, a);
            };
            Hosted::new(2).execute(vec![Box::new(one), Box::new(two)]);
            let found = kinds::<A>();
            assert!(
                found == ["cycle"] || found == ["cycle", "cycle"],
                "{found:?}"
            );
        }};
    }
    round!("race 1a", "race 1b");
    round!("race 2a", "race 2b");
    round!("race 3a", "race 3b");
    round!("race 4a", "race 4b");
}
