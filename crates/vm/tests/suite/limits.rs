//! Limits of a space and committed memory, on hosted memory.

use hosted::Hosted;
use machine::{Execute, Job, PAGE_SIZE, VaRange};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use vm::policy::Reservation;
use vm::{
    At, Best, Error, Flags, HEAP_START, Limit, Move, Options, Overcommit, Prot, Request, Resource,
    Space, Vm,
};

use crate::refusing;

const P: usize = PAGE_SIZE;
const SLOT: usize = 2 << 20;

type System = Arc<Vm<Hosted, Best>>;
type TestSpace = Space<Hosted, Best>;

fn system_with(overcommit: Overcommit) -> System {
    let machine = Hosted::with_memory(2, 16 << 20).expect("memory");
    machine.attach(0);
    let options = Options {
        overcommit,
        ..Options::default()
    };
    Vm::with_options(machine, options)
}

fn space() -> TestSpace {
    let space = Space::new(&system_with(Overcommit::Never)).expect("a space");
    space.activate();
    space
}

fn limited(limit: Limit, pages: usize) -> TestSpace {
    let space = space();
    space.set_limit(limit, Some(pages * P)).expect("a limit");
    space
}

fn pages(at: usize, count: usize) -> VaRange {
    VaRange::sized(at, count * P)
}

fn locked(count: usize) -> Request<'static, Hosted, Best> {
    Request::anonymous(count * P, Prot::READ_WRITE).with(Flags::LOCKED)
}

fn over(limit: Limit) -> Error {
    Error::OverLimit(limit)
}

#[test]
fn limits_are_what_was_set_and_have_their_errno() {
    let space = space();
    for limit in [Limit::AddressSpace, Limit::Data, Limit::Locked] {
        assert_eq!(space.limit(limit), None);
        space.set_limit(limit, Some(10 * P + 5)).expect("a limit");
        assert_eq!(space.limit(limit), Some(10 * P + 5));
        assert_eq!(over(limit).errno(), 12);
        space.set_limit(limit, None).expect("no limit");
        assert_eq!(space.limit(limit), None);
    }
    assert_eq!(space.limit(Limit::Stack), Some(8 << 20));
    space.set_limit(Limit::Stack, None).expect("no limit");
    assert_eq!(space.limit(Limit::Stack), None);
    assert_eq!(Error::LockLimit.errno(), 11);
}

#[test]
fn mapped_memory_is_limited_exactly() {
    let space = limited(Limit::AddressSpace, 10);
    let at = space.map(6 * P, Prot::READ).expect("map");
    assert_eq!(space.map(5 * P, Prot::READ), Err(over(Limit::AddressSpace)));
    space.map(4 * P, Prot::NONE).expect("what fits");
    assert_eq!(space.map(P, Prot::READ), Err(over(Limit::AddressSpace)));
    // In the place of what is there: two pages more than before are two pages.
    let fixed = |count| space.map_fixed(pages(at, count), Prot::READ_WRITE);
    assert_eq!(fixed(6), Ok(()));
    space.unmap(pages(at + 2 * P, 2)).expect("unmap");
    assert_eq!(fixed(6), Ok(()));
    assert_eq!(space.map(P, Prot::READ), Err(over(Limit::AddressSpace)));
    space.unmap(pages(at, 6)).expect("unmap");
    assert_eq!(space.map(7 * P, Prot::READ), Err(over(Limit::AddressSpace)));
    space
        .map(6 * P, Prot::READ)
        .expect("all that was given back");
}

#[test]
fn data_is_what_is_private_and_writable() {
    let space = limited(Limit::Data, 4);
    let at = space.map(8 * P, Prot::READ).expect("map");
    let shared = Request::anonymous(8 * P, Prot::READ_WRITE).shared();
    space.map_as(&shared).expect("shared memory");
    let stack = Request::anonymous(8 * P, Prot::READ_WRITE).with(Flags::GROWS_DOWN);
    space.map_as(&stack).expect("a stack");
    space
        .protect(pages(at, 3), Prot::READ_WRITE)
        .expect("protect");
    let reserved = space.vm().swap().reserved();
    let more = space.protect(pages(at, 5), Prot::READ_WRITE);
    assert_eq!(more, Err(over(Limit::Data)));
    assert_eq!(space.vm().swap().reserved(), reserved);
    assert_eq!(space.map(2 * P, Prot::READ_WRITE), Err(over(Limit::Data)));
    space
        .protect(pages(at, 4), Prot::READ_WRITE)
        .expect("protect");
    space.protect(pages(at, 4), Prot::READ).expect("protect");
    space.map(4 * P, Prot::READ_WRITE).expect("what fits");
    assert_eq!(space.map(P, Prot::READ_WRITE), Err(over(Limit::Data)));
}

