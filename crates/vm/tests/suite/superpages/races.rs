//! Many CPUs at once where superpages come and go: faults fill slots, others unmap, protect,
//! discard and fork them, remove pages by the reverse map, and ask if they were used.

use super::{AT, PAGES, at};
use crate::world::{SLOT, System, TestSpace, World, nothing_left, pages, world};
use machine::{Execute, Job, VaRange};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use vm::{Error, Prot, Resource, Space};

const SLOTS: usize = 2;
const ROUNDS: usize = 24;

struct Shared {
    vm: System,
    space: TestSpace,
    stop: AtomicBool,
    /// How often a task saw a superpage.
    seen: AtomicUsize,
}

fn shared(world: World) -> Arc<Shared> {
    let vm = world.cpus(4).superpages().apart();
    let space = vm.machine().on_cpu(0, || Space::new(&vm)).expect("a space");
    Arc::new(Shared {
        vm,
        space,
        stop: AtomicBool::new(false),
        seen: AtomicUsize::new(0),
    })
}

/// Takes the shared apart on a CPU, and sees that nothing is left.
fn end(shared: Arc<Shared>) {
    let shared = Arc::into_inner(shared).expect("all jobs have ended");
    let Shared {
        vm, space, seen, ..
    } = shared;
    vm.machine().on_cpu(0, || {
        drop(space);
        nothing_left(&vm);
    });
    assert!(seen.into_inner() > 0, "no superpage was ever seen");
}

fn whole() -> VaRange {
    VaRange::sized(AT, SLOTS * SLOT)
}

/// The outcomes of an access while others change the mappings.
fn may_fail<T>(result: Result<T, Error>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(Error::Segv(_) | Error::NotMapped { .. } | Error::OutOfMemory(Resource::Frames)) => {
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Stores each page's own address in it. A page holds that, or 0.
fn filler(shared: &Shared, step: usize) {
    shared.space.activate();
    while !shared.stop.load(Ordering::Relaxed) {
        for index in 0..SLOTS * PAGES {
            let address = at(index * step % (SLOTS * PAGES));
            may_fail(shared.space.store(address, address as u64));
            if let Some(value) = may_fail(shared.space.load(address)) {
                assert!(
                    value == 0 || value == address as u64,
                    "{value:#x} at {address:#x}"
                );
            }
        }
        let now = shared.space.pmap().superpages();
        shared.seen.fetch_add(now, Ordering::Relaxed);
    }
}

/// Removes pages, and looks at them; not before there was a superpage: pages that went out come
/// back to frames of no reservation, and little memory may then never have a whole block again.
fn reclaimer(shared: &Shared) {
    while shared.seen.load(Ordering::Relaxed) == 0 && !shared.stop.load(Ordering::Relaxed) {
        std::thread::yield_now();
    }
    let mut page = 0;
    while !shared.stop.load(Ordering::Relaxed) {
        page = (page + 97) % (SLOTS * PAGES);
        let frame = shared.space.pmap().lookup(at(page));
        if let Some(hold) = frame.and_then(|frame| shared.vm.hold(frame)) {
            match page % 64 {
                0 if shared.vm.swap_slots().is_some() => drop(shared.vm.reclaim(16)),
                0 => drop(shared.vm.remove_all(&hold)),
                _ => drop(shared.vm.test_referenced(&hold)),
            }
        }
    }
}

/// Changes the mappings, as a whole and in parts.
fn changer(shared: &Shared) {
    let space = &shared.space;
    space.activate();
    for round in 0..ROUNDS {
        may_fail(space.map_fixed(whole(), Prot::READ_WRITE));
        // Until there is one; once there was, not for long: the others may have taken the frames
        // it needs.
        let patience = match shared.seen.load(Ordering::Relaxed) {
            0 => 20_000,
            _ => 50,
        };
        for _ in 0..patience {
            if space.pmap().superpages() > 0 {
                shared.seen.fetch_add(1, Ordering::Relaxed);
                break;
            }
            std::thread::yield_now();
        }
        let part = pages(at(round * 31 % PAGES), 3);
        match round % 6 {
            0 => drop(may_fail(space.protect(part, Prot::READ))),
            1 => drop(may_fail(space.discard(part))),
            2 => drop(may_fail(space.unmap(part))),
            3 => {
                may_fail(space.protect(whole(), Prot::READ));
                may_fail(space.protect(whole(), Prot::READ_WRITE));
            }
            4 => drop(may_fail(space.fork())),
            _ => drop(may_fail(space.unmap(whole()))),
        }
    }
    shared.stop.store(true, Ordering::Relaxed);
}

fn run(world: World) {
    let shared = shared(world);
    let tasks: [fn(&Shared); 4] = [
        |shared| filler(shared, 1),
        |shared| filler(shared, 2 * PAGES - 1),
        reclaimer,
        changer,
    ];
    let jobs = tasks.map(|task| {
        let shared = Arc::clone(&shared);
        Box::new(move || task(&shared)) as Job
    });
    shared.vm.machine().execute(jobs.into());
    end(shared);
}

#[test]
fn superpages_come_and_go_under_everybodys_hands() {
    run(world(64));
}

/// So little memory that reservations must give way, and calls fail.
#[test]
fn memory_is_short() {
    run(world(7));
}

/// As before, but pages go to the swap space and come back.
#[test]
fn pages_go_out_and_come_back() {
    run(world(8).swap(8_192));
}
