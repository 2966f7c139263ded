//! Many CPUs at one object: concurrent faults, reads, writes, truncations, write-backs, evictions
//! and attachments. The store panics where two calls concern one page.

use super::pages::PAGE;
use crate::dice::Dice;
use crate::store::{Call, TestStore};
use crate::world::{File, P, System, nothing_left, pages, world};
use hosted::Hosted;
use machine::{Execute, Job, Ordering};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use vm::object::{Object, Pattern};
use vm::{Best, Error, Hold, Pmap, Prot};

const PAGES: u64 = 40;
const ROUNDS: u64 = 1500;

type Shared = Arc<File>;

/// Runs the jobs, then ends the object and sees that nothing is left.
fn run(vm: &System, object: Shared, jobs: Vec<Job>) {
    vm.machine().execute(jobs);
    let object = Arc::into_inner(object).expect("all jobs have ended");
    vm.machine().on_cpu(0, || drop(object));
    nothing_left(vm);
}

/// The answer of `call` when it gets one: the store fails now and then.
fn insist(call: impl FnMut() -> Result<usize, Error>) -> usize {
    let mut answers = std::iter::repeat_with(call);
    answers.find_map(Result::ok).expect("an endless iterator")
}

/// Takes the page at `index` out of the object if it can, as a reclaimer does.
fn reclaim(vm: &System, object: &Shared, index: u64) -> bool {
    let Some(hold) = object.resident(index).and_then(|frame| vm.page_ref(frame)) else {
        return false;
    };
    let Some(home) = vm.home(&hold) else {
        return false;
    };
    if home.write_back(|_| false).is_err() {
        return false;
    }
    vm.home(&hold).is_some_and(|home| home.evict())
}

#[test]
fn tasks_that_want_one_page_read_it_once() {
    const CPUS: usize = 4;
    let vm = world(16).cpus(CPUS).apart();
    let store = Arc::new(TestStore::with(PAGES, 7));
    let file = Object::file(&vm, store.clone(), PAGES * PAGE).expect("an object");
    let object = Arc::new(file);
    let turn = Arc::new(AtomicU64::new(0));
    let job = |_| {
        let (object, turn) = (object.clone(), turn.clone());
        Box::new(move || {
            for index in 0..PAGES {
                turn.fetch_add(1, Ordering::Relaxed);
                while turn.load(Ordering::Relaxed) < (index + 1) * CPUS as u64 {
                    std::thread::yield_now();
                }
                let page = object.page(index, Pattern::Random).expect("a page");
                let word = page.word(1);
                assert_eq!(word.load(Ordering::Relaxed), 7 + index);
            }
        }) as Job
    };
    let jobs = (0..CPUS).map(job).collect();
    run(&vm, object, jobs);
    let reads: Vec<_> = (0..PAGES).map(|page| Call::Read(page..page + 1)).collect();
    assert_eq!(store.calls(), reads);
}

/// Each page counts: two writers add to words of their own in all pages, while the pages are
/// written back, evicted and read again. No addition may be lost.
#[test]
fn nothing_dirty_is_lost() {
    let vm = world(16).cpus(4).apart();
    let store = Arc::new(TestStore::with(PAGES, 0));
    let file = Object::file(&vm, store.clone(), PAGES * PAGE).expect("an object");
    let object = Arc::new(file);
    let writers = Arc::new(AtomicU64::new(2));
    let mut jobs: Vec<Job> = Vec::new();
    let evicted = Arc::new(AtomicU64::new(0));
    for writer in 0..2 {
        let (object, writers, evicted) = (object.clone(), writers.clone(), evicted.clone());
        jobs.push(Box::new(move || {
            let mut dice = Dice(writer + 99);
            let mut counts = [0u64; PAGES as usize];
            let mut round = 0;
            while round < ROUNDS || evicted.load(Ordering::Relaxed) < ROUNDS {
                round += 1;
                let page = dice.below(PAGES);
                let at = page * PAGE + 64 + 8 * writer;
                let mut bytes = [0; 8];
                assert_eq!(insist(|| object.read(at, &mut bytes)), 8);
                let count = &mut counts[page as usize];
                assert_eq!(
                    u64::from_le_bytes(bytes),
                    expected(page, *count),
                    "page {page}"
                );
                *count += 1;
                let next = expected(page, *count).to_le_bytes();
                assert_eq!(insist(|| object.write(at, &next)), 8);
            }
            writers.fetch_sub(1, Ordering::Release);
        }));
    }
    for sweeper in 0..2 {
        let (vm, object, writers) = (vm.clone(), object.clone(), writers.clone());
        let (store, evicted) = (store.clone(), evicted.clone());
        jobs.push(Box::new(move || {
            let mut dice = Dice(sweeper + 5);
            while writers.load(Ordering::Acquire) > 0 {
                let index = dice.below(PAGES);
                if dice.below(8) == 0 {
                    // The store fails now and then.
                    store.fail_after(1 + dice.below(2));
                    let _ = object.write_back(index..PAGES, |_| false);
                    store.fail_after(0);
                } else if reclaim(&vm, &object, index) {
                    evicted.fetch_add(1, Ordering::Relaxed);
                }
            }
        }));
    }
    run(&vm, object, jobs);
}

/// The store's first content, and how often it was added to.
fn expected(page: u64, count: u64) -> u64 {
    if count == 0 { page } else { count << 32 | page }
}