#[test]
fn the_heap_is_limited() {
    let space = limited(Limit::Data, 4);
    space.set_break(HEAP_START + 4 * P).expect("what fits");
    let refused = space.set_break(HEAP_START + 4 * P + 1);
    assert_eq!(refused, Err(over(Limit::Data)));
    assert_eq!(space.current_break(), HEAP_START + 4 * P);
    space.set_break(HEAP_START + P).expect("less");
    space.map(3 * P, Prot::READ_WRITE).expect("what fits");
}

#[test]
fn locked_memory_is_limited() {
    let space = limited(Limit::Locked, 5);
    let at = space.map(8 * P, Prot::READ_WRITE).expect("map");
    assert_eq!(space.lock(pages(at, 6), false), Err(over(Limit::Locked)));
    space.lock(pages(at, 4), false).expect("what fits");
    space
        .lock(pages(at, 5), true)
        .expect("what was locked counts once");
    assert_eq!(space.map_as(&locked(1)), Err(Error::LockLimit));
    space.unlock(pages(at, 2)).expect("unlock");
    let more = space.map_as(&locked(2)).expect("what fits");
    assert_eq!(space.map_as(&locked(1)), Err(Error::LockLimit));
    space.unmap(pages(more, 2)).expect("unmap");
    space.map_as(&locked(2)).expect("what fits");
}

#[test]
fn remap_counts_what_is_new() {
    let space = limited(Limit::AddressSpace, 8);
    let at = space.map(4 * P, Prot::READ_WRITE).expect("map");
    let old = pages(at, 4);
    assert_eq!(
        space.remap(old, 9 * P, Move::IfNeeded),
        Err(over(Limit::AddressSpace))
    );
    assert_eq!(space.remap(old, 8 * P, Move::Never), Ok(at));
    assert_eq!(space.remap(pages(at, 8), 4 * P, Move::Never), Ok(at));
    let to = at + 64 * SLOT;
    assert_eq!(space.remap(old, 4 * P, Move::LeavingTo(to)), Ok(to));
    assert_eq!(
        space.remap(pages(to, 4), 5 * P, Move::IfNeeded),
        Err(over(Limit::AddressSpace))
    );
    let back = to + 64 * SLOT;
    assert_eq!(space.remap(pages(to, 4), 3 * P, Move::To(back)), Ok(back));
    space.map(P, Prot::READ).expect("what fits");
    assert_eq!(space.map(P, Prot::READ), Err(over(Limit::AddressSpace)));
}

#[test]
fn a_move_leaves_the_locks() {
    let space = limited(Limit::Locked, 2);
    let at = space.map_as(&locked(2)).expect("map");
    let to = at + 64 * SLOT;
    assert_eq!(
        space.remap(pages(at, 2), 2 * P, Move::LeavingTo(to)),
        Ok(to)
    );
    assert_eq!(
        space.remap(pages(to, 2), 3 * P, Move::IfNeeded),
        Err(Error::LockLimit)
    );
    assert_eq!(space.lock(pages(at, 1), false), Err(over(Limit::Locked)));
    space.unmap(pages(to, 2)).expect("unmap");
    space.lock(pages(at, 2), false).expect("what fits");
}

#[test]
fn what_is_over_a_limit_that_is_set_stays() {
    let space = space();
    let at = space.map(10 * P, Prot::READ_WRITE).expect("map");
    space
        .set_limit(Limit::AddressSpace, Some(7 * P + 1))
        .expect("a limit");
    assert_eq!(space.map(P, Prot::READ), Err(over(Limit::AddressSpace)));
    space
        .map_fixed(pages(at, 10), Prot::READ)
        .expect("no more than before");
    space.unmap(pages(at, 3)).expect("unmap");
    assert_eq!(space.map(P, Prot::READ), Err(over(Limit::AddressSpace)));
    space.unmap(pages(at + 3 * P, 2)).expect("unmap");
    assert_eq!(space.map(3 * P, Prot::READ), Err(over(Limit::AddressSpace)));
    space.map(2 * P, Prot::READ).expect("what fits");
    assert_eq!(space.map(P, Prot::READ), Err(over(Limit::AddressSpace)));
}

