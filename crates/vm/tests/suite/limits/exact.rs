//! Both are exact with concurrent operations, and whatever happens.

use super::*;
use crate::dice::Dice;

/// Counts a task when it ends, also by a panic.
struct Ended(Arc<AtomicUsize>);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// Tasks that map and unmap under a limit that is enough for all their requests at once, or
/// for one less, while the limit is set anew: none is refused, or no more fit than may.
#[test]
fn a_limit_is_exact_beside_others() {
    const TASKS: usize = 3;
    for limit in [TASKS, TASKS - 1] {
        let vm = world(16).cpus(TASKS + 1).apart();
        let machine = vm.machine();
        let space = machine.on_cpu(0, || Space::new(&vm)).expect("a space");
        let space = Arc::new(space);
        machine.on_cpu(0, || {
            let set = space.set_limit(Limit::AddressSpace, Some(limit * P));
            set.expect("limit");
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
                    let set = space.set_limit(Limit::AddressSpace, Some(limit * P));
                    set.expect("limit");
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
            assert_eq!(reserved(&vm), 0);
        });
    }
}

#[test]
fn committed_memory_is_exact_whatever_happens() {
    let space = space();
    let vm = space.vm().clone();
    let reserved = || reserved(&vm);
    let at = space.map(600 * P, Prot::READ).expect("map");
    assert_eq!(reserved(), 0);
    space
        .protect(pages(at + 500 * P, 50), Prot::READ_WRITE)
        .expect("protect");
    space
        .protect(pages(at + 520 * P, 10), Prot::READ)
        .expect("protect");
    assert_eq!(reserved(), 50, "a charge that was made stays");
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

/// Any mixture of operations: no limit is passed, nothing is refused that fits, and the
/// counts agree with the mappings.
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
            let set = space.set_limit(limit, Some(pages as usize * P));
            set.expect("a limit");
        }
    };
    set(&space);
    let vm = space.vm().clone();
    let shared = vm.shared_memory(20 * P as u64).expect("an object");
    let mut dice = Dice(88_172_645_463_325_252);
    let mut random = move |below: usize| dice.below(below as u64) as usize;
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
            6 => {
                let bring = [Bring::Now, Bring::OnFault][random(2)];
                space.lock(range, bring)
            }
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
            _ => {
                let which = Mappings {
                    current: random(2) == 0,
                    future: random(4) == 0,
                };
                space.lock_all(which, Bring::OnFault)
            }
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
        assert_eq!(reserved(space.vm()), usage.charged + 20);
        if random(30) == 0 {
            space.unlock_all();
            probe(&space, (LIMITS[0].1 - usage.mapped) as usize);
        }
    }
    drop((space, shared));
    assert_eq!(reserved(&vm), 0);
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
        let all = space.map(left * P, Prot::READ).expect("this fits");
        space.unmap(pages(all, left)).expect("unmap");
    }
}
