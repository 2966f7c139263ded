//! Superpages: how memory comes to be mapped by them, what takes them apart, and that
//! content, accessed and dirty bits and frames survive it.

use hosted::{Hosted, Stats};
use machine::{Asid, Flush, Mmu, PAGE_SIZE, Topology, VaRange};
use std::sync::Arc;
use vm::pager::MemoryPager;
use vm::policy::Reservation;
use vm::swap::SwapSpace;
use vm::{Advice, At, Best, Error, Flags, Move, Options, Prot, Request, Space, Superpages, Vm};

const MIB: usize = 1 << 20;
const HUGE: usize = 2 * MIB;
const PAGES: usize = HUGE / PAGE_SIZE;
const AT: usize = 1 << 42;

type System = Arc<Vm<Hosted, Best>>;
type TestSpace = Space<Hosted, Best>;

fn system_with(mib: usize, superpages: Superpages) -> System {
    let machine = Hosted::with_memory(2, mib * MIB).expect("memory");
    machine.attach(0);
    let options = Options {
        superpages,
        ..Options::default()
    };
    Vm::with_options(machine, options)
}

/// With a swap space of 64 MiB.
fn system_with_swap(mib: usize) -> System {
    let machine = Hosted::with_memory(2, mib * MIB).expect("memory");
    machine.attach(0);
    let swap = SwapSpace::new(machine.cpus(), Box::new(MemoryPager::new()), 16_384);
    let options = Options {
        superpages: Superpages::Always,
        swap_pages: Some(1 << 30),
        swap_space: Some(Arc::new(swap.expect("a swap space"))),
        ..Options::default()
    };
    Vm::with_options(machine, options)
}

fn system(mib: usize) -> System {
    system_with(mib, Superpages::Always)
}

/// Runs each round on a CPU of its own.
fn each<T: Send>(rounds: impl IntoIterator<Item = T>, round: impl Fn(T) + Sync) {
    for item in rounds {
        std::thread::scope(|scope| {
            scope.spawn(|| round(item));
        });
    }
}

/// A space with `slots` slots mapped at [`AT`].
fn space(vm: &System, slots: usize) -> TestSpace {
    let space = Space::new(vm).expect("a space");
    let range = VaRange::sized(AT, slots * HUGE);
    space.map_fixed(range, Prot::READ_WRITE).expect("map");
    space.activate();
    space
}

fn at(page: usize) -> usize {
    AT + page * PAGE_SIZE
}

fn page(page: usize) -> VaRange {
    VaRange::sized(at(page), PAGE_SIZE)
}

fn whole() -> VaRange {
    VaRange::sized(AT, HUGE)
}

/// Stores in `pages` something that tells them apart.
fn fill(space: &TestSpace, pages: impl Iterator<Item = usize>) {
    for page in pages {
        space.store(at(page), page as u64 + 1).expect("store");
    }
}

/// Sees that `pages` have what [`fill`] stored.
#[track_caller]
fn check(space: &TestSpace, pages: impl Iterator<Item = usize>) {
    space.activate();
    for page in pages {
        assert_eq!(space.load(at(page)), Ok(page as u64 + 1), "page {page}");
    }
}

/// A space whose one slot is a superpage.
fn promoted(vm: &System) -> TestSpace {
    let space = space(vm, 1);
    fill(&space, 0..PAGES);
    assert_eq!(space.pmap().superpages(), 1);
    space
}

fn stats(vm: &System) -> Stats {
    vm.machine().stats().into_iter().sum()
}

/// Drops the space, and sees that nothing is left of it.
#[track_caller]
fn end(vm: &System, space: TestSpace) {
    drop(space);
    assert_eq!(vm.frames().free_count(), vm.frames().total(), "frames");
    assert_eq!(vm.swap().reserved(), 0, "swap");
    vm.frames().drain();
    let blocks = std::iter::from_fn(|| vm.frames().allocate_block(vm.machine()));
    let blocks: Vec<_> = blocks.collect();
    assert_eq!(blocks.len(), vm.frames().total() / PAGES, "whole blocks");
    let give_back = |first| vm.frames().free_block(vm.machine(), first);
    blocks.into_iter().for_each(give_back);
}