#[test]
fn a_child_has_the_limits_and_not_the_locks() {
    let parent = limited(Limit::AddressSpace, 6);
    parent
        .set_limit(Limit::Locked, Some(3 * P))
        .expect("a limit");
    parent.set_limit(Limit::Stack, Some(P)).expect("a limit");
    let at = parent.map_as(&locked(3)).expect("map");
    parent.lock_all(true, true, false).expect("lock");
    let child = parent.fork().expect("fork");
    for limit in [
        Limit::AddressSpace,
        Limit::Data,
        Limit::Locked,
        Limit::Stack,
    ] {
        assert_eq!(child.limit(limit), parent.limit(limit));
    }
    assert_eq!(parent.map(P, Prot::READ), Err(Error::LockLimit));
    child.map(3 * P, Prot::READ).expect("what fits, not locked");
    assert_eq!(child.map(P, Prot::READ), Err(over(Limit::AddressSpace)));
    child.lock(pages(at, 3), false).expect("nothing was locked");
    assert_eq!(parent.fork().map(|_| ()), Ok(()));
}

#[test]
fn what_is_locked_on_fault_is_not_populated() {
    let space = space();
    space.lock_all(false, true, true).expect("lock");
    let request = Request::anonymous(2 * P, Prot::READ_WRITE).populated();
    let at = space.map_as(&request).expect("map");
    assert_eq!(space.incore(pages(at, 2)), Ok(vec![false; 2]));
    space.unlock_all();
    let at = space.map_as(&request).expect("map");
    assert_eq!(space.incore(pages(at, 2)), Ok(vec![true; 2]));
}

#[test]
fn all_that_is_mapped_and_will_be_is_locked() {
    let space = space();
    let at = space.map(3 * P, Prot::READ_WRITE).expect("map");
    let none = space.map(P, Prot::NONE).expect("map");
    let invalid = space.lock_all(false, false, true);
    assert!(matches!(invalid, Err(Error::Invalid { .. })));
    space.lock_all(true, true, false).expect("lock");
    let incore = |at, count| space.incore(pages(at, count)).expect("incore");
    assert_eq!(incore(at, 3), [true; 3]);
    let later = space.map(2 * P, Prot::READ).expect("map");
    assert_eq!(incore(later, 2), [true; 2]);
    space.set_break(HEAP_START + 2 * P).expect("brk");
    assert_eq!(incore(HEAP_START, 2), [true; 2]);
    let is_locked = |space: &TestSpace| space.regions().iter().all(|r| r.flags.has(Flags::LOCKED));
    assert!(is_locked(&space));
    // Only what is there: it ends what was said of the future.
    space.lock_all(true, false, true).expect("lock");
    let loose = space.map(P, Prot::READ_WRITE).expect("map");
    assert!(!is_locked(&space));
    assert_eq!(incore(loose, 1), [false]);
    space.unlock_all();
    let any = space.regions().iter().any(|r| r.flags.has(Flags::LOCKED));
    assert!(!any);
    // Over the limit nothing changes.
    space.set_limit(Limit::Locked, Some(P)).expect("a limit");
    assert_eq!(space.lock_all(true, true, true), Err(over(Limit::Locked)));
    space.unmap(pages(none, 1)).expect("unmap");
    space.lock_all(false, true, true).expect("only the future");
    let last = space.map(P, Prot::READ_WRITE).expect("what fits");
    assert_eq!(incore(last, 1), [false], "locked when it is used");
    assert_eq!(space.map(P, Prot::READ), Err(Error::LockLimit));
    space.exec();
    space.map(2 * P, Prot::READ).expect("a new program");
}

