//! The contract of every delayed invalidation, on threads; one that does nothing must fail.

use crate::common;
use crate::cpus;

use baselines::freebsd::{Di, EpochDi, LocklessDi, Pvh};
use baselines::selected::{AnyInvalidation, Design};
use common::NoDi;
use cpus::{Cpu, with_cpus};
use hosted::Hosted;
use machine::{CpuRange, Cpus, Frame};
use std::sync::atomic::{AtomicBool, Ordering};
use vm::system::{Extent, Invalidation, Part};

/// A design behind the selection, with epochs as the fifth.
type Any = AnyInvalidation<Hosted, EpochDi<Hosted>>;

/// Frames in different 2 MiB regions, so that no number is shared by hashing.
const PAGES: [Frame; 3] = [Frame(0), Frame(512), Frame(1024)];
const FRAMES: usize = 2048;

/// A design's promises beyond the contract.
#[derive(Clone, Copy)]
struct Promise {
    /// True if a wait ignores open blocks that have not noted the page's region.
    notes: bool,
}

/// A block that noted the page is waited for, whatever else has ended.
fn waits_for_the_block_that_noted<I: Invalidation<Hosted>>(policy: &I) -> Result<(), String> {
    with_cpus::<I, 2, _>(policy, |[a, b]| {
        for _ in 0..3 {
            a.begin();
            a.note(PAGES[0]);
            b.start_wait(PAGES[0]);
            b.still_waits("while the block that noted the page is open")?;
            a.end();
            b.returns("after that block has ended")?;
        }
        Ok(())
    })
}

/// With no block open, a wait returns, noted or not.
fn returns_when_nothing_is_open<I: Invalidation<Hosted>>(policy: &I) -> Result<(), String> {
    with_cpus::<I, 2, _>(policy, |[a, b]| {
        b.start_wait(PAGES[0]);
        b.returns("before any block")?;
        a.begin();
        a.note(PAGES[0]);
        a.end();
        for page in PAGES {
            b.start_wait(page);
            b.returns("after the only block")?;
        }
        Ok(())
    })
}

/// Three blocks; the middle one ends first, then the oldest, then the newest.
fn middle_block_ends_first<I: Invalidation<Hosted>>(
    policy: &I,
    promise: Promise,
) -> Result<(), String> {
    with_cpus::<I, 5, _>(policy, |[old, middle, new, waiter, other]| {
        for (cpu, page) in [&old, &middle, &new].into_iter().zip(PAGES) {
            cpu.begin();
            cpu.note(page);
        }
        middle.end();
        waiter.start_wait(PAGES[0]);
        waiter.still_waits("for the oldest, after the middle block has ended")?;
        other.start_wait(PAGES[2]);
        other.still_waits("for the newest, after the middle block has ended")?;
        old.end();
        if promise.notes {
            waiter.returns("for the oldest, with a newer block open")?;
            waiter.start_wait(PAGES[1]);
            waiter.returns("for the middle, with a newer block open")?;
        }
        other.still_waits("for the newest, alone by now")?;
        new.end();
        if !promise.notes {
            waiter.returns("for the oldest, with all ended")?;
        }
        other.returns("for the newest, with all ended")
    })
}

/// The newest block ends first, and the one to which it gave its number then notes another page.
fn notes_after_a_newer_block_ended<I: Invalidation<Hosted>>(policy: &I) -> Result<(), String> {
    with_cpus::<I, 3, _>(policy, |[old, new, waiter]| {
        old.begin();
        new.begin();
        new.note(PAGES[1]);
        new.end();
        old.note(PAGES[0]);
        waiter.start_wait(PAGES[0]);
        waiter.still_waits("for the oldest")?;
        old.end();
        waiter.returns("with all ended")?;
        waiter.start_wait(PAGES[1]);
        waiter.returns("with all ended")
    })
}