#[test]
fn a_slot_that_is_full_is_one_translation() {
    let vm = system(16);
    let space = space(&vm, 1);
    fill(&space, 0..PAGES - 1);
    assert_eq!(space.pmap().superpages(), 0);
    fill(&space, PAGES - 1..PAGES);
    assert_eq!(space.pmap().superpages(), 1);
    assert_eq!(space.pmap().resident(), PAGES);
    let first = space.pmap().lookup(AT).expect("a page");
    assert!(first.index().is_multiple_of(PAGES));
    for index in 0..PAGES {
        let frame = space.pmap().lookup(at(index)).expect("a page");
        assert_eq!(frame.index(), first.index() + index);
    }
    forget(&vm);
    let before = stats(&vm);
    check(&space, 0..PAGES);
    let after = stats(&vm);
    assert_eq!(after.walks - before.walks, 1, "one TLB entry");
    assert_eq!(after.faults, before.faults);
    assert_eq!(space.incore(whole()).expect("incore"), [true; PAGES]);
    end(&vm, space);
}

#[test]
fn pages_may_come_in_any_order() {
    let vm = system(16);
    let space = space(&vm, 2);
    fill(&space, (0..PAGES).rev());
    fill(&space, (0..PAGES).map(|page| PAGES + page * 37 % PAGES));
    assert_eq!(space.pmap().superpages(), 2);
    check(&space, 0..2 * PAGES);
    end(&vm, space);
}

#[test]
fn who_gets_them_is_an_option() {
    let options = [
        (Superpages::Never, 0, 0, 0),
        (Superpages::Advised, 0, 1, 0),
        (Superpages::Always, 1, 1, 0),
    ];
    each(options, |(superpages, plain, advised, refused)| {
        let vm = system_with(16, superpages);
        for (flags, expected) in [
            (Flags::NONE, plain),
            (Flags::HUGE, advised),
            (Flags::NO_HUGE, refused),
        ] {
            let space = Space::new(&vm).expect("a space");
            space.activate();
            let request = Request::anonymous(HUGE, Prot::READ_WRITE);
            let request = request.with(flags).at(At::Fixed(AT)).populated();
            space.map_as(&request).expect("map");
            assert_eq!(space.pmap().resident(), PAGES);
            let got = space.pmap().superpages();
            assert_eq!(got, expected, "{superpages:?} {flags:?}");
            end(&vm, space);
        }
    });
    assert_eq!(Superpages::default(), Superpages::Advised);
}

#[test]
fn advice_comes_in_time_or_not() {
    let vm = system_with(16, Superpages::Advised);
    let space = space(&vm, 1);
    space.advise(whole(), Advice::Huge).expect("advise");
    fill(&space, 0..PAGES);
    assert_eq!(space.pmap().superpages(), 1);
    space.advise(whole(), Advice::NoHuge).expect("advise");
    assert_eq!(space.pmap().superpages(), 0);
    check(&space, 0..PAGES);
    end(&vm, space);
}

#[test]
fn a_slot_that_is_mapped_in_part_gets_none() {
    let vm = system(16);
    let space = space(&vm, 1);
    space.unmap(page(7)).expect("unmap");
    fill(&space, (0..PAGES).filter(|&page| page != 7));
    space.map_fixed(page(7), Prot::READ_WRITE).expect("map");
    fill(&space, 7..8);
    assert_eq!(space.pmap().superpages(), 0);
    check(&space, 0..PAGES);
    end(&vm, space);
}

#[test]
fn a_slot_of_several_mappings_gets_none() {
    let vm = system(16);
    let space = space(&vm, 1);
    space.advise(page(7), Advice::Random).expect("advise");
    fill(&space, 0..PAGES);
    assert_eq!(space.pmap().superpages(), 0);
    space.advise(page(7), Advice::Normal).expect("advise");
    space.discard(whole()).expect("discard");
    fill(&space, 0..PAGES);
    assert_eq!(space.pmap().superpages(), 1);
    end(&vm, space);
}

#[test]
fn without_a_whole_block_there_are_pages() {
    let vm = system(6);
    let mut frames = Vec::new();
    // One frame of each block.
    while let Some(first) = vm.frames().allocate_block(vm.machine()) {
        frames.push(first);
    }
    for &first in &frames {
        for frame in first.0 + 1..first.0 + PAGES as u32 {
            vm.frames().free(vm.machine(), machine::Frame(frame), false);
        }
    }
    let space = space(&vm, 1);
    fill(&space, 0..PAGES);
    assert_eq!(space.pmap().superpages(), 0);
    check(&space, 0..PAGES);
    for first in frames {
        vm.frames().free(vm.machine(), first, false);
    }
    end(&vm, space);
}