#[test]
fn a_refusal_by_the_heap_changes_no_count() {
    let space = limited(Limit::AddressSpace, 40);
    let at = space.map(40 * P, Prot::READ_WRITE).expect("map");
    let (mut refused, mut free) = (0, 0);
    for index in (1..20).step_by(2) {
        refusing::refuse_after(1);
        let unmapped = space.unmap(pages(at + index * P, 1));
        refusing::refuse_after(0);
        match unmapped {
            Ok(()) => free += 1,
            Err(error) => {
                assert_eq!(error, Error::OutOfMemory(Resource::Heap));
                refused += 1;
            }
        }
    }
    let more = space.map((free + 1) * P, Prot::READ);
    assert_eq!(more, Err(over(Limit::AddressSpace)));
    assert!(refused > 0);
    space
        .map(free * P, Prot::READ)
        .expect("what was given back");
    for nth in 1.. {
        refusing::refuse_after(nth);
        let set = space.set_limit(Limit::Data, Some(P));
        refusing::refuse_after(0);
        if set.is_ok() {
            break;
        }
        assert_eq!(space.limit(Limit::Data), None);
    }
    space.set_limit(Limit::Data, None).expect("no limit");
    space.unmap(pages(at + 36 * P, 2)).expect("unmap");
    for nth in 1.. {
        refusing::refuse_after(nth);
        let moved = space.remap(pages(at + 30 * P, 2), 2 * P, Move::Leaving);
        refusing::refuse_after(0);
        if moved.is_ok() {
            break;
        }
        space
            .map(P, Prot::READ)
            .and_then(|at| space.unmap(pages(at, 1)))
            .expect("one is free");
    }
    assert_eq!(space.map(P, Prot::READ), Err(over(Limit::AddressSpace)));
}

/// Counts a task when it ends, also by a panic.
struct Ended(Arc<AtomicUsize>);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// Tasks that map and unmap under a limit that is enough for what they ask for at once, or
/// for one less, while the limit is set anew: none is refused, or no more fit than may.
#[test]
fn a_limit_is_exact_beside_others() {
    const TASKS: usize = 3;
    for limit in [TASKS, TASKS - 1] {
        let machine = Hosted::with_memory(TASKS + 1, 16 << 20).expect("memory");
        let vm = Vm::<Hosted, Best>::new(machine.clone());
        let space = machine.on_cpu(0, || Space::new(&vm)).expect("a space");
        let space = Arc::new(space);
        machine.on_cpu(0, || {
            space
                .set_limit(Limit::AddressSpace, Some(limit * P))
                .expect("limit")
        });
        let mapped = Arc::new(AtomicUsize::new(0));
        let ended = Arc::new(AtomicUsize::new(0));
        let refused = Arc::new(AtomicBool::new(false));
        let mapper = || {
            let (space, mapped) = (space.clone(), mapped.clone());
            let (ended, refused) = (ended.clone(), refused.clone());
            Box::new(move || {
                let _ended = Ended(ended);
                space.activate();
                for round in 0..40_000 {
                    match space.map(P, Prot::READ_WRITE) {
                        Ok(at) => {
                            let now = mapped.fetch_add(1, Ordering::SeqCst) + 1;
                            assert!(now <= limit, "{now} of {limit}");
                            if round % 7 == 0 {
                                space.store(at, 1).expect("store");
                            }
                            mapped.fetch_sub(1, Ordering::SeqCst);
                            space.unmap(pages(at, 1)).expect("unmap");
                        }
                        Err(error) => {
                            assert_eq!(error, over(Limit::AddressSpace));
                            refused.store(true, Ordering::Relaxed);
                        }
                    }
                }
            }) as Job
        };
        let setter = {
            let (space, ended) = (space.clone(), ended.clone());
            Box::new(move || {
                while ended.load(Ordering::SeqCst) < TASKS {
                    space
                        .set_limit(Limit::AddressSpace, Some(limit * P))
                        .expect("limit");
                    std::thread::yield_now();
                }
            }) as Job
        };
        let mut jobs: Vec<Job> = (0..TASKS).map(|_| mapper()).collect();
        jobs.push(setter);
        machine.execute(jobs);
        if limit == TASKS {
            assert!(!refused.load(Ordering::Relaxed), "there was room");
        }
        machine.on_cpu(0, || {
            space.map(limit * P, Prot::READ).expect("all is free again");
            drop(Arc::into_inner(space).expect("all jobs have ended"));
            assert_eq!(vm.swap().reserved(), 0);
        });
    }
}

