//! The lock profile counts events at their call sites, and times only waits.

#[allow(dead_code)]
mod watched;

use hosted::Hosted;
use machine::{Execute, Job, Tasks};
use std::any::TypeId;
use std::cell::RefCell;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::sleep;
use std::time::Duration;
use sync::watch::profile::{self, Row};
use sync::watch::{
    Acquired, Attempt, Both, ClassState, DefaultObserver, LockClass, LockProfile, Observer, Off,
    Order, Watched,
};
use sync::{RawLock, lock_class};
use watched::{Gate, Rw, Tas};

/// Hosted machines share a profile: one test at a time.
fn alone(cpus: usize) -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    let one = ONE.lock().unwrap_or_else(|e| e.into_inner());
    profile::of(Hosted::anchor()).reset();
    profile::of(Hosted::anchor()).start(cpus).expect("memory");
    one
}

fn rows<C: LockClass>() -> Vec<Row> {
    let mut rows = profile::of(Hosted::anchor()).report();
    rows.retain(|row| row.class == C::NAME);
    rows
}

const HOLD: Duration = Duration::from_millis(5);
const WAITERS: u64 = 3;

/// CPU 0 takes the lock at one line and holds it for [`HOLD`] once all others wait at
/// another line; each of them holds it for 1 ms. Returns the two lines.
fn contend<C: LockClass, O: Observer<Hosted>>() -> [u32; 2] {
    let lock = Arc::new(Watched::<Hosted, Gate<Hosted>, C, O>::new());
    let lines = Arc::new([const { AtomicU32::new(0) }; 2]);
    let (holder, first) = (lock.clone(), lines.clone());
    let mut jobs: Vec<Job> = vec![Box::new(move || {
        first[0].store(line!() + 1, Relaxed);
        let held = holder.lock();
        while u64::from(holder.raw().waiters()) < WAITERS {
            std::thread::yield_now();
        }
        sleep(HOLD);
        // SAFETY: locked above.
        unsafe { holder.unlock(held) };
    })];
    for _ in 0..WAITERS {
        let (lock, second) = (lock.clone(), lines.clone());
        jobs.push(Box::new(move || {
            while !lock.is_locked() {
                std::thread::yield_now();
            }
            second[1].store(line!() + 1, Relaxed);
            let held = lock.lock();
            sleep(Duration::from_millis(1));
            // SAFETY: locked above.
            unsafe { lock.unlock(held) };
        }));
    }
    Hosted::new(1 + WAITERS as usize).execute(jobs);
    [0, 1].map(|i| lines[i].load(Relaxed))
}

/// The error in the profile of [`contend`], if there is one.
fn wrong<C: LockClass>([holder, waiters]: [u32; 2]) -> Option<String> {
    let rows = rows::<C>();
    let [waited, free] = rows.as_slice() else {
        return Some(format!("not two sites: {rows:?}"));
    };
    let expected = [waited.file, free.file] == [file!(); 2]
        && [waited.line, free.line] == [waiters, holder]
        && [free.acquisitions, free.contended, free.wait, free.hold] == [1, 0, 0, 0]
        && [waited.acquisitions, waited.contended] == [WAITERS; 2]
        && [waited.spins, waited.sleeps] == [WAITERS, 2 * WAITERS]
        && waited.max_wait >= HOLD.as_nanos() as u64
        && waited.wait >= WAITERS * HOLD.as_nanos() as u64
        && waited.max_wait < waited.wait
        && waited.hold >= WAITERS * 1_000_000;
    (!expected).then(|| format!("{rows:#?}"))
}

#[test]
fn contention_is_counted_and_timed_where_it_is() {
    lock_class!(Contended = "contended");
    let _alone = alone(4);
    let lines = contend::<Contended, LockProfile>();
    assert_eq!(wrong::<Contended>(lines), None);
    profile::of(Hosted::anchor()).reset();
    assert_eq!(rows::<Contended>(), []);
}

/// The profile with a bug: it never asks if a lock was free, or never hears when it is released.
struct Mutant<const ASKS: bool, const RELEASES: bool>;