#[test]
fn a_whole_superpage_goes_at_once_and_stays_a_block() {
    let vm = system(16);
    let space = promoted(&vm);
    let before = stats(&vm).local_flushes;
    space.unmap(whole()).expect("unmap");
    assert_eq!(stats(&vm).local_flushes - before, 1, "one flush");
    assert_eq!(space.pmap().superpages(), 0);
    assert_eq!(space.pmap().resident(), 0);
    assert!(matches!(space.load(at(3)), Err(Error::Segv(_))));
    space.map_fixed(whole(), Prot::READ_WRITE).expect("map");
    for index in 0..PAGES {
        assert_eq!(space.load(at(index)), Ok(0), "zeroes again");
    }
    assert_eq!(space.pmap().superpages(), 1);
    space.discard(whole()).expect("discard");
    assert_eq!(space.load(at(5)), Ok(0));
    assert_eq!(space.pmap().resident(), 1);
    end(&vm, space);
}

#[test]
fn many_superpages_go_at_once() {
    const SLOTS: usize = 20;
    let vm = system(64);
    let space = space(&vm, SLOTS);
    fill(&space, 0..SLOTS * PAGES);
    assert_eq!(space.pmap().superpages(), SLOTS);
    let range = VaRange::sized(AT + PAGE_SIZE, SLOTS * HUGE - 2 * PAGE_SIZE);
    space.unmap(range).expect("unmap");
    assert_eq!(space.pmap().resident(), 2);
    check(&space, [0, SLOTS * PAGES - 1].into_iter());
    end(&vm, space);
}

#[test]
fn a_part_that_goes_leaves_the_rest_as_pages() {
    let changes: [fn(&TestSpace); 3] = [
        |space| space.unmap(page(9)).expect("unmap"),
        |space| space.discard(page(9)).expect("discard"),
        |space| space.map_fixed(page(9), Prot::READ).expect("map"),
    ];
    each(changes, |change| {
        let vm = system(16);
        let space = promoted(&vm);
        change(&space);
        assert_eq!(space.pmap().superpages(), 0);
        assert_eq!(space.pmap().resident(), PAGES - 1);
        check(&space, (0..PAGES).filter(|&page| page != 9));
        assert_ne!(space.load(at(9)), Ok(10));
        fill(&space, (0..PAGES).filter(|&page| page != 9));
        end(&vm, space);
    });
}

#[test]
fn rights_of_all_stay_one_entry_and_rights_of_a_part_do_not() {
    let vm = system(16);
    let space = promoted(&vm);
    space.protect(whole(), Prot::READ).expect("protect");
    assert_eq!(space.pmap().superpages(), 1);
    assert!(matches!(space.store(at(1), 0), Err(Error::Segv(_))));
    check(&space, 0..PAGES);
    space.protect(whole(), Prot::READ_WRITE).expect("protect");
    assert_eq!(space.pmap().superpages(), 1);
    fill(&space, 0..PAGES);
    space.protect(page(1), Prot::READ).expect("protect");
    assert_eq!(space.pmap().superpages(), 0);
    assert!(matches!(space.store(at(1), 0), Err(Error::Segv(_))));
    check(&space, 0..PAGES);
    fill(&space, (0..PAGES).filter(|&page| page != 1));
    end(&vm, space);
}

/// A page that somebody holds is not his alone who has it mapped.
#[test]
fn rights_to_write_need_the_pages_alone() {
    let vm = system(16);
    let space = promoted(&vm);
    space.protect(whole(), Prot::READ).expect("protect");
    let frame = space.pmap().lookup(at(4)).expect("a page");
    let hold = vm.hold(frame).expect("held");
    space.protect(whole(), Prot::READ_WRITE).expect("protect");
    assert_eq!(space.pmap().superpages(), 0);
    space.store(at(4), 99).expect("store");
    assert_ne!(space.pmap().lookup(at(4)), Some(frame), "a copy");
    assert_eq!(space.load(at(4)), Ok(99));
    check(&space, (0..PAGES).filter(|&page| page != 4));
    drop(hold);
    end(&vm, space);
}