#[test]
fn shared_memory_is_committed_as_long_as_it_lives() {
    let vm = system_with(Overcommit::Never);
    let parent = Space::new(&vm).expect("a space");
    let shared = Request::anonymous(5 * P, Prot::READ).shared();
    let at = parent.map_as(&shared).expect("map");
    assert_eq!(vm.swap().reserved(), 5);
    let child = parent.fork().expect("fork");
    assert_eq!(vm.swap().reserved(), 5);
    parent.unmap(pages(at, 5)).expect("unmap");
    assert_eq!(vm.swap().reserved(), 5);
    child.unmap(pages(at, 4)).expect("unmap");
    assert_eq!(vm.swap().reserved(), 5);
    drop(child);
    assert_eq!(vm.swap().reserved(), 0);
    let object = vm.shared_memory(3 * P as u64 + 1).expect("an object");
    assert_eq!(vm.swap().reserved(), 4);
    object.set_size(P as u64).expect("set_size");
    assert_eq!(vm.swap().reserved(), 1);
    object.write(2 * P as u64, &[1]).expect("write");
    assert_eq!(vm.swap().reserved(), 3);
    let all = 2 * vm.frames().total() as u64;
    let more = object.set_size((all + 1) * P as u64);
    assert!(matches!(more, Err(Error::OverCommit { .. })), "{more:?}");
    assert!(vm.shared_memory(all * P as u64).is_err());
    assert_eq!(vm.swap().reserved(), 3);
    drop(object);
    assert_eq!(vm.swap().reserved(), 0);
}

#[test]
fn shared_memory_that_can_not_be_made_commits_nothing() {
    let vm = system_with(Overcommit::Never);
    let mut refused = 0;
    for nth in 1.. {
        refusing::refuse_after(nth);
        let made = vm.shared_memory(3 * P as u64);
        refusing::refuse_after(0);
        match made {
            Ok(_) => break,
            Err(error) => assert_eq!(error, Error::OutOfMemory(Resource::Heap)),
        }
        assert_eq!(vm.swap().reserved(), 0);
        refused += 1;
    }
    assert!(refused > 1, "{refused} allocations");
}

#[test]
fn what_may_be_committed_is_a_choice() {
    let unreserved =
        |pages: usize| Request::anonymous(pages * P, Prot::READ_WRITE).with(Flags::NO_RESERVE);
    // A thread is a CPU of one machine.
    let each = |overcommit| {
        let vm = system_with(overcommit);
        let space = Space::new(&vm).expect("a space");
        let memory = vm.frames().total();
        let map = |pages: usize| space.map(pages * P, Prot::READ_WRITE).map(drop);
        let refused = |pages: usize| {
            let pages = pages as u64;
            Err(Error::OverCommit { pages })
        };
        let fits = |does: bool, pages| if does { Ok(()) } else { refused(pages) };
        assert_eq!(map(memory), Ok(()));
        assert_eq!(
            map(memory + 1),
            fits(overcommit == Overcommit::Always, memory + 1)
        );
        assert_eq!(map(memory), Ok(()));
        assert_eq!(map(memory), fits(overcommit != Overcommit::Never, memory));
        let committed = match overcommit {
            Overcommit::Never => 2 * memory,
            Overcommit::Heuristic => 3 * memory,
            Overcommit::Always => 4 * memory + 1,
        };
        assert_eq!(vm.swap().reserved(), committed as u64);
        let honoured = space.map_as(&unreserved(4 * memory)).map(drop);
        assert_eq!(honoured, fits(overcommit != Overcommit::Never, 4 * memory));
        assert_eq!(vm.swap().reserved(), committed as u64);
        let child = space.fork().map(drop);
        assert_eq!(child.is_ok(), overcommit != Overcommit::Never);
        assert_eq!(vm.swap().reserved(), committed as u64);
        drop(space);
        assert_eq!(vm.swap().reserved(), 0);
    };
    for overcommit in [Overcommit::Never, Overcommit::Heuristic, Overcommit::Always] {
        std::thread::scope(|scope| scope.spawn(|| each(overcommit)).join()).expect("no panic");
    }
}

