//! Pages come back from the swap space with their neighbours.

use crate::world::{P, System, TestSpace, active, nothing_left, pages, squeeze, world};
use hosted::Hosted;
use machine::{Frame, Pager, PagerError, VaRange};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use vm::pager::MemoryPager;
use vm::{Advice, Prot};

const PAGES: usize = 64;
/// Slots that are read at once.
const WINDOW: usize = 8;

/// A store that the test looks into, and that may refuse to read more than some pages at once.
#[derive(Clone)]
struct Disk {
    pages: Arc<MemoryPager<Hosted>>,
    refuses: Arc<AtomicUsize>,
}

impl Pager<Hosted> for Disk {
    unsafe fn read(
        &self,
        machine: &Hosted,
        first: u64,
        frames: &[Frame],
    ) -> Result<(), PagerError> {
        if frames.len() >= self.refuses.load(Ordering::Relaxed) {
            return Err(PagerError { errno: 5 });
        }
        // SAFETY: so says the caller.
        unsafe { self.pages.read(machine, first, frames) }
    }

    unsafe fn write(
        &self,
        machine: &Hosted,
        first: u64,
        frames: &[Frame],
        bytes: usize,
    ) -> Result<(), PagerError> {
        // SAFETY: so says the caller.
        unsafe { self.pages.write(machine, first, frames, bytes) }
    }
}

/// A machine with a space of some pages, all of them in the swap space.
struct Out {
    vm: System,
    disk: Disk,
    space: TestSpace,
    at: usize,
}

impl Out {
    fn new() -> Self {
        let disk = Disk {
            pages: Arc::new(MemoryPager::new()),
            refuses: Arc::new(AtomicUsize::new(usize::MAX)),
        };
        let vm = world(4).cpus(1).swap_in(disk.clone(), 1_024).vm();
        let space = active(&vm);
        let at = space.map(PAGES * P, Prot::READ_WRITE).expect("map");
        for page in 0..PAGES {
            let stored = space.store(at + page * P, content(page));
            stored.expect("store");
        }
        let out = Out {
            vm,
            disk,
            space,
            at,
        };
        out.send_out();
        out
    }

    fn send_out(&self) {
        let advised = self.space.advise(self.all(), Advice::PageOut);
        advised.expect("advise");
        squeeze(&self.vm);
        assert_eq!(self.space.stats().swapped, PAGES as u64);
        assert_eq!(self.cached(), 0);
    }

    fn all(&self) -> VaRange {
        pages(self.at, PAGES)
    }

    fn load_all(&self) {
        (0..PAGES).for_each(|page| self.load(page));
    }

    /// Pages in memory that are not mapped.
    fn cached(&self) -> u64 {
        self.vm.swap_slots().expect("a swap space").cached
    }

    fn load(&self, page: usize) {
        let loaded = self.space.load(self.at + page * P);
        assert_eq!(loaded, Ok(content(page)), "page {page}");
    }

    /// Calls of the pager that read, and the pages they read, while `act` runs.
    fn reads(&self, act: impl FnOnce()) -> (u64, u64) {
        let before = self.disk.pages.counts();
        act();
        let after = self.disk.pages.counts();
        let pages = after.pages_read - before.pages_read;
        (after.reads - before.reads, pages)
    }

    fn tear_down(self) {
        let Out { vm, space, .. } = self;
        drop(space);
        nothing_left(&vm);
    }
}

fn content(page: usize) -> u64 {
    900 + page as u64
}

#[test]
fn a_window_is_read_at_once() {
    let out = Out::new();
    let (reads, pages) = out.reads(|| out.load_all());
    assert_eq!(pages, PAGES as u64);
    // Where the CPU's cache had few frames a window was read in parts.
    let windows = (PAGES / WINDOW) as u64;
    assert!((windows..=2 * windows).contains(&reads), "{reads} calls");
    assert_eq!(out.cached(), 0);
    out.tear_down();
}

#[test]
fn what_nobody_comes_for_goes_first_and_is_not_written() {
    let out = Out::new();
    out.load(PAGES / 2);
    assert_eq!(out.cached(), WINDOW as u64 - 1);
    let written = out.disk.pages.counts().writes;
    assert_eq!(out.vm.reclaim(WINDOW - 1), WINDOW - 1);
    assert_eq!((out.cached(), out.space.stats().private), (0, 1));
    assert_eq!(out.disk.pages.counts().writes, written);
    out.load(PAGES / 2 + 1);
    out.tear_down();
}

#[test]
fn whoever_goes_leaves_nothing_in_memory() {
    let out = Out::new();
    out.load(1);
    out.load(PAGES - 1);
    assert_eq!(out.cached(), 2 * (WINDOW as u64 - 1));
    let some = pages(out.at, 4);
    out.space.discard(some).expect("discard");
    assert_eq!(out.cached(), 2 * (WINDOW as u64 - 1) - 3);
    out.tear_down();
}

#[test]
fn nothing_is_read_ahead_where_pages_come_in_no_order() {
    let out = Out::new();
    let range = out.all();
    out.space.advise(range, Advice::Random).expect("advise");
    let (reads, pages) = out.reads(|| out.load_all());
    assert_eq!((reads, pages), (PAGES as u64, PAGES as u64));
    out.tear_down();
}

#[test]
fn it_takes_no_frame_that_somebody_may_want() {
    let out = Out::new();
    let mut taken = Vec::new();
    while out.vm.frames().free_count() > 7 {
        taken.push(out.vm.new_page().expect("a page"));
    }
    // One is for the page, three of the others may be taken.
    let (reads, pages) = out.reads(|| out.load(0));
    assert_eq!((reads, pages), (1, 4));
    drop(taken);
    out.tear_down();
}

#[test]
fn a_page_is_read_alone_if_all_are_not_to_be_had() {
    let out = Out::new();
    out.disk.refuses.store(2, Ordering::Relaxed);
    out.load_all();
    assert_eq!(out.cached(), 0);
    out.send_out();
    out.disk.refuses.store(1, Ordering::Relaxed);
    let failed = out.space.load(out.at);
    assert!(matches!(failed, Err(vm::Error::Io(_))), "{failed:?}");
    out.disk.refuses.store(usize::MAX, Ordering::Relaxed);
    out.load_all();
    out.tear_down();
}

/// Rights say which accesses a task may make; bringing its pages is none of them.
#[test]
fn what_is_needed_soon_is_read_whatever_the_rights() {
    let out = Out::new();
    let range = out.all();
    out.space.protect(range, Prot::NONE).expect("protect");
    let (_, pages) = out.reads(|| {
        let advised = out.space.advise(range, Advice::WillNeed);
        assert_eq!(advised, Ok(()));
    });
    assert_eq!((pages, out.cached()), (PAGES as u64, PAGES as u64));
    out.space.protect(range, Prot::READ).expect("protect");
    let (reads, _) = out.reads(|| out.load_all());
    assert_eq!(reads, 0);
    out.tear_down();
}