#[test]
fn a_child_shares_pages_and_neither_sees_the_others_stores() {
    let vm = system(32);
    let parent = promoted(&vm);
    let child = parent.fork().expect("fork");
    assert_eq!(parent.pmap().superpages() + child.pmap().superpages(), 0);
    assert_eq!(parent.pmap().lookup(at(5)), child.pmap().lookup(at(5)));
    parent.store(at(5), 500).expect("store");
    child.activate();
    child.store(at(6), 600).expect("store");
    check(&child, (0..PAGES).filter(|&page| page != 6));
    check(&parent, (0..PAGES).filter(|&page| page != 5));
    assert_eq!(parent.load(at(5)), Ok(500));
    child.activate();
    assert_eq!(child.load(at(6)), Ok(600));
    drop(child);
    end(&vm, parent);
}

#[test]
fn who_is_left_alone_gets_the_superpage_back() {
    let vm = system(32);
    let parent = promoted(&vm);
    drop(parent.fork().expect("fork"));
    assert_eq!(parent.pmap().superpages(), 0);
    fill(&parent, 0..PAGES);
    assert_eq!(parent.pmap().superpages(), 1);
    let child = parent.fork().expect("fork");
    drop(parent);
    child.activate();
    check(&child, 0..PAGES);
    end(&vm, child);
}

#[test]
fn a_fork_while_a_slot_fills_copies_what_is_there() {
    let vm = system(32);
    let parent = space(&vm, 1);
    fill(&parent, 0..100);
    let child = parent.fork().expect("fork");
    fill(&parent, 0..PAGES);
    assert_eq!(parent.pmap().superpages(), 0);
    check(&parent, 0..PAGES);
    check(&child, 0..100);
    assert_eq!(child.load(at(100)), Ok(0));
    drop(child);
    end(&vm, parent);
}

#[test]
fn what_moves_keeps_its_content() {
    let vm = system(32);
    let space = promoted(&vm);
    let to = AT + 16 * HUGE;
    assert_eq!(space.remap(whole(), HUGE, Move::To(to)), Ok(to));
    assert_eq!(space.pmap().superpages(), 0);
    for index in 0..PAGES {
        let address = to + index * PAGE_SIZE;
        assert_eq!(space.load(address), Ok(index as u64 + 1));
    }
    assert!(matches!(space.load(AT), Err(Error::Segv(_))));
    end(&vm, space);
}

#[test]
fn a_part_that_moves_keeps_its_content() {
    let vm = system(32);
    let space = promoted(&vm);
    let to = AT + 16 * HUGE;
    assert_eq!(space.remap(page(8), PAGE_SIZE, Move::To(to)), Ok(to));
    assert_eq!(space.load(to), Ok(9));
    check(&space, (0..PAGES).filter(|&page| page != 8));
    end(&vm, space);
}

#[test]
fn removal_by_the_reverse_map_takes_one_page() {
    let vm = system(16);
    let space = promoted(&vm);
    let frame = space.pmap().lookup(at(77)).expect("a page");
    let hold = vm.hold(frame).expect("held");
    let removed = vm.remove_all(&hold);
    assert!(removed.dirty && removed.referenced);
    assert_eq!((removed.mappings, removed.retries), (1, 0));
    assert_eq!(space.pmap().superpages(), 0);
    assert_eq!(space.pmap().resident(), PAGES - 1);
    assert_eq!(space.load(at(77)), Ok(0), "gone with its content");
    check(&space, (0..PAGES).filter(|&page| page != 77));
    drop(hold);
    end(&vm, space);
}

/// Makes all CPUs walk again, as after a long time.
fn forget(vm: &System) {
    for asid in 0..8 {
        vm.machine().flush_local(Asid(asid), Flush::All);
    }
}