/// One task makes the object smaller and larger; others map its pages, as a fault does.
/// When a truncation returns no page behind the end is mapped or available, and pages that
/// come back are zero.
#[test]
fn faults_meet_truncations() {
    const FAULTERS: usize = 2;
    let vm = world(16).cpus(FAULTERS + 2).apart();
    let store = Arc::new(TestStore::with(PAGES, 7));
    let file = Object::file(&vm, store.clone(), PAGES * PAGE).expect("an object");
    let object = Arc::new(file);
    let stop = Arc::new(AtomicBool::new(false));
    let pmap = vm.machine().on_cpu(0, || Pmap::new(&vm)).expect("a pmap");
    let base = 1usize << 40;
    let mut jobs: Vec<Job> = Vec::new();
    for faulter in 0..FAULTERS as u64 {
        let (object, stop, pmap) = (object.clone(), stop.clone(), pmap.clone());
        jobs.push(Box::new(move || {
            pmap.activate();
            let mut dice = Dice(faulter + 3);
            while !stop.load(Ordering::Relaxed) {
                let index = dice.below(PAGES);
                fault(&object, &pmap, base + index as usize * P, index);
                let _ = object.write(index * PAGE + 1024, &[faulter as u8]);
            }
        }));
    }
    {
        let (vm, object, stop) = (vm.clone(), object.clone(), stop.clone());
        jobs.push(Box::new(move || {
            let mut dice = Dice(17);
            while !stop.load(Ordering::Relaxed) {
                let index = dice.below(PAGES);
                reclaim(&vm, &object, index);
                let clean = |hold: &Hold<Best<Hosted>>| vm.remove_all(hold).dirty;
                assert_eq!(object.write_back(index..PAGES, clean), Ok(()));
            }
        }));
    }
    {
        let (object, stop) = (object.clone(), stop.clone());
        jobs.push(Box::new(move || {
            let mut dice = Dice(1);
            for _ in 0..ROUNDS {
                let size = dice.below(PAGES * PAGE);
                object.truncate(size, |_| {}).expect("shrink");
                // Writers may have made it larger since, but not beyond their own writes.
                let mut byte = [0xff; 1];
                let last = PAGES * PAGE - 1;
                assert_eq!(object.read(last, &mut byte), Ok(0));
                if dice.below(2) == 0 {
                    object.truncate(PAGES * PAGE, |_| {}).expect("grow");
                    assert_eq!(object.read(last, &mut byte), Ok(1));
                    assert_eq!(byte, [0]);
                }
            }
            stop.store(true, Ordering::Relaxed);
        }));
    }
    vm.machine().execute(jobs);
    vm.machine().on_cpu(0, || {
        object.truncate(0, |_| {}).expect("shrink");
        assert_eq!((object.resident_pages(), pmap.resident()), (0, 0));
        drop(Arc::into_inner(pmap).expect("all jobs have ended"));
    });
    run(&vm, object, Vec::new());
}

/// Maps a page as a fault does: the mapping first, then the question if it is still the
/// object's. If not the mapping goes again.
fn fault(object: &Shared, pmap: &Pmap<Best<Hosted>>, at: usize, index: u64) {
    let vm = object.vm();
    let page = match object.page(index, Pattern::Normal) {
        Ok(page) => page,
        Err(Error::Bus { .. }) => return,
        Err(error) => panic!("{error}"),
    };
    let hold = vm.hold(page.frame()).expect("held");
    let entered = pmap.enter(at, &hold, Prot::READ);
    entered.expect("enter");
    if object.still_has(index, page.frame()) {
        let word = page.word(0).load(Ordering::Relaxed);
        assert!(
            word == 7 + index || word == 0,
            "another owner's page: {word}"
        );
    } else {
        vm.remove_all(&hold);
    }
}

/// CPUs attach, inherit and detach while the last handle goes; each object ends once, when
/// its last attachment has gone, and not before.
#[test]
fn the_last_of_all_ends_an_object() {
    const CPUS: usize = 4;
    let vm = world(16).cpus(CPUS).apart();
    for round in 0..ROUNDS / 4 {
        let store = Arc::new(TestStore::with(4, 0));
        let file = Object::file(&vm, store.clone(), 4 * PAGE).expect("an object");
        vm.machine()
            .on_cpu(0, || file.write(0, &[9]).expect("write"));
        let range = pages(1 << 40, 4);
        let job = |cpu: usize| {
            let (file, store) = (file.clone(), store.clone());
            Box::new(move || {
                let mut dice = Dice(round * 8 + cpu as u64 + 1);
                // SAFETY: without an owner.
                let attached = unsafe { file.attach(std::ptr::null(), range, 0) };
                let mut own = vec![attached.expect("attach")];
                drop(file);
                for _ in 0..dice.below(12) {
                    let some = dice.below(own.len() as u64) as usize;
                    match dice.below(3) {
                        0 if own.len() > 1 => drop(own.swap_remove(some)),
                        1 => own.push(own[some].clone()),
                        _ => {
                            // SAFETY: without an owner.
                            let inherited = unsafe { own[some].inherit(std::ptr::null()) };
                            own.push(inherited.expect("inherit"));
                        }
                    }
                    let mut count = 0;
                    own[0].object().for_each_attachment(|_| count += 1);
                    assert!(count > 0);
                    assert_eq!(store.first_word(0), Some(0), "ended too early");
                }
            }) as Job
        };
        let jobs = (0..CPUS).map(job).collect();
        drop(file);
        vm.machine().execute(jobs);
        assert_eq!(
            store.first_word(0).map(|word| word & 0xff),
            Some(9),
            "never ended"
        );
        nothing_left(&vm);
    }
}
