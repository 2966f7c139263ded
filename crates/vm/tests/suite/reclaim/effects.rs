//! More memory in use than there is.

use crate::world::{MIB, P, TestSpace, active, nothing_left, page, pages, swapped, world};
use hosted::Hosted;
use machine::{Frame, Pager, PagerError, VaRange};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use vm::pager::MemoryPager;
use vm::{Advice, Bring, Error, Prot, Request, Resource};

/// The value written to a page the `round`th time.
fn content(page: usize, round: usize) -> u64 {
    (page * 1_000 + round) as u64
}

#[test]
fn four_times_the_memory_is_kept() {
    let vm = world(4).swap(8_192).vm();
    let space = active(&vm);
    let pages = 4 * 4 * MIB / P;
    let at = space.map(pages * P, Prot::READ_WRITE).expect("map");
    for round in 0..3 {
        for page in 0..pages {
            let place = at + page * P + 8 * round;
            space.store(place, content(page, round)).expect("store");
        }
        for page in 0..pages {
            for before in 0..=round {
                let place = at + page * P + 8 * before;
                assert_eq!(space.load(place), Ok(content(page, before)), "page {page}");
            }
        }
    }
    assert!(swapped(&vm) as usize > pages / 2);
    drop(space);
    nothing_left(&vm);
}

#[test]
fn without_room_anywhere_there_is_an_error_and_no_hang() {
    let vm = world(4).swap(256).vm();
    let space = active(&vm);
    let at = space.map(8 * MIB, Prot::READ_WRITE).expect("map");
    let store = |page: usize| space.store(at + page * P, content(page, 0));
    let stored = (0..).take_while(|&page| store(page).is_ok()).count();
    assert_eq!(store(stored), Err(Error::OutOfMemory(Resource::Frames)));
    assert!(stored > MIB / P, "{stored} pages");
    // With some memory back it goes on, and nothing else is lost.
    let kept = stored - 64;
    let rest = pages(at + kept * P, 64);
    space.advise(rest, Advice::DontNeed).expect("advise");
    for page in 0..kept {
        assert_eq!(space.load(at + page * P), Ok(content(page, 0)));
    }
    store(stored).expect("store");
}

#[test]
fn every_sharer_of_a_page_that_went_out_finds_it() {
    let vm = world(8).swap(4_096).vm();
    let root = active(&vm);
    let at = root.map(P, Prot::READ_WRITE).expect("map");
    root.store(at, 42).expect("store");
    let mut family = vec![root];
    for level in 0..5 {
        for _ in 0..2 {
            let child = family[level].fork().expect("fork");
            family.push(child);
        }
    }
    family[3].advise(page(at), Advice::PageOut).expect("advise");
    for member in &family {
        assert_eq!(member.pmap().lookup(at), None);
    }
    assert_eq!(swapped(&vm), 1);
    for (index, member) in family.iter().enumerate() {
        member.activate();
        if index % 3 == 0 {
            member.store(at, index as u64).expect("store");
        }
    }
    for (index, member) in family.iter().enumerate() {
        member.activate();
        let expected = if index % 3 == 0 { index as u64 } else { 42 };
        assert_eq!(member.load(at), Ok(expected));
    }
    assert_eq!(swapped(&vm), 0);
}

#[test]
fn a_child_inherits_what_is_out() {
    let vm = world(8).swap(4_096).vm();
    let parent = active(&vm);
    let at = parent.map(2 * P, Prot::READ_WRITE).expect("map");
    parent.store(at, 1).expect("store");
    parent.store(at + P, 2).expect("store");
    let out = parent.advise(pages(at, 2), Advice::PageOut);
    out.expect("advise");
    let child = parent.fork().expect("fork");
    child.activate();
    child.store(at, 10).expect("store");
    drop(parent);
    assert_eq!(child.load(at), Ok(10));
    assert_eq!(child.load(at + P), Ok(2));
    assert_eq!(swapped(&vm), 0);
}

