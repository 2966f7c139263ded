//! Pages come back from the swap space with their neighbours.

use hosted::Hosted;
use machine::{Frame, PAGE_SIZE, Pager, PagerError, Topology, VaRange};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use vm::pager::MemoryPager;
use vm::swap::SwapSpace;
use vm::system::Reservation;
use vm::{Advice, Best, Options, Prot, Space, Vm};

const MIB: usize = 1 << 20;
const PAGES: usize = 64;
/// Slots that are read at once.
const WINDOW: usize = 8;

type System = Arc<Vm<Best<Hosted>>>;
type TestSpace = Space<Best<Hosted>>;

/// A store that the test looks into, and that may refuse to read more than some pages at once.
#[derive(Clone)]
struct Disk {
    pages: Arc<MemoryPager<Hosted>>,
    refuses: Arc<AtomicUsize>,
}

impl Pager<Hosted> for Disk {
    fn read(&self, machine: &Hosted, first: u64, frames: &[Frame]) -> Result<(), PagerError> {
        if frames.len() >= self.refuses.load(Ordering::Relaxed) {
            return Err(PagerError { errno: 5 });
        }
        self.pages.read(machine, first, frames)
    }

    fn write(
        &self,
        machine: &Hosted,
        first: u64,
        frames: &[Frame],
        bytes: usize,
    ) -> Result<(), PagerError> {
        self.pages.write(machine, first, frames, bytes)
    }
}

/// A machine with a space of some pages, all of them in the swap space.
struct World {
    vm: System,
    disk: Disk,
    space: TestSpace,
    at: usize,
}

impl World {
    fn new() -> Self {
        let machine = Hosted::with_memory(1, 4 * MIB).expect("memory");
        machine.attach(0);
        let disk = Disk {
            pages: Arc::new(MemoryPager::new()),
            refuses: Arc::new(AtomicUsize::new(usize::MAX)),
        };
        let swap = SwapSpace::new(machine.cpus(), Box::new(disk.clone()), 1_024);
        let options = Options {
            swap_space: Some(Arc::new(swap.expect("a swap space"))),
            ..Options::default()
        };
        let vm = Vm::with_options(machine, options).expect("memory for the VM");
        let space: TestSpace = Space::new(&vm).expect("a space");
        space.activate();
        let at = space.map(PAGES * PAGE_SIZE, Prot::READ_WRITE).expect("map");
        for page in 0..PAGES {
            let stored = space.store(at + page * PAGE_SIZE, content(page));
            stored.expect("store");
        }
        let world = World {
            vm,
            disk,
            space,
            at,
        };
        world.send_out();
        world
    }

    fn send_out(&self) {
        let range = VaRange::sized(self.at, PAGES * PAGE_SIZE);
        self.space.advise(range, Advice::PageOut).expect("advise");
        while self.vm.reclaim(usize::MAX) > 0 {}
        assert_eq!(self.space.stats().swapped, PAGES as u64);
        assert_eq!(self.cached(), 0);
    }

    /// Pages in memory that are not mapped.
    fn cached(&self) -> u64 {
        self.vm.swap_space().expect("a swap space").cached()
    }

    fn load(&self, page: usize) {
        let loaded = self.space.load(self.at + page * PAGE_SIZE);
        assert_eq!(loaded, Ok(content(page)), "page {page}");
    }

    /// Calls of the pager that read, and the pages they read, while `act` runs.
    fn reads(&self, act: impl FnOnce()) -> (u64, u64) {
        let before = self.disk.pages.counts();
        act();
        let after = self.disk.pages.counts();
        (
            after.reads - before.reads,
            after.pages_read - before.pages_read,
        )
    }

    fn tear_down(self) {
        let World { vm, space, .. } = self;
        drop(space);
        let swap = vm.swap_space().expect("a swap space");
        assert_eq!((swap.used(), swap.cached()), (0, 0));
        assert_eq!(vm.swap().reserved(), 0);
        assert_eq!(vm.frames().free_count(), vm.frames().total());
    }
}

