//! A few threads and acquisitions of every spin lock: small enough for Miri
//! (`MIRIFLAGS="-Zmiri-permissive-provenance -Zmiri-ignore-leaks" cargo +nightly miri test
//! -p scalevm-sync --test small`). Permissive: tasks keep pointers in words. Leaks: the
//! machine's stock of CLH nodes lives as long as the process, and memory reachable
//! through such words only is a leak to Miri.

use hosted::Hosted;
use std::thread;
use sync::spin::{
    Clh, Cna, Conbo, Hapax, K42, Mcs, Proportional, Qspinlock, Reciprocating, TestAndSet, Ticket,
};
use sync::{Mutex, RawLock};

fn count<R: RawLock<Hosted>>() {
    let mutex = Mutex::<Hosted, R, Vec<u32>>::new(Vec::new());
    let tried = thread::scope(|scope| {
        for i in 0..2 {
            let mutex = &mutex;
            scope.spawn(move || (0..10).for_each(|_| mutex.lock().push(i)));
        }
        let trier = || {
            (0..10)
                .filter(|_| mutex.try_lock().map(|mut g| g.push(9)).is_some())
                .count()
        };
        scope.spawn(trier).join().unwrap()
    });
    assert_eq!(mutex.into_inner().len(), 20 + tried);
}

macro_rules! small {
    ($($name:ident: $lock:ident;)*) => {$(
        #[test]
        fn $name() {
            count::<$lock<Hosted>>();
        }
    )*};
}

small! {
    test_and_set: TestAndSet;
    ticket: Ticket;
    proportional: Proportional;
    conbo: Conbo;
    mcs: Mcs;
    clh: Clh;
    k42: K42;
    reciprocating: Reciprocating;
    hapax: Hapax;
    qspinlock: Qspinlock;
    cna: Cna;
}
