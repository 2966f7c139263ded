//! Many CPUs at once: faults, unmaps, protections and pageouts in one space. Hosted TLBs
//! keep stale entries as real ones do, so an access that should fault and does not, or
//! a frame that is freed while a CPU can reach it, shows.

use hosted::Hosted;
use machine::{Execute, Job, Mmu, PAGE_SIZE, VaRange};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use vm::system::Reservation;
use vm::{Best, Error, Prot, Space, Vm};

const WORKERS: usize = 4;
const ROUNDS: u64 = 300;
const PAGES: usize = 6;

type TestSpace = Space<Best<Hosted>>;

struct World {
    machine: Hosted,
    vm: Arc<Vm<Best<Hosted>>>,
    space: TestSpace,
}

fn world(cpus: usize) -> Arc<World> {
    let machine = Hosted::with_memory(cpus, 64 << 20).expect("memory");
    let vm = Vm::<Best<Hosted>>::new(machine.clone()).expect("memory for the VM");
    let space = machine.on_cpu(0, || Space::new(&vm)).expect("a space");
    Arc::new(World { machine, vm, space })
}

/// Takes the world apart on a CPU, and sees that nothing is left.
fn end(world: Arc<World>) {
    let world = Arc::into_inner(world).expect("all jobs have ended");
    let World { machine, vm, space } = world;
    machine.on_cpu(0, || {
        drop(space);
        assert_eq!(
            vm.frames().free_count(),
            vm.frames().total(),
            "frames leaked"
        );
        assert_eq!(vm.swap().reserved(), 0, "swap leaked");
    });
}

/// Maps, writes, reads back, takes rights and pages away; then the accesses must fault.
fn worker(world: &World, id: u64) {
    let (space, machine) = (&world.space, &world.machine);
    space.activate();
    for round in 0..ROUNDS {
        let value = |page: usize| id << 48 | round << 16 | page as u64;
        let at = space.map(PAGES * PAGE_SIZE, Prot::READ_WRITE).expect("map");
        let page = |page: usize| at + page * PAGE_SIZE;
        for index in 0..PAGES {
            assert_eq!(space.load(page(index)), Ok(0), "another owner's page");
            space.store(page(index), value(index)).expect("store");
        }
        for index in 0..PAGES {
            assert_eq!(
                space.load(page(index)),
                Ok(value(index)),
                "written by another"
            );
        }
        space
            .protect(VaRange::sized(at, PAGE_SIZE), Prot::READ)
            .expect("protect");
        assert!(matches!(space.store(at, 0), Err(Error::Segv(_))));
        space
            .unmap(VaRange::sized(at, PAGES * PAGE_SIZE))
            .expect("unmap");
        // Others may map the addresses again at once, but no other task uses this TLB: it
        // must not give the old pages.
        for index in 0..PAGES {
            assert_ne!(machine.load(page(index)), Ok(value(index)), "a stale entry");
        }
    }
}

#[test]
fn spaces_are_worked_on_from_all_sides() {
    let world = world(WORKERS);
    let jobs = (0..WORKERS as u64).map(|id| {
        let world = Arc::clone(&world);
        Box::new(move || worker(&world, id + 1)) as Job
    });
    let machine = world.machine.clone();
    machine.execute(jobs.collect());
    end(world);
}

/// Faulters touch the pages of a common range while one task unmaps and maps it anew and
/// another removes pages by the reverse map. Each page holds 0 or the value stored.
#[test]
fn faults_unmaps_and_pageouts_meet() {
    const FAULTERS: usize = 2;
    let world = world(FAULTERS + 2);
    let range = VaRange::sized(1 << 42, PAGES * PAGE_SIZE);
    let stop = Arc::new(AtomicBool::new(false));
    let mut jobs: Vec<Job> = Vec::new();
    for _ in 0..FAULTERS {
        let (world, stop) = (Arc::clone(&world), Arc::clone(&stop));
        jobs.push(Box::new(move || {
            let space = &world.space;
            space.activate();
            let mut round = 0;
            while !stop.load(Ordering::Relaxed) {
                let address = range.start + round % PAGES * PAGE_SIZE;
                round += 1;
                match space.store(address, address as u64) {
                    Ok(()) | Err(Error::Segv(_)) => {}
                    Err(error) => panic!("{error}"),
                }
                match space.load(address) {
                    Ok(value) => assert!(value == 0 || value == address as u64, "{value:#x}"),
                    Err(Error::Segv(_)) => {}
                    Err(error) => panic!("{error}"),
                }
            }
        }));
    }
    {
        let (world, stop) = (Arc::clone(&world), Arc::clone(&stop));
        jobs.push(Box::new(move || {
            world.space.activate();
            while !stop.load(Ordering::Relaxed) {
                for address in (range.start..range.end).step_by(PAGE_SIZE) {
                    let frame = world.space.pmap().lookup(address);
                    if let Some(hold) = frame.and_then(|frame| world.vm.hold(frame)) {
                        world.vm.remove_all(&hold);
                    }
                }
            }
        }));
    }
    {
        let world = Arc::clone(&world);
        jobs.push(Box::new(move || {
            let space = &world.space;
            space.activate();
            for _ in 0..ROUNDS {
                space.map_fixed(range, Prot::READ_WRITE).expect("map");
                std::thread::yield_now();
                space.protect(range, Prot::READ).expect("protect");
                space.discard(range).expect("discard");
                space.unmap(range).expect("unmap");
            }
            stop.store(true, Ordering::Relaxed);
        }));
    }
    let machine = world.machine.clone();
    machine.execute(jobs);
    end(world);
}