fn content(page: usize) -> u64 {
    900 + page as u64
}

#[test]
fn a_window_is_read_at_once() {
    let world = World::new();
    let (reads, pages) = world.reads(|| (0..PAGES).for_each(|page| world.load(page)));
    assert_eq!(pages, PAGES as u64);
    // Where the CPU's cache had few frames a window was read in parts.
    let windows = (PAGES / WINDOW) as u64;
    assert!((windows..=2 * windows).contains(&reads), "{reads} calls");
    assert_eq!(world.cached(), 0);
    world.tear_down();
}

#[test]
fn what_nobody_comes_for_goes_first_and_is_not_written() {
    let world = World::new();
    world.load(PAGES / 2);
    assert_eq!(world.cached(), WINDOW as u64 - 1);
    let written = world.disk.pages.counts().writes;
    assert_eq!(world.vm.reclaim(WINDOW - 1), WINDOW - 1);
    assert_eq!((world.cached(), world.space.stats().private), (0, 1));
    assert_eq!(world.disk.pages.counts().writes, written);
    world.load(PAGES / 2 + 1);
    world.tear_down();
}

#[test]
fn whoever_goes_leaves_nothing_in_memory() {
    let world = World::new();
    world.load(1);
    world.load(PAGES - 1);
    assert_eq!(world.cached(), 2 * (WINDOW as u64 - 1));
    let some = VaRange::sized(world.at, 4 * PAGE_SIZE);
    world.space.discard(some).expect("discard");
    assert_eq!(world.cached(), 2 * (WINDOW as u64 - 1) - 3);
    world.tear_down();
}

#[test]
fn nothing_is_read_ahead_where_pages_come_in_no_order() {
    let world = World::new();
    let range = VaRange::sized(world.at, PAGES * PAGE_SIZE);
    world.space.advise(range, Advice::Random).expect("advise");
    let (reads, pages) = world.reads(|| (0..PAGES).for_each(|page| world.load(page)));
    assert_eq!((reads, pages), (PAGES as u64, PAGES as u64));
    world.tear_down();
}

#[test]
fn it_takes_no_frame_that_somebody_may_want() {
    let world = World::new();
    let mut taken = Vec::new();
    while world.vm.frames().free_count() > 7 {
        taken.push(world.vm.new_page().expect("a page"));
    }
    // One is for the page, three of the others may be taken.
    let (reads, pages) = world.reads(|| world.load(0));
    assert_eq!((reads, pages), (1, 4));
    drop(taken);
    world.tear_down();
}

#[test]
fn a_page_is_read_alone_if_all_are_not_to_be_had() {
    let world = World::new();
    world.disk.refuses.store(2, Ordering::Relaxed);
    (0..PAGES).for_each(|page| world.load(page));
    assert_eq!(world.cached(), 0);
    world.send_out();
    world.disk.refuses.store(1, Ordering::Relaxed);
    let failed = world.space.load(world.at);
    assert!(matches!(failed, Err(vm::Error::Io(_))), "{failed:?}");
    world.disk.refuses.store(usize::MAX, Ordering::Relaxed);
    (0..PAGES).for_each(|page| world.load(page));
    world.tear_down();
}

/// Rights say which accesses a task may make; bringing its pages is none of them.
#[test]
fn what_is_needed_soon_is_read_whatever_the_rights() {
    let world = World::new();
    let range = VaRange::sized(world.at, PAGES * PAGE_SIZE);
    world.space.protect(range, Prot::NONE).expect("protect");
    let (_, pages) = world.reads(|| {
        let advised = world.space.advise(range, Advice::WillNeed);
        assert_eq!(advised, Ok(()));
    });
    assert_eq!((pages, world.cached()), (PAGES as u64, PAGES as u64));
    world.space.protect(range, Prot::READ).expect("protect");
    let (reads, _) = world.reads(|| (0..PAGES).for_each(|page| world.load(page)));
    assert_eq!(reads, 0);
    world.tear_down();
}
