//! Looks that must be repeated when a demotion has to wait: the review of case study 002 found
//! these cases. Each is forced, by holding the lock that it waits for.

extern crate std;

use super::{PvRun, frame_at};
use crate::best::Best;
use crate::page::PvList;
use crate::tree::{Size, Slot};
use crate::vm::{Hold, Options};
use crate::{Pmap, Prot, Space, Superpages, Vm};
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;
use core::sync::atomic::{AtomicBool, Ordering};
use hosted::Hosted;
use machine::{Execute, Frame, Job, PAGE_SIZE, VaRange, pte};

type TestList<'a> = PvList<'a, Best<Hosted>>;

const AT: usize = 1 << 42;
const SIZE: usize = pte::ENTRIES * PAGE_SIZE;
/// The page that is removed.
const PAGE: usize = 5;

/// A space with one superpage, and a hold of one of its pages.
struct World {
    vm: Arc<Vm<Best<Hosted>>>,
    space: Space<Best<Hosted>>,
    /// Another space's, with nothing in it.
    other: Arc<Pmap<Best<Hosted>>>,
    hold: Hold<Best<Hosted>>,
    first: Frame,
    /// The first page's list is locked.
    ready: AtomicBool,
}

impl World {
    fn new(machine: &Hosted) -> Self {
        let options = Options {
            superpages: Superpages::Always,
            ..Options::default()
        };
        let vm =
            Vm::<Best<Hosted>>::with_options(machine.clone(), options).expect("memory for the VM");
        let space = Space::new(&vm).expect("a space");
        space.activate();
        let range = VaRange::sized(AT, SIZE);
        space.map_fixed(range, Prot::READ_WRITE).expect("map");
        for address in (AT..AT + SIZE).step_by(PAGE_SIZE) {
            space.store(address, 1).expect("store");
        }
        assert_eq!(space.pmap().superpages(), 1);
        let first = space.pmap().lookup(AT).expect("a page");
        World {
            hold: vm.hold(frame_at(first, PAGE)).expect("held"),
            other: Pmap::new(&vm).expect("a pmap"),
            first,
            space,
            vm,
            ready: AtomicBool::new(false),
        }
    }

    fn slot(&self) -> &Slot<Best<Hosted>> {
        self.space.pmap().tree.find(AT).slot
    }

    fn used(&self, page: usize) -> bool {
        let hold = self.vm.hold(frame_at(self.first, page)).expect("held");
        self.vm.test_referenced(&hold)
    }

    /// Does `act` while a removal of [`PAGE`] waits in a demotion for the first page's list: it
    /// has the slot, and no list.
    fn while_a_demotion_waits(&self, act: impl FnOnce()) {
        let list = TestList::lock_more(self.vm.page(self.first));
        self.ready.store(true, Ordering::Release);
        let page = self.vm.page(self.hold.frame());
        while !self.slot().is_locked() || page.is_pv_locked() {
            std::thread::yield_now();
        }
        assert_eq!(self.slot().size(), Size::Superpage);
        act();
        drop(list);
    }
}

/// One task does `act` while another's removal waits; the removal must find `mappings` mappings.
fn race(mappings: usize, act: impl FnOnce(&World) + Send + 'static) {
    let machine = Hosted::with_memory(2, 16 << 20).expect("memory");
    let world = Arc::new(machine.on_cpu(0, || World::new(&machine)));
    let remover = Arc::clone(&world);
    let holder = Arc::clone(&world);
    let jobs: vec::Vec<Job> = vec![
        Box::new(move || holder.while_a_demotion_waits(|| act(&holder))),
        Box::new(move || {
            while !remover.ready.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
            let removed = remover.vm.remove_all(&remover.hold);
            assert_eq!((removed.mappings, removed.retries), (mappings, 1));
            assert!(removed.dirty && removed.referenced);
        }),
    ];
    machine.execute(jobs);
    let world = Arc::into_inner(world).expect("all jobs have ended");
    machine.on_cpu(1, || {
        assert_eq!(world.slot().size(), Size::Pages);
        assert_eq!(world.space.pmap().resident(), pte::ENTRIES - 1);
        assert_eq!(world.other.resident(), 0);
        // Accessed bits were handed to each page by the demotion.
        assert!(world.used(8) && !world.used(8));
        let World {
            vm,
            space,
            other,
            hold,
            ..
        } = world;
        drop((space, other, hold));
        assert_eq!(vm.frames().free_count(), vm.frames().total());
    });
}

#[test]
fn a_demotion_waits_for_the_first_page() {
    race(1, |_| ());
}

/// The removal has released its page to demote: another task maps that meanwhile.
#[test]
fn the_list_changes_while_a_demotion_waits() {
    race(2, |world| {
        assert_eq!(world.other.enter(AT, &world.hold, Prot::READ), Ok(true));
    });
}

#[test]
fn use_is_tested_while_a_demotion_waits() {
    race(1, |world| {
        // One bit for all: another page than the one that stands for them leaves it.
        assert!(world.used(7) && world.used(9));
        assert_eq!(world.slot().size(), Size::Superpage);
    });
}

/// A run that could not be locked whole is released whole, but for the caller's page.
#[test]
fn a_run_that_is_refused_leaves_nothing_locked() {
    let machine = Hosted::with_memory(1, 16 << 20).expect("memory");
    machine.on_cpu(0, || {
        let world = World::new(&machine);
        let pages = || world.space.pmap().pages_from(world.first);
        let page = |index| world.vm.page(frame_at(world.first, index));
        let own = TestList::lock_more(page(PAGE));
        for taken in [0, PAGE + 1, pte::ENTRIES - 1] {
            let list = TestList::lock_more(page(taken));
            assert!(PvRun::try_around(pages(), pte::ENTRIES, PAGE).is_none());
            for index in 0..pte::ENTRIES {
                let held = index == taken || index == PAGE;
                assert_eq!(page(index).is_pv_locked(), held, "page {index}");
            }
            drop(list);
        }
        let run = PvRun::try_around(pages(), pte::ENTRIES, PAGE);
        assert!((0..pte::ENTRIES).all(|index| page(index).is_pv_locked()));
        drop(run);
        assert!(page(PAGE).is_pv_locked(), "the caller's");
        drop(own);
        let run = PvRun::lock(pages(), pte::ENTRIES);
        assert!((0..pte::ENTRIES).all(|index| page(index).is_pv_locked()));
        drop(run);
        assert!((0..pte::ENTRIES).all(|index| !page(index).is_pv_locked()));
    });
}

/// The bit is cleared when the page that stands for all is asked.
#[test]
fn one_page_stands_for_all() {
    let machine = Hosted::with_memory(1, 16 << 20).expect("memory");
    machine.on_cpu(0, || {
        let world = World::new(&machine);
        let chosen = (AT / SIZE) % pte::ENTRIES;
        assert!(world.used(chosen + 1) && world.used(chosen + 1));
        assert!(world.used(chosen) && !world.used(chosen));
        assert!(!world.used(chosen + 1));
    });
}
