//! Stores of pages on simulated machines, and the time they take.

use crate::support;

use machine::{
    Atomic, Clock, Frame, Job, Memory, Ordering, PAGE_SIZE, Pager, PagerError, Tasks, Topology,
    conformance,
};
use sim::{Disk, Options, Sim, Times, compute};
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex};
use support::{Jobs, finish, profile};
use vm::pager::MemoryPager;
use vm::swap::{Eviction, SwapIn, SwapSpace};

const LATENCY: u64 = 80_000;
const PAGE: u64 = 2_000;

fn machine(lookahead: bool) -> Sim {
    Sim::new(Options {
        memory: 64 * PAGE_SIZE,
        lookahead,
        ..Options::new(profile("freebsd-96"))
    })
    .expect("address space")
}

/// Takes no time of its own.
struct Nothing;

impl Pager<Sim> for Nothing {
    unsafe fn read(&self, _: &Sim, _: u64, _: &[Frame]) -> Result<(), PagerError> {
        Ok(())
    }

    unsafe fn write(&self, _: &Sim, _: u64, _: &[Frame], _: usize) -> Result<(), PagerError> {
        Err(PagerError { errno: 5 })
    }
}

/// The cost of blocking and waking, without the disk's.
fn overhead() -> u64 {
    profile("freebsd-96").kernel.wake / 1000
}

#[test]
fn a_disk_keeps_pages() {
    let sim = machine(true);
    let pager = sim.on_cpu(0, || Arc::new(Disk::new(MemoryPager::new(), LATENCY, PAGE)));
    conformance::pager(&sim, pager.clone());
    conformance::truncation(&sim, pager.clone());
    assert!(pager.pager().counts().writes > 0);
    sim.on_cpu(0, move || drop(pager));
}

#[test]
fn a_store_in_memory_keeps_pages() {
    let sim = machine(true);
    let pager = sim.on_cpu(0, || Arc::new(MemoryPager::<Sim>::new()));
    conformance::pager(&sim, pager.clone());
    sim.on_cpu(0, move || drop(pager));
}

/// Nanoseconds that a call takes in addition to `overhead`.
fn time(call: impl FnOnce(&Sim, &Disk<Nothing>, &[Frame]) + Send + 'static) -> u64 {
    let sim = machine(true);
    let handle = sim.clone();
    sim.on_cpu(0, move || {
        let frames: Vec<Frame> = (0..8).map(Frame).collect();
        let disk = Disk::new(Nothing, LATENCY, PAGE);
        let before = Sim::now();
        call(&handle, &disk, &frames);
        Sim::now() - before - overhead()
    })
}

#[test]
fn calls_take_their_time() {
    let read = |pages: usize| {
        time(move |sim, disk, frames| {
            // SAFETY: the frames are the test's.
            unsafe { disk.read(sim, 0, &frames[..pages]) }.expect("read");
        })
    };
    assert_eq!(read(1), LATENCY + PAGE);
    assert_eq!(read(8), LATENCY + 8 * PAGE);
    let failed = time(|sim, disk, frames| {
        // SAFETY: the frames are the test's.
        let error = unsafe { disk.write(sim, 0, frames, PAGE_SIZE + 1) };
        assert_eq!(error, Err(PagerError { errno: 5 }));
    });
    assert_eq!(failed, LATENCY + 2 * PAGE);
}

#[test]
fn outside_of_cpus_time_stands_still() {
    let sim = machine(true);
    let disk = Disk::new(Nothing, LATENCY, PAGE);
    // SAFETY: the frames are the test's.
    unsafe { disk.read(&sim, 0, &[Frame(0)]) }.expect("read");
    assert_eq!(sim.time(), 0);
}

/// The times at which CPUs that start to read four pages at the same time have them, and the other
/// observations.
fn queue(lookahead: bool) -> (Vec<u64>, Vec<Times>) {
    const CPUS: usize = 3;
    let sim = machine(lookahead);
    let disk = Arc::new(Disk::new(Nothing, LATENCY, PAGE));
    let ends = Arc::new(Mutex::new(vec![0; CPUS]));
    let job = |cpu: usize| {
        let (sim, disk, ends) = (sim.clone(), disk.clone(), ends.clone());
        Box::new(move || {
            // SAFETY: the frames are the test's.
            unsafe { disk.read(&sim, 0, &[0, 1, 2, 3].map(Frame)) }.expect("read");
            ends.lock().expect("no job panics")[cpu] = Sim::now() - overhead();
        }) as Job
    };
    let jobs: Jobs = (0..CPUS).map(|cpu| (cpu, job(cpu))).collect();
    finish(&sim, jobs);
    let ends = ends.lock().expect("no job panics").clone();
    (ends, sim.times())
}

