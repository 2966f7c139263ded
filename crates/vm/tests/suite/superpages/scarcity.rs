//! Reservations, refusals, and superpages that go to the swap space.

use super::*;

/// Frames are never refused while one is free: not while it is only reserved.
#[test]
fn reservations_give_way() {
    let vm = large(16).vm();
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
    // The slots have lost their blocks and take other frames.
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
        let vm = large(4).vm();
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

/// Each allocation on the way to a superpage fails once. A block that is not available is no
/// failure; whatever is refused leaves all as it was.
#[test]
fn failures_leave_all_as_it_was() {
    each(1..12, |nth| {
        let vm = large(16).vm();
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
    let vm = large(8).vm();
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
    let vm = large(8).swap(16_384).vm();
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
    assert_eq!(vm.swap_slots().expect("a swap space").used, 0);
}

#[test]
fn a_superpage_that_is_locked_in_memory_stays_one() {
    let vm = large(16).swap(16_384).vm();
    let space = promoted(&vm);
    space.lock(whole(), Bring::Now).expect("lock");
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
    let vm = large(16).vm();
    let space = promoted(&vm);
    let hold = |index| held(&space, index);
    assert!(vm.test_modified(&hold(1)) && vm.test_modified(&hold(2)));
    assert_eq!(space.pmap().superpages(), 1);
    space.protect(page(0), Prot::READ).expect("protect");
    assert!(vm.test_modified(&hold(1)) && !vm.test_modified(&hold(1)));
    assert!(vm.test_modified(&hold(3)));
    end(&vm, space);
}
