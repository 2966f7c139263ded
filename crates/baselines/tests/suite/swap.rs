//! Swap accounts are exact: never above the limit, and no refusal while there is room.

use baselines::freebsd::swap::{AtomicSwap, MutexSwap};
use baselines::linux::CommittedAs;
use baselines::selected::{Account, AnySwap};
use hosted::Hosted;
use machine::{Execute, Job, Topology};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use vm::system::{Extent, Part, Reservation};

type Any = AnySwap<Hosted, MutexSwap<Hosted>>;

fn exact_alone<S: Reservation<Hosted>>(new: impl Fn(u64) -> S) {
    let account = new(100);
    assert!(account.reserve(60));
    assert!(!account.reserve(41));
    assert!(
        !account.reserve(u64::MAX),
        "a sum that overflows is too much"
    );
    assert_eq!(account.reserved(), 60, "a refusal takes nothing");
    assert!(account.reserve(40));
    assert!(account.reserve(0));
    assert!(!account.reserve(1));
    // Releases the amount in parts.
    account.release(30);
    account.release(70);
    assert_eq!(account.reserved(), 0);
    assert!(account.reserve(100));
    assert!(!new(0).reserve(1));
}

/// Three CPUs reserve a third each, over and over: all fit, so none may be refused. The fourth asks
/// for more than there ever is: it must be refused without effect on the others.
fn exact_together<S: Reservation<Hosted>>(machine: &Hosted, new: impl Fn(u64) -> S) {
    const ROUNDS: usize = 20_000;
    let account = Arc::new(new(30));
    let held = Arc::new(AtomicU64::new(0));
    let worker = |_| {
        let (account, held) = (account.clone(), held.clone());
        Box::new(move || {
            for _ in 0..ROUNDS {
                assert!(account.reserve(10), "there was room");
                assert!(held.fetch_add(10, SeqCst) <= 20, "above the limit");
                held.fetch_sub(10, SeqCst);
                account.release(10);
            }
        }) as Job
    };
    let mut jobs: Vec<Job> = (0..3).map(worker).collect();
    let greedy = account.clone();
    jobs.push(Box::new(move || {
        for _ in 0..ROUNDS {
            assert!(!greedy.reserve(31), "more than the limit");
        }
    }));
    machine.execute(jobs);
    assert_eq!(account.reserved(), 0);
}

fn exact<S: Reservation<Hosted, Config: Sync>>(config: S::Config) {
    let machine = Hosted::new(4);
    let new = |limit| S::new(&config, Extent::new(machine.cpus(), 0, limit)).expect("room");
    machine.on_cpu(0, || exact_alone(new));
    exact_together(&machine, new);
}

#[test]
fn mutex_swap_is_exact() {
    exact::<MutexSwap<Hosted>>(());
}

#[test]
fn atomic_swap_is_exact() {
    exact::<AtomicSwap<Hosted>>(());
}

#[test]
fn committed_as_is_exact() {
    exact::<CommittedAs<Hosted, MutexSwap<Hosted>>>(());
}

#[test]
fn selected_accounts_are_exact() {
    for account in [
        Account::Mutex,
        Account::Atomic,
        Account::CommittedAs,
        Account::Own,
    ] {
        exact::<Any>(account);
    }
}

/// Up to 16 MiB remain in a CPU's own part; each larger mapping is charged to the common count, and
/// uncharged there.
#[test]
fn linux_counts_by_batches_of_a_cpu() {
    const BATCH: u64 = 4096;
    let machine = Hosted::new(2);
    let account =
        CommittedAs::<Hosted, MutexSwap<Hosted>>::new(&(), Extent::new(machine.cpus(), 0, 1 << 20));
    let account = &account.expect("room");
    machine.on_cpu(0, || {
        assert!(account.reserve(BATCH - 1));
        assert_eq!(account.counted(), 0);
        account.release(BATCH - 1);
        assert!(account.reserve(2 * BATCH));
        assert_eq!(account.counted(), 2 * BATCH as i64);
    });
    machine.on_cpu(1, || {
        assert!(account.reserve(1));
        account.release(2 * BATCH);
    });
    assert_eq!(account.reserved(), 1);
    machine.on_cpu(0, || assert_eq!(account.counted(), 1));
}