/// Pages move one after the other, latencies overlap.
#[test]
fn calls_queue() {
    let (ends, times) = queue(true);
    let expected = [1, 2, 3].map(|call| LATENCY + 4 * PAGE * call);
    assert_eq!(ends, expected);
    assert!(times[2].parked >= LATENCY * 1000, "the task is blocked");
    assert_eq!((ends, times), queue(false), "not deterministic");
}

/// A task that waits for a disk is not woken by an unpark, and does not lose it.
#[test]
fn a_permit_waits_for_the_disk() {
    let sim = machine(true);
    let sleeper = Arc::new(Mutex::new(None));
    let (name, handle) = (sleeper.clone(), sim.clone());
    let reader = Box::new(move || {
        *name.lock().expect("no job panics") = Some(Sim::current_task());
        let disk = Disk::new(Nothing, LATENCY, PAGE);
        // SAFETY: the frames are the test's.
        unsafe { disk.read(&handle, 0, &[Frame(0)]) }.expect("read");
        assert!(Sim::now() >= LATENCY, "woken too early");
        // Without the permit it would last forever.
        Sim::park();
    }) as Job;
    let waker = Box::new(move || {
        compute(LATENCY as f64 / 2.0);
        let task = *sleeper.lock().expect("no job panics");
        Sim::unpark(task.expect("it has begun"));
    }) as Job;
    finish(&sim, vec![(0, reader), (1, waker)]);
}

/// CPUs that want one swapped-out page: one reads it, the others sleep until it is there.
#[test]
fn who_waits_for_a_page_sleeps() {
    const CPUS: usize = 6;
    const SLOT: u32 = 0;
    let sim = machine(true);
    let handle = sim.clone();
    let space = sim.on_cpu(0, move || {
        let disk = Box::new(Disk::new(MemoryPager::new(), LATENCY, PAGE));
        let space = SwapSpace::new(handle.cpus(), disk, 100).expect("a table");
        let frame = Frame(0);
        // SAFETY: the frame is the test's.
        unsafe { handle.word(frame, 9) }.store(7, Ordering::Relaxed);
        assert_eq!(space.allocate(&[frame]), Some(SLOT..SLOT + 1));
        // SAFETY: the frames are the test's.
        unsafe { space.write(&handle, SLOT, &[frame]) }.expect("written");
        assert_eq!(space.uncache(SLOT, frame, || true), Eviction::Evicted);
        Arc::new(space)
    });
    let begin = sim.time();
    let loads = Arc::new(AtomicUsize::new(0));
    let job = |cpu: u32| {
        let (sim, space, loads) = (sim.clone(), space.clone(), loads.clone());
        Box::new(move || {
            let frame = match space.begin_in(SLOT, Some) {
                SwapIn::Cached(frame) => frame,
                SwapIn::Gone => panic!("the slot is taken"),
                SwapIn::Load(loading) => {
                    loads.fetch_add(1, Ordering::Relaxed);
                    let frame = Frame(cpu + 10);
                    // SAFETY: the frames are the test's.
                    unsafe { loading.read(&sim, frame) }.expect("read");
                    assert!(loading.finish(frame));
                    frame
                }
            };
            // SAFETY: the frame is the test's.
            assert_eq!(unsafe { sim.word(frame, 9) }.load(Ordering::Relaxed), 7);
        }) as Job
    };
    let before = sim.times();
    let jobs: Jobs = (0..CPUS).map(|cpu| (cpu, job(cpu as u32))).collect();
    finish(&sim, jobs);
    assert_eq!(loads.load(Ordering::Relaxed), 1, "read more than once");
    assert!(sim.time() - begin < 2 * LATENCY, "one after the other");
    for (now, before) in sim.times().iter().zip(before).take(CPUS) {
        assert!(now.parked - before.parked > LATENCY * 900, "it spins");
    }
    sim.on_cpu(0, move || drop(space));
}