#[test]
fn one_dirty_page_makes_all_of_it_dirty() {
    let vm = system(16);
    let space = space(&vm, 1);
    for index in 0..PAGES {
        space.load(at(index)).expect("load");
    }
    assert_eq!(space.pmap().superpages(), 1);
    let clean = |index| {
        let frame = space.pmap().lookup(at(index)).expect("a page");
        let removed = vm.remove_all(&vm.hold(frame).expect("held"));
        assert!(removed.referenced);
        !removed.dirty
    };
    assert!(clean(3), "nobody has stored anything");
    space.discard(whole()).expect("discard");
    for index in 0..PAGES {
        match index {
            200 => space.store(at(index), 1).expect("store"),
            _ => drop(space.load(at(index)).expect("load")),
        }
    }
    assert_eq!(space.pmap().superpages(), 1);
    // Handed to each page by the first removal, which demotes.
    assert!(!clean(3) && !clean(4) && !clean(200));
    end(&vm, space);
}

#[test]
fn a_store_through_the_superpage_is_not_lost() {
    let vm = system(16);
    let space = space(&vm, 1);
    for index in 0..PAGES {
        space.load(at(index)).expect("load");
    }
    space.store(at(9), 10).expect("store");
    assert_eq!(space.pmap().superpages(), 1);
    space.protect(page(300), Prot::READ).expect("protect");
    let frame = space.pmap().lookup(at(9)).expect("a page");
    assert!(vm.remove_all(&vm.hold(frame).expect("held")).dirty);
    end(&vm, space);
}

#[test]
fn a_whole_superpage_hands_its_bits_to_the_pages() {
    let vm = system(16);
    let space = promoted(&vm);
    let frame = space.pmap().lookup(at(9)).expect("a page");
    let hold = vm.hold(frame).expect("held");
    space.unmap(whole()).expect("unmap");
    let removed = vm.remove_all(&hold);
    assert!(removed.dirty && removed.referenced);
    assert_eq!(removed.mappings, 0);
    drop(hold);
    end(&vm, space);
}

#[test]
fn use_is_seen_through_a_superpage() {
    let vm = system(16);
    let space = promoted(&vm);
    let hold = |index| {
        let frame = space.pmap().lookup(at(index)).expect("a page");
        vm.hold(frame).expect("held")
    };
    let used = || {
        (0..PAGES)
            .filter(|&index| vm.test_referenced(&hold(index)))
            .count()
    };
    let sweep = [used(), used()];
    assert!(sweep[0] >= 1 && sweep[1] < PAGES, "{sweep:?}");
    assert_eq!(used(), 0, "nobody has used it since");
    forget(&vm);
    space.load(at(1)).expect("load");
    assert!(used() >= 1, "one of its pages was used");
    assert_eq!(
        space.pmap().superpages(),
        1,
        "nothing is demoted to see that"
    );
    forget(&vm);
    space.load(at(1)).expect("load");
    space.protect(page(0), Prot::READ).expect("protect");
    assert!(
        (0..PAGES).all(|index| vm.test_referenced(&hold(index))),
        "handed over"
    );
    end(&vm, space);
}

#[test]
fn the_kernels_stores_are_marked() {
    let vm = system(16);
    let space = space(&vm, 1);
    for index in 0..PAGES {
        space.load(at(index)).expect("load");
    }
    space.copy_out(at(12), &7_u64.to_le_bytes()).expect("copy");
    assert_eq!(space.pmap().superpages(), 1);
    assert_eq!(space.load(at(12)), Ok(7));
    let frame = space.pmap().lookup(at(12)).expect("a page");
    assert!(vm.remove_all(&vm.hold(frame).expect("held")).dirty);
    end(&vm, space);
}

/// Frames are never refused while one is free: not while it is only reserved.
#[test]
fn reservations_give_way() {
    let vm = system(16);
    let space = space(&vm, 4);
    // A page in each of four slots reserves four blocks.
    fill(&space, (0..4).map(|slot| slot * PAGES + slot));
    let free = vm.frames().free_count();
    let mut taken = Vec::new();
    while let Ok(page) = vm.new_page() {
        taken.push(page);
    }
    assert_eq!(taken.len(), free, "all that was free");
    assert_eq!(vm.frames().free_count(), 0);
    taken.truncate(free - 3 * PAGES);
    // The slots have lost their blocks and go on with what there is.
    fill(&space, 0..PAGES);
    fill(&space, (0..4).map(|slot| slot * PAGES + slot));
    assert_eq!(space.pmap().superpages(), 0);
    check(&space, 0..PAGES);
    drop(taken);
    end(&vm, space);
}