/// More pages than are looked for at once, in parts of several slots.
#[test]
fn all_pages_of_a_range_go_out_and_no_others() {
    let vm = world(16).cpus(1).swap(8_192).vm();
    let space = active(&vm);
    let at = space.map(6 * MIB, Prot::READ_WRITE).expect("map");
    let place = |page: usize| at + page * P;
    let touched = || (0..6 * MIB / P).filter(|page| page % 3 != 1);
    for page in touched() {
        space.store(place(page), content(page, 0)).expect("store");
    }
    let out = 100..1_400;
    let range = VaRange {
        start: place(out.start),
        end: place(out.end),
    };
    space.advise(range, Advice::PageOut).expect("advise");
    let went = touched().filter(|page| out.contains(page));
    assert_eq!(swapped(&vm) as usize, went.count());
    for page in touched() {
        let is_there = space.pmap().lookup(place(page)).is_some();
        assert_ne!(is_there, out.contains(&page), "page {page}");
    }
    for page in touched() {
        assert_eq!(space.load(place(page)), Ok(content(page, 0)), "page {page}");
    }
}

/// What was never touched is in slots of more than 2 MiB.
#[test]
fn pages_go_out_behind_memory_that_was_never_touched() {
    let vm = world(16).cpus(1).swap(8_192).vm();
    let space = active(&vm);
    let bytes = 640 * MIB;
    let at = space.map(bytes, Prot::READ_WRITE).expect("map");
    let last = at + bytes - P;
    space.store(last, 7).expect("store");
    let all = VaRange::sized(at, bytes);
    space.advise(all, Advice::PageOut).expect("advise");
    assert_eq!(swapped(&vm), 1);
    assert_eq!(space.load(last), Ok(7));
}

#[test]
fn locked_memory_stays() {
    stays(false);
}

/// The child has not locked it, and shares no table by which it might go out.
#[test]
fn locked_memory_stays_beside_a_child() {
    stays(true);
}

fn stays(forks: bool) {
    let vm = world(4).swap(8_192).vm();
    let space = active(&vm);
    let locked = space.map(64 * P, Prot::READ_WRITE).expect("map");
    let range = pages(locked, 64);
    space.lock(range, Bring::Now).expect("lock");
    let frames = || (0..64).map(|page| space.pmap().lookup(locked + page * P));
    let before: Vec<_> = frames().collect();
    assert!(before.iter().all(Option::is_some));
    let refused = space.advise(range, Advice::PageOut);
    assert!(matches!(refused, Err(Error::Invalid { .. })));
    let _child = forks.then(|| space.fork().expect("fork"));
    let at = space.map(8 * MIB, Prot::READ_WRITE).expect("map");
    for page in 0..8 * MIB / P {
        space.store(at + page * P, 1).expect("store");
    }
    assert!(frames().eq(before));
}

#[test]
fn shared_memory_goes_out_and_comes_back() {
    let vm = world(4).swap(8_192).vm();
    let parent = active(&vm);
    let pages = 8 * MIB / P;
    let request = Request::anonymous(pages * P, Prot::READ_WRITE).shared();
    let at = parent.map_as(&request).expect("map");
    for page in 0..pages {
        let stored = parent.store(at + page * P, content(page, 0));
        stored.expect("store");
    }
    let child = parent.fork().expect("fork");
    child.activate();
    for page in 0..pages {
        let place = at + page * P;
        assert_eq!(child.load(place), Ok(content(page, 0)), "page {page}");
        if page % 2 == 0 {
            child.store(place, content(page, 1)).expect("store");
        }
    }
    parent.activate();
    for page in 0..pages {
        let round = usize::from(page % 2 == 0);
        assert_eq!(parent.load(at + page * P), Ok(content(page, round)));
    }
    drop((parent, child));
    nothing_left(&vm);
}

/// Ends a write to the swap space.
type End = Box<dyn FnOnce() -> Result<(), PagerError> + Send>;

/// A swap space whose next write has an end of the test's.
struct Ending {
    pager: MemoryPager<Hosted>,
    end: Arc<Mutex<Option<End>>>,
}

