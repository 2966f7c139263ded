//! Operations that take superpages, or take them apart: unmap, protect, fork, moves, the reverse
//! map.

use super::*;

#[test]
fn a_whole_superpage_goes_at_once_and_stays_a_block() {
    let vm = large(16).vm();
    let space = promoted(&vm);
    let before = stats(&vm).local_flushes;
    space.unmap(whole()).expect("unmap");
    assert_eq!(stats(&vm).local_flushes - before, 1, "one flush");
    assert_eq!(space.pmap().superpages(), 0);
    assert_eq!(space.pmap().resident(), 0);
    assert!(is_segv(space.load(at(3))));
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
    let vm = large(64).vm();
    let space = space(&vm, SLOTS);
    fill(&space, 0..SLOTS * PAGES);
    assert_eq!(space.pmap().superpages(), SLOTS);
    let range = VaRange::sized(AT + P, SLOTS * SLOT - 2 * P);
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
        let vm = large(16).vm();
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
    let vm = large(16).vm();
    let space = promoted(&vm);
    space.protect(whole(), Prot::READ).expect("protect");
    assert_eq!(space.pmap().superpages(), 1);
    assert!(is_segv(space.store(at(1), 0)));
    check(&space, 0..PAGES);
    space.protect(whole(), Prot::READ_WRITE).expect("protect");
    assert_eq!(space.pmap().superpages(), 1);
    fill(&space, 0..PAGES);
    space.protect(page(1), Prot::READ).expect("protect");
    assert_eq!(space.pmap().superpages(), 0);
    assert!(is_segv(space.store(at(1), 0)));
    check(&space, 0..PAGES);
    fill(&space, (0..PAGES).filter(|&page| page != 1));
    end(&vm, space);
}

/// A page that a task holds is not its mapping's alone.
#[test]
fn rights_to_write_need_the_pages_alone() {
    let vm = large(16).vm();
    let space = promoted(&vm);
    space.protect(whole(), Prot::READ).expect("protect");
    let hold = held(&space, 4);
    space.protect(whole(), Prot::READ_WRITE).expect("protect");
    assert_eq!(space.pmap().superpages(), 0);
    space.store(at(4), 99).expect("store");
    assert_ne!(space.pmap().lookup(at(4)), Some(hold.frame()), "a copy");
    assert_eq!(space.load(at(4)), Ok(99));
    check(&space, (0..PAGES).filter(|&page| page != 4));
    drop(hold);
    end(&vm, space);
}

#[test]
fn a_child_shares_pages_and_neither_sees_the_others_stores() {
    let vm = large(32).vm();
    let parent = promoted(&vm);
    let child = parent.fork().expect("fork");
    assert_eq!(parent.pmap().superpages() + child.pmap().superpages(), 0);
    assert_eq!(parent.pmap().lookup(at(5)), child.pmap().lookup(at(5)));
    store(&parent, at(5), 500);
    store(&child, at(6), 600);
    check(&child, (0..PAGES).filter(|&page| page != 6));
    check(&parent, (0..PAGES).filter(|&page| page != 5));
    assert_eq!((load(&parent, at(5)), load(&child, at(6))), (500, 600));
    drop(child);
    end(&vm, parent);
}

#[test]
fn who_is_left_alone_gets_the_superpage_back() {
    let vm = large(32).vm();
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
    let vm = large(32).vm();
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
    let vm = large(32).vm();
    let space = promoted(&vm);
    let to = AT + 16 * SLOT;
    assert_eq!(space.remap(whole(), SLOT, Move::To(to)), Ok(to));
    assert_eq!(space.pmap().superpages(), 0);
    for index in 0..PAGES {
        let address = to + index * P;
        assert_eq!(space.load(address), Ok(index as u64 + 1));
    }
    assert!(is_segv(space.load(AT)));
    end(&vm, space);
}

#[test]
fn removal_by_the_reverse_map_takes_one_page() {
    let vm = large(16).vm();
    let space = promoted(&vm);
    let hold = held(&space, 77);
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
