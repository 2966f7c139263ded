//! Many CPUs at once: faults, unmaps, protections and pageouts in one space. Hosted TLBs
//! keep stale entries as real ones do, so an access that should fault and does not, or
//! a frame that is freed while a CPU can reach it, shows.

use crate::world::{P, System, TestSpace, is_segv, nothing_left, pages, world};
use machine::{Execute, Job, Mmu};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use vm::{At, Error, Prot, Request, Space};

const WORKERS: usize = 4;
const ROUNDS: u64 = 300;
const PAGES: usize = 6;

struct Shared {
    vm: System,
    space: TestSpace,
}

fn shared(cpus: usize) -> Arc<Shared> {
    let vm = world(64).cpus(cpus).apart();
    let space = vm.machine().on_cpu(0, || Space::new(&vm)).expect("a space");
    Arc::new(Shared { vm, space })
}

/// Takes the shared apart on a CPU, and sees that nothing is left.
fn end(shared: Arc<Shared>) {
    let shared = Arc::into_inner(shared).expect("all jobs have ended");
    let Shared { vm, space } = shared;
    vm.machine().on_cpu(0, || {
        drop(space);
        nothing_left(&vm);
    });
}

/// Maps, writes, reads back, takes rights and pages away; then the accesses must fault.
fn worker(shared: &Shared, id: u64) {
    let (space, machine) = (&shared.space, shared.vm.machine());
    space.activate();
    for round in 0..ROUNDS {
        let value = |page: usize| id << 48 | round << 16 | page as u64;
        let at = space.map(PAGES * P, Prot::READ_WRITE).expect("map");
        let page = |page: usize| at + page * P;
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
        space.protect(pages(at, 1), Prot::READ).expect("protect");
        assert!(is_segv(space.store(at, 0)));
        space.unmap(pages(at, PAGES)).expect("unmap");
        // Others may map the addresses again at once, but no other task uses this TLB: it
        // must not give the old pages.
        for index in 0..PAGES {
            assert_ne!(
                // SAFETY: the CPU translates by tables that stay during the call.
                unsafe { machine.load(page(index)) },
                Ok(value(index)),
                "a stale entry"
            );
        }
    }
}

#[test]
fn spaces_are_worked_on_from_all_sides() {
    let shared = shared(WORKERS);
    let jobs = (0..WORKERS as u64).map(|id| {
        let shared = Arc::clone(&shared);
        Box::new(move || worker(&shared, id + 1)) as Job
    });
    shared.vm.machine().execute(jobs.collect());
    end(shared);
}

/// One task scans while the others map, write and unmap. It always sees the regions that nobody
/// changes, in order and with all of their pages; of the others no more pages than were written.
#[test]
fn a_scan_sees_what_stays_while_the_rest_changes() {
    const STAY: usize = 5;
    let shared = shared(WORKERS);
    let kept: Vec<usize> = shared.vm.machine().on_cpu(0, || {
        shared.space.activate();
        let place = |number| (1 << 42) + number * 700 * P;
        let keep = |number| {
            let request = Request::anonymous(600 * P, Prot::READ_WRITE);
            let at = At::Fixed(place(number));
            let start = shared.space.map_as(&request.at(at)).expect("map");
            for page in 0..=number {
                shared
                    .space
                    .store(start + page * 100 * P, 1)
                    .expect("store");
            }
            start
        };
        (0..STAY).map(keep).collect()
    });
    let working = Arc::new(AtomicUsize::new(WORKERS - 1));
    let mut jobs: Vec<Job> = Vec::new();
    for id in 1..WORKERS as u64 {
        let (shared, working) = (Arc::clone(&shared), Arc::clone(&working));
        jobs.push(Box::new(move || {
            worker(&shared, id);
            working.fetch_sub(1, Ordering::Relaxed);
        }));
    }
    let (scanned, left) = (Arc::clone(&shared), Arc::clone(&working));
    jobs.push(Box::new(move || {
        while left.load(Ordering::Relaxed) > 0 {
            let (mut from, mut seen) = (0, Vec::new());
            loop {
                let piece = scanned.space.scan(from, 2).expect("memory");
                let Some(last) = piece.last() else { break };
                assert!(piece[0].region.range.start >= from, "in order");
                from = last.region.range.end;
                for one in piece {
                    match kept.contains(&one.region.range.start) {
                        true => seen.push((one.region.range, one.resident)),
                        false => assert!(one.resident <= one.region.range.pages() as u64),
                    }
                }
            }
            let stay = kept.iter().zip(1..);
            let stay: Vec<_> = stay.map(|(&at, count)| (pages(at, 600), count)).collect();
            assert_eq!(seen, stay);
        }
    }));
    shared.vm.machine().execute(jobs);
    end(shared);
}

/// Faulters touch the pages of a common range while one task unmaps and maps it anew and
/// another removes pages by the reverse map. Each page holds 0 or the value stored.
#[test]
fn faults_unmaps_and_pageouts_meet() {
    const FAULTERS: usize = 2;
    let shared = shared(FAULTERS + 2);
    let range = pages(1 << 42, PAGES);
    let stop = Arc::new(AtomicBool::new(false));
    let mut jobs: Vec<Job> = Vec::new();
    for _ in 0..FAULTERS {
        let (shared, stop) = (Arc::clone(&shared), Arc::clone(&stop));
        jobs.push(Box::new(move || {
            let space = &shared.space;
            space.activate();
            let mut round = 0;
            while !stop.load(Ordering::Relaxed) {
                let address = range.start + round % PAGES * P;
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
        let (shared, stop) = (Arc::clone(&shared), Arc::clone(&stop));
        jobs.push(Box::new(move || {
            shared.space.activate();
            while !stop.load(Ordering::Relaxed) {
                for address in (range.start..range.end).step_by(P) {
                    let frame = shared.space.pmap().lookup(address);
                    if let Some(hold) = frame.and_then(|frame| shared.vm.hold(frame)) {
                        shared.vm.remove_all(&hold);
                    }
                }
            }
        }));
    }
    {
        let shared = Arc::clone(&shared);
        jobs.push(Box::new(move || {
            let space = &shared.space;
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
    shared.vm.machine().execute(jobs);
    end(shared);
}