#[test]
fn committed_memory_is_exact_whatever_happens() {
    let space = space();
    let vm = space.vm().clone();
    let reserved = || vm.swap().reserved();
    let at = space.map(600 * P, Prot::READ).expect("map");
    assert_eq!(reserved(), 0);
    space
        .protect(pages(at + 500 * P, 50), Prot::READ_WRITE)
        .expect("protect");
    space
        .protect(pages(at + 520 * P, 10), Prot::READ)
        .expect("protect");
    assert_eq!(reserved(), 50, "what was charged once stays so");
    let child = space.fork().expect("fork");
    assert_eq!(reserved(), 100);
    child.unmap(pages(at + 510 * P, 30)).expect("unmap");
    assert_eq!(reserved(), 70);
    let old = pages(at + 530 * P, 20);
    let to = space.remap(old, 40 * P, Move::IfNeeded).expect("remap");
    assert_eq!(reserved(), 90);
    let hole = Request::anonymous(5 * P, Prot::READ).at(At::Fixed(to));
    space.map_as(&hole).expect("map");
    assert_eq!(reserved(), 85);
    drop(child);
    assert_eq!(reserved(), 65);
    drop(space);
    assert_eq!(reserved(), 0);
}

/// Any mixture of operations: no limit is passed, nothing is refused that fits, and what is
/// counted is what is there.
#[test]
fn limits_are_exact_whatever_happens() {
    const LIMITS: [(Limit, u64); 3] = [
        (Limit::AddressSpace, 60),
        (Limit::Data, 30),
        (Limit::Locked, 12),
    ];
    let mut space = space();
    let set = |space: &TestSpace| {
        for (limit, pages) in LIMITS {
            space
                .set_limit(limit, Some(pages as usize * P))
                .expect("a limit");
        }
    };
    set(&space);
    let vm = space.vm().clone();
    let shared = vm.shared_memory(20 * P as u64).expect("an object");
    let mut state = 88_172_645_463_325_252_u64;
    let mut random = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 33) as usize % below
    };
    let (mut refused, mut done) = (0, 0);
    for _ in 0..6_000 {
        // Two slots, so that ranges cross from one to the other.
        let at = (1 << 40) + SLOT - 40 * P + random(70) * P;
        let range = pages(at, 1 + random(20));
        let prot = [Prot::NONE, Prot::READ, Prot::READ_WRITE][random(3)];
        let fixed = Request::anonymous(range.len(), prot).at(At::Fixed(at));
        let result = match random(12) {
            0 | 1 => space.map_as(&fixed).map(drop),
            2 => space.map_as(&fixed.with(Flags::LOCKED)).map(drop),
            3 => {
                let object = Request::object(&shared, 0, range.len(), prot).expect("a request");
                space.map_as(&object.shared().at(At::Fixed(at))).map(drop)
            }
            4 => space.unmap(range),
            5 => space.protect(range, prot),
            6 => space.lock(range, random(2) == 0),
            7 => space.unlock(range),
            8 => space.set_break(HEAP_START + random(20) * P),
            9 => {
                let to = (1 << 40) + SLOT - 40 * P + random(70) * P;
                let how = [Move::IfNeeded, Move::To(to), Move::Leaving][random(3)];
                space.remap(range, (1 + random(20)) * P, how).map(drop)
            }
            10 if random(40) == 0 => {
                space = space.fork().expect("fork");
                Ok(())
            }
            _ => space.lock_all(random(2) == 0, random(4) == 0, true),
        };
        match result {
            Err(Error::OverLimit(_) | Error::LockLimit) => refused += 1,
            Ok(()) => done += 1,
            Err(_) => {}
        }
        let usage = space.stats().usage;
        let used = [usage.mapped, usage.data, usage.locked];
        for ((limit, most), used) in LIMITS.into_iter().zip(used) {
            assert!(used <= most, "{limit:?}: {used} pages");
        }
        assert_eq!(space.vm().swap().reserved(), usage.charged + 20);
        if random(30) == 0 {
            space.unlock_all();
            probe(&space, (LIMITS[0].1 - usage.mapped) as usize);
        }
    }
    drop((space, shared));
    assert_eq!(vm.swap().reserved(), 0);
    assert!(
        refused > 300 && done > 1_000,
        "{refused} refused, {done} done"
    );
}

/// As many pages may be mapped as are `left`, and no more.
#[track_caller]
fn probe(space: &TestSpace, left: usize) {
    let more = space.map((left + 1) * P, Prot::READ);
    assert_eq!(more, Err(over(Limit::AddressSpace)));
    if left > 0 {
        let all = space.map(left * P, Prot::READ).expect("what fits");
        space.unmap(pages(all, left)).expect("unmap");
    }
}