/// An open block that has not noted the page delays no wait, where promised.
fn heeds_notes_only<I: Invalidation<Hosted>>(policy: &I) -> Result<(), String> {
    with_cpus::<I, 2, _>(policy, |[a, b]: [Cpu; 2]| {
        a.begin();
        a.note(PAGES[0]);
        b.start_wait(PAGES[1]);
        b.returns("while only a block is open that never noted the page")?;
        a.end();
        Ok(())
    })
}

fn conforms<I: Invalidation<Hosted>>(
    new: impl Fn(CpuRange) -> I,
    promise: Promise,
) -> Result<(), String> {
    let fresh = || new(cpus::machine());
    waits_for_the_block_that_noted(&fresh())?;
    returns_when_nothing_is_open(&fresh())?;
    middle_block_ends_first(&fresh(), promise)?;
    notes_after_a_newer_block_ended(&fresh())?;
    if promise.notes {
        heeds_notes_only(&fresh())?;
    }
    Ok(())
}

fn plain<I: Invalidation<Hosted>>(cpus: CpuRange) -> I {
    I::new(&I::Config::default(), Extent::new(cpus, FRAMES, 0)).expect("room")
}

const NOTES: Promise = Promise { notes: true };
const ALL_BLOCKS: Promise = Promise { notes: false };

#[test]
fn di_conforms() {
    conforms(plain::<Di<Hosted>>, NOTES).unwrap();
}

#[test]
fn lockless_di_conforms() {
    conforms(plain::<LocklessDi<Hosted>>, NOTES).unwrap();
}

#[test]
fn epoch_di_conforms() {
    conforms(plain::<EpochDi<Hosted>>, ALL_BLOCKS).unwrap();
}

#[test]
fn section_ids_conform() {
    conforms(plain::<vm::invalidation::Snapshots<Hosted>>, NOTES).unwrap();
}

/// The lock makes blocks and removals exclude each other.
#[test]
fn pvh_conforms() {
    let fresh = || plain::<Pvh<Hosted>>(cpus::machine());
    waits_for_the_block_that_noted(&fresh()).unwrap();
    returns_when_nothing_is_open(&fresh()).unwrap();
}

#[test]
fn selected_designs_conform() {
    for (design, promise) in [
        (Design::Di, NOTES),
        (Design::LocklessDi, NOTES),
        (Design::Epoch, ALL_BLOCKS),
        (Design::Own, ALL_BLOCKS),
    ] {
        let conformed = conforms(
            |cpus| Any::new(&design, Extent::new(cpus, FRAMES, 0)).expect("room"),
            promise,
        );
        conformed.unwrap_or_else(|failure| panic!("{design:?}: {failure}"));
    }
    let pvh = || Any::new(&Design::Pvh, Extent::new(cpus::machine(), FRAMES, 0)).expect("room");
    waits_for_the_block_that_noted(&pvh()).unwrap();
    returns_when_nothing_is_open(&pvh()).unwrap();
}

#[test]
fn none_at_all_does_not_conform() {
    assert!(conforms(plain::<NoDi>, ALL_BLOCKS).is_err());
}

/// A task that sleeps in its block leaves its CPU to others, which open blocks there.
#[test]
fn blocks_of_one_cpu_are_apart() {
    fn nested<I: Invalidation<Hosted, Page = ()>>() {
        let machine = Hosted::new(2);
        let policy: I = plain(machine::Topology::cpus(&machine));
        let (noted, ended) = (AtomicBool::new(false), AtomicBool::new(false));
        let frame = Frame(3);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                machine.on_cpu(0, || {
                    let first = policy.begin();
                    policy.note(&first, frame, &());
                    drop(policy.begin());
                    noted.store(true, Ordering::Release);
                    (0..1_000).for_each(|_| std::thread::yield_now());
                    ended.store(true, Ordering::Release);
                    drop(first);
                });
            });
            machine.on_cpu(1, || {
                Hosted::spin_until(|| noted.load(Ordering::Acquire));
                policy.wait(&policy.reverse(), frame, &());
                assert!(ended.load(Ordering::Acquire), "the first block is open");
            });
        });
    }
    nested::<Di<Hosted>>();
    nested::<LocklessDi<Hosted>>();
    nested::<EpochDi<Hosted>>();
}