impl<const ASKS: bool, const RELEASES: bool> Observer<Hosted> for Mutant<ASKS, RELEASES> {
    type Ticket = <LockProfile as Observer<Hosted>>::Ticket;
    fn asks_contention() -> bool {
        ASKS
    }
    fn before(attempt: &Attempt) {
        <LockProfile as Observer<Hosted>>::before(attempt);
    }
    fn acquired(attempt: &Attempt, how: Acquired) -> Self::Ticket {
        let how = if ASKS { how } else { Acquired::Free };
        <LockProfile as Observer<Hosted>>::acquired(attempt, how)
    }
    fn refused(attempt: &Attempt) {
        <LockProfile as Observer<Hosted>>::refused(attempt);
    }
    fn releasing(class: &'static ClassState, lock: usize, ticket: &mut Self::Ticket) {
        <LockProfile as Observer<Hosted>>::releasing(class, lock, ticket);
    }
    fn released(class: &'static ClassState, ticket: Self::Ticket) {
        if RELEASES {
            <LockProfile as Observer<Hosted>>::released(class, ticket);
        }
    }
}

#[test]
fn profiles_that_miss_something_are_caught() {
    lock_class!(Same = "no mutation");
    lock_class!(Blind = "blind to contention");
    lock_class!(Timeless = "blind to releases");
    let _alone = alone(4);
    assert_eq!(wrong::<Same>(contend::<Same, Mutant<true, true>>()), None);
    assert!(wrong::<Blind>(contend::<Blind, Mutant<false, true>>()).is_some());
    assert!(wrong::<Timeless>(contend::<Timeless, Mutant<true, false>>()).is_some());
}

#[test]
fn no_acquisition_is_lost() {
    lock_class!(Exact = "exact");
    const TASKS: u64 = 4;
    const EACH: u64 = 10_000;
    // CPUs beyond those announced share counters.
    let _alone = alone(2);
    let lock = Arc::new(Watched::<Hosted, Tas<Hosted>, Exact, LockProfile>::new());
    let job = || {
        let lock = lock.clone();
        Box::new(move || {
            for _ in 0..EACH {
                let held = lock.lock();
                // SAFETY: locked above.
                unsafe { lock.unlock(held) };
            }
        }) as Job
    };
    Hosted::new(TASKS as usize).execute((0..TASKS).map(|_| job()).collect());
    let rows = rows::<Exact>();
    assert_eq!(rows.len(), 1, "{rows:?}");
    assert_eq!(rows[0].acquisitions, TASKS * EACH);
    assert!(rows[0].contended <= TASKS * EACH);
}

#[test]
fn nothing_is_counted_while_stopped() {
    lock_class!(Stopped = "stopped");
    let _alone = alone(1);
    let lock = Watched::<Hosted, Tas<Hosted>, Stopped, LockProfile>::new();
    let acquire = || {
        let held = lock.lock();
        assert!(lock.try_lock().is_none());
        // SAFETY: locked above.
        unsafe { lock.unlock(held) };
    };
    profile::of(Hosted::anchor()).stop();
    acquire();
    assert_eq!(rows::<Stopped>(), []);
    profile::of(Hosted::anchor()).start(1).expect("memory");
    acquire();
    let counts = rows::<Stopped>().iter().fold([0, 0, 0], |[a, b, c], row| {
        [a + row.acquisitions, b + row.contended, c + row.refused]
    });
    assert_eq!(counts, [1, 0, 1]);
}

/// The caller's line is found through the wrappers of `lock_api` and of this crate.
#[test]
fn call_sites_are_the_users() {
    lock_class!(Mutual = "mutual");
    lock_class!(Readers = "readers");
    static MUTEX: lock_api::Mutex<Watched<Hosted, Tas<Hosted>, Mutual, LockProfile>, u32> =
        lock_api::Mutex::new(0);
    static RWLOCK: lock_api::RwLock<Watched<Hosted, Rw<Hosted>, Readers, LockProfile>, u32> =
        lock_api::RwLock::new(0);
    #[track_caller]
    fn wrapper() {
        *MUTEX.lock() += 1;
    }
    let _alone = alone(1);
    let first = line!();
    *MUTEX.lock() += 1;
    *MUTEX.try_lock().expect("free") += 1;
    wrapper();
    *RWLOCK.write() += 1;
    assert_eq!(*RWLOCK.read(), 1);
    assert!(RWLOCK.try_write().is_some());
    let lines = |mut rows: Vec<Row>| {
        rows.sort_by_key(|row| row.line);
        assert!(
            rows.iter()
                .all(|row| row.acquisitions == 1 && row.file == file!())
        );
        rows.iter().map(|row| row.line - first).collect::<Vec<_>>()
    };
    assert_eq!(lines(rows::<Mutual>()), [1, 2, 3]);
    assert_eq!(lines(rows::<Readers>()), [4, 5, 6]);
    // A path that is generic over the lock sees the caller too.
    #[track_caller]
    fn generic<L: RawLock<Hosted>>(lock: &L) {
        let held = lock.lock();
        // SAFETY: locked above.
        unsafe { lock.unlock(held) };
    }
    lock_class!(Generic = "generic");
    generic(&Watched::<Hosted, Tas<Hosted>, Generic, LockProfile>::new());
    assert_eq!(rows::<Generic>()[0].line, line!() - 1);
}