impl Pager<Hosted> for Ending {
    unsafe fn read(
        &self,
        machine: &Hosted,
        first: u64,
        frames: &[Frame],
    ) -> Result<(), PagerError> {
        // SAFETY: so says the caller.
        unsafe { self.pager.read(machine, first, frames) }
    }

    unsafe fn write(
        &self,
        machine: &Hosted,
        first: u64,
        frames: &[Frame],
        bytes: usize,
    ) -> Result<(), PagerError> {
        // SAFETY: so says the caller.
        unsafe { self.pager.write(machine, first, frames, bytes) }?;
        let end = self.end.lock().expect("no panic").take();
        end.map_or(Ok(()), |end| end())
    }
}

/// A page of shared memory is stored to (1), goes out (and the write ends as told), and goes out
/// again. Returns what is in it then.
fn out_twice(
    end: impl FnOnce(&TestSpace, VaRange) -> Result<(), PagerError> + Send + 'static,
) -> u64 {
    let held = Arc::new(Mutex::new(None));
    let pager = Ending {
        pager: MemoryPager::new(),
        end: held.clone(),
    };
    let vm = world(4).cpus(1).swap_in(pager, 64).vm();
    let space = Arc::new(active(&vm));
    let request = Request::anonymous(P, Prot::READ_WRITE).shared();
    let page = page(space.map_as(&request).expect("map"));
    space.store(page.start, 1).expect("store");
    let inside = space.clone();
    let end: End = Box::new(move || end(&inside, page));
    *held.lock().expect("no panic") = Some(end);
    for _ in 0..2 {
        space.advise(page, Advice::PageOut).expect("advise");
        space.load(page.start).expect("load");
    }
    assert!(held.lock().expect("no panic").is_none(), "it was written");
    space.load(page.start).expect("load")
}

#[test]
fn a_store_beside_the_write_is_kept() {
    let seen = out_twice(|space, page| {
        space.store(page.start, 2).expect("store");
        // The mapping goes, and what it knows of the store with it.
        space.advise(page, Advice::DontNeed).expect("advise");
        Ok(())
    });
    assert_eq!(seen, 2);
}

#[test]
fn shared_memory_that_could_not_be_written_is_written_later() {
    assert_eq!(out_twice(|_, _| Err(PagerError { errno: 5 })), 1);
}

#[test]
fn who_knows_a_way_is_asked() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let way = move || count.fetch_add(1, Ordering::Relaxed) < 2;
    let asking = world(4).with(|options| options.out_of_memory = Some(Box::new(way)));
    let space = asking.space();
    let at = space.map(8 * MIB, Prot::READ_WRITE).expect("map");
    let results = (0..8 * MIB / P).map(|page| space.store(at + page * P, 1));
    let failed = results.filter(Result::is_err).take(1).count();
    assert_eq!(failed, 1);
    assert_eq!(asked.load(Ordering::Relaxed), 3);
}

#[test]
fn two_processes_fight_for_memory_beside_a_daemon() {
    let vm = world(4).cpus(3).swap(16_384).vm();
    let pages = 2 * 4 * MIB / P;
    let worker = |cpu: usize| {
        let vm = vm.clone();
        move || {
            vm.machine().attach(cpu);
            let space = active(&vm);
            let at = space.map(pages * P, Prot::READ_WRITE).expect("map");
            for round in 0..2 {
                for page in 0..pages {
                    let value = content(page, round) + cpu as u64;
                    space.store(at + page * P, value).expect("store");
                }
                for page in (0..pages).rev() {
                    let value = content(page, round) + cpu as u64;
                    assert_eq!(space.load(at + page * P), Ok(value));
                }
            }
        }
    };
    thread::scope(|scope| {
        let workers = [1, 2].map(|cpu| scope.spawn(worker(cpu)));
        while workers.iter().any(|worker| !worker.is_finished()) {
            vm.keep_free(128);
            thread::yield_now();
        }
    });
    assert_eq!(swapped(&vm), 0);
}