#[test]
fn what_is_reserved_is_given_back_with_the_reason_for_it() {
    let changes: [fn(&TestSpace); 5] = [
        |space| space.unmap(page(300)).expect("unmap"),
        |space| space.protect(page(300), Prot::READ).expect("protect"),
        |space| space.advise(page(300), Advice::Random).expect("advise"),
        |space| space.advise(whole(), Advice::NoHuge).expect("advise"),
        |space| space.discard(page(0)).expect("discard"),
    ];
    each(changes, |change| {
        // Two blocks: one for tables, one to reserve.
        let vm = system(4);
        let space = space(&vm, 1);
        fill(&space, 0..2);
        vm.frames().drain();
        assert!(vm.frames().allocate_block(vm.machine()).is_none());
        change(&space);
        // The block is broken, but all of its rest is in the pool.
        let free = vm.frames().free_count();
        fill(&space, 2..300);
        assert_eq!(space.pmap().superpages(), 0);
        assert!(free - vm.frames().free_count() <= 300);
        end(&vm, space);
    });
}

/// Each allocation on the way to a superpage fails once. A block that can not be had is no
/// failure; whatever is refused leaves all as it was.
#[test]
fn failures_leave_all_as_it_was() {
    each(1..12, |nth| {
        let vm = system(16);
        let space = space(&vm, 1);
        let state = || (vm.frames().free_count(), space.pmap().resident());
        let before = state();
        vm.frames().fail_after(nth);
        let result = space.store(AT, 1);
        vm.frames().fail_after(0);
        if result.is_err() {
            assert_eq!(state(), before, "allocation {nth}");
        }
        fill(&space, 0..PAGES);
        check(&space, 0..PAGES);
        let superpages = space.pmap().superpages();
        assert!(superpages == 1 || result.is_ok(), "allocation {nth}");
        end(&vm, space);
    });
}

#[test]
fn a_superpage_is_taken_apart_without_memory() {
    let vm = system(8);
    let space = promoted(&vm);
    let taken: Vec<_> = std::iter::from_fn(|| vm.new_page().ok()).collect();
    assert_eq!(vm.frames().free_count(), 0);
    space.protect(page(5), Prot::READ).expect("protect");
    assert_eq!(space.pmap().superpages(), 0);
    space.discard(page(6)).expect("discard");
    check(&space, (0..PAGES).filter(|&page| page != 6));
    drop(taken);
    end(&vm, space);
}

#[test]
fn superpages_go_to_the_swap_space_page_by_page() {
    const SLOTS: usize = 6;
    let vm = system_with_swap(8);
    let space = space(&vm, SLOTS);
    let mut seen = 0;
    for slot in 0..SLOTS {
        fill(&space, slot * PAGES..(slot + 1) * PAGES);
        seen += space.pmap().superpages();
    }
    assert!(seen > 0, "some were superpages before memory was short");
    check(&space, 0..SLOTS * PAGES);
    fill(&space, 0..SLOTS * PAGES);
    check(&space, (0..SLOTS * PAGES).rev());
    end(&vm, space);
    assert_eq!(vm.swap_space().expect("a swap space").used(), 0);
}

#[test]
fn a_superpage_that_is_locked_in_memory_stays_one() {
    let vm = system_with_swap(16);
    let space = promoted(&vm);
    space.lock(whole(), false).expect("lock");
    assert_eq!(space.pmap().superpages(), 1);
    assert_eq!(vm.reclaim(64), 0, "all that is used is locked");
    assert_eq!(space.pmap().superpages(), 1);
    space.unlock(whole()).expect("unlock");
    assert!(vm.reclaim(64) >= 64);
    assert_eq!(space.pmap().superpages(), 0);
    check(&space, 0..PAGES);
    end(&vm, space);
}

#[test]
fn who_asks_for_one_page_does_not_make_all_clean() {
    let vm = system(16);
    let space = promoted(&vm);
    let hold = |index| {
        let frame = space.pmap().lookup(at(index)).expect("a page");
        vm.hold(frame).expect("held")
    };
    assert!(vm.test_modified(&hold(1)) && vm.test_modified(&hold(2)));
    assert_eq!(space.pmap().superpages(), 1);
    space.protect(page(0), Prot::READ).expect("protect");
    assert!(vm.test_modified(&hold(1)) && !vm.test_modified(&hold(1)));
    assert!(vm.test_modified(&hold(3)));
    end(&vm, space);
}