/// Records the events it sees, under its name.
struct Noting<const NAME: char>;

thread_local! {
    static SEEN: RefCell<Vec<(char, &'static str)>> = const { RefCell::new(Vec::new()) };
}

impl<const NAME: char> Noting<NAME> {
    fn note(event: &'static str) {
        SEEN.with_borrow_mut(|seen| seen.push((NAME, event)));
    }
}

impl<const NAME: char> Observer<Hosted> for Noting<NAME> {
    type Ticket = ();
    fn asks_contention() -> bool {
        false
    }
    fn before(_: &Attempt) {
        Self::note("before");
    }
    fn acquired(_: &Attempt, _: Acquired) {
        Self::note("acquired");
    }
    fn refused(_: &Attempt) {
        Self::note("refused");
    }
    fn releasing(_: &'static ClassState, _: usize, (): &mut ()) {
        Self::note("releasing");
    }
    fn released(_: &'static ClassState, (): ()) {
        Self::note("released");
    }
}

#[test]
fn two_observers_see_all_that_one_sees() {
    lock_class!(Seen = "seen");
    let seen_by = |acquire: fn()| {
        acquire();
        SEEN.take()
    };
    fn acquire<O: Observer<Hosted>>() {
        let lock = Watched::<Hosted, Tas<Hosted>, Seen, O>::new();
        let held = lock.lock();
        assert!(lock.try_lock().is_none());
        // SAFETY: locked above.
        unsafe { lock.unlock(held) };
    }
    let alone = seen_by(acquire::<Noting<'a'>>);
    let both = seen_by(acquire::<Both<Noting<'a'>, Noting<'b'>>>);
    for name in ['a', 'b'] {
        let of_one = both.iter().filter(|(by, _)| *by == name);
        let events = |(_, event): &(char, &'static str)| *event;
        assert!(
            of_one.map(events).eq(alone.iter().map(events)),
            "{name}: {both:?}"
        );
    }
    assert_eq!(alone.len(), 5, "{alone:?}");
}

#[test]
fn the_wrapper_takes_no_room() {
    lock_class!(Small = "small");
    assert_eq!(size_of::<Watched<Hosted, Tas<Hosted>, Small, Off>>(), 1);
    assert_eq!(size_of::<Watched<Hosted, Tas<Hosted>, Small, Order>>(), 1);
    assert_eq!(
        size_of::<Watched<Hosted, Tas<Hosted>, Small, LockProfile>>(),
        1
    );
    type Held<O> = <Watched<Hosted, Tas<Hosted>, Small, O> as RawLock<Hosted>>::Held;
    assert_eq!(size_of::<Held<Off>>(), 0);
    assert_eq!(size_of::<Held<Order>>(), 0);
    assert!(size_of::<Held<LockProfile>>() <= 24);
}

#[test]
fn the_build_chooses_the_default() {
    let order = cfg!(any(debug_assertions, feature = "lock-order"));
    let profile = cfg!(feature = "lock-profile");
    let expected = match (order, profile) {
        (true, true) => TypeId::of::<Both<Order, LockProfile>>(),
        (true, false) => TypeId::of::<Order>(),
        (false, true) => TypeId::of::<LockProfile>(),
        (false, false) => TypeId::of::<Off>(),
    };
    assert_eq!(TypeId::of::<DefaultObserver>(), expected);
}
