//! Many CPUs at once where superpages come and go: faults fill slots, others unmap, protect,
//! discard and fork them, remove pages by the reverse map, and look whether they were used.

use hosted::Hosted;
use machine::{Execute, Job, PAGE_SIZE, Topology, VaRange};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use vm::pager::MemoryPager;
use vm::swap::SwapSpace;
use vm::system::Reservation;
use vm::{Best, Error, Options, Prot, Resource, Space, Superpages, Vm};

const HUGE: usize = 2 << 20;
const PAGES: usize = HUGE / PAGE_SIZE;
const SLOTS: usize = 2;
const AT: usize = 1 << 42;
const ROUNDS: usize = 24;

struct World {
    machine: Hosted,
    vm: Arc<Vm<Best<Hosted>>>,
    space: Space<Best<Hosted>>,
    stop: AtomicBool,
    /// How often a task saw a superpage.
    seen: AtomicUsize,
}

fn world(cpus: usize, mib: usize, slots: u32) -> Arc<World> {
    let machine = Hosted::with_memory(cpus, mib << 20).expect("memory");
    let swap = |slots| {
        let swap = SwapSpace::new(machine.cpus(), Box::new(MemoryPager::new()), slots);
        Arc::new(swap.expect("a swap space"))
    };
    let options = Options {
        superpages: Superpages::Always,
        swap_space: (slots > 0).then(|| swap(slots)),
        ..Options::default()
    };
    let vm = Vm::<Best<Hosted>>::with_options(machine.clone(), options).expect("memory for the VM");
    let space = machine.on_cpu(0, || Space::new(&vm)).expect("a space");
    Arc::new(World {
        machine,
        vm,
        space,
        stop: AtomicBool::new(false),
        seen: AtomicUsize::new(0),
    })
}

/// Takes the world apart on a CPU, and sees that nothing is left.
fn end(world: Arc<World>) {
    let world = Arc::into_inner(world).expect("all jobs have ended");
    let World {
        machine,
        vm,
        space,
        seen,
        ..
    } = world;
    machine.on_cpu(0, || {
        drop(space);
        let frames = vm.frames();
        assert_eq!(frames.free_count(), frames.total(), "frames leaked");
        assert_eq!(vm.swap().reserved(), 0, "swap leaked");
    });
    assert!(seen.into_inner() > 0, "no superpage was ever seen");
}

fn whole() -> VaRange {
    VaRange::sized(AT, SLOTS * HUGE)
}

fn at(page: usize) -> usize {
    AT + page * PAGE_SIZE
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
fn filler(world: &World, step: usize) {
    world.space.activate();
    while !world.stop.load(Ordering::Relaxed) {
        for index in 0..SLOTS * PAGES {
            let address = at(index * step % (SLOTS * PAGES));
            may_fail(world.space.store(address, address as u64));
            if let Some(value) = may_fail(world.space.load(address)) {
                assert!(
                    value == 0 || value == address as u64,
                    "{value:#x} at {address:#x}"
                );
            }
        }
        world
            .seen
            .fetch_add(world.space.pmap().superpages(), Ordering::Relaxed);
    }
}

/// Removes pages, and looks at them; not before there was a superpage: pages that went out come
/// back to frames of no reservation, and little memory may then never have a whole block again.
fn reclaimer(world: &World) {
    while world.seen.load(Ordering::Relaxed) == 0 && !world.stop.load(Ordering::Relaxed) {
        std::thread::yield_now();
    }
    let mut page = 0;
    while !world.stop.load(Ordering::Relaxed) {
        page = (page + 97) % (SLOTS * PAGES);
        let frame = world.space.pmap().lookup(at(page));
        if let Some(hold) = frame.and_then(|frame| world.vm.hold(frame)) {
            match page % 64 {
                0 if world.vm.swap_space().is_some() => drop(world.vm.reclaim(16)),
                0 => drop(world.vm.remove_all(&hold)),
                _ => drop(world.vm.test_referenced(&hold)),
            }
        }
    }
}

/// Changes the mappings, as a whole and in parts.
fn changer(world: &World) {
    let space = &world.space;
    space.activate();
    for round in 0..ROUNDS {
        may_fail(space.map_fixed(whole(), Prot::READ_WRITE));
        // Until there is one; once there was, not for long: the others may have taken the frames
        // it needs.
        let patience = match world.seen.load(Ordering::Relaxed) {
            0 => 20_000,
            _ => 50,
        };
        for _ in 0..patience {
            if space.pmap().superpages() > 0 {
                world.seen.fetch_add(1, Ordering::Relaxed);
                break;
            }
            std::thread::yield_now();
        }
        let part = VaRange::sized(at(round * 31 % PAGES), 3 * PAGE_SIZE);
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
    world.stop.store(true, Ordering::Relaxed);
}

fn run(mib: usize, slots: u32) {
    let world = world(4, mib, slots);
    let tasks: [fn(&World); 4] = [
        |world| filler(world, 1),
        |world| filler(world, 2 * PAGES - 1),
        reclaimer,
        changer,
    ];
    let jobs = tasks.map(|task| {
        let world = Arc::clone(&world);
        Box::new(move || task(&world)) as Job
    });
    let machine = world.machine.clone();
    machine.execute(jobs.into());
    end(world);
}

#[test]
fn superpages_come_and_go_under_everybodys_hands() {
    run(64, 0);
}

/// So little memory that reservations must give way, and calls fail.
#[test]
fn memory_is_short() {
    run(7, 0);
}

/// As before, but pages go to the swap space and come back.
#[test]
fn pages_go_out_and_come_back() {
    run(8, 8_192);
}
