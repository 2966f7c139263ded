//! Accessed and dirty bits.

use super::*;

#[test]
fn one_dirty_page_makes_all_of_it_dirty() {
    let vm = large(16).vm();
    let space = space(&vm, 1);
    look(&space);
    assert_eq!(space.pmap().superpages(), 1);
    let clean = |index| {
        let removed = vm.remove_all(&held(&space, index));
        assert!(removed.referenced);
        !removed.dirty
    };
    assert!(clean(3), "no task has stored");
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
    let vm = large(16).vm();
    let space = space(&vm, 1);
    look(&space);
    space.store(at(9), 10).expect("store");
    assert_eq!(space.pmap().superpages(), 1);
    space.protect(page(300), Prot::READ).expect("protect");
    assert!(vm.remove_all(&held(&space, 9)).dirty);
    end(&vm, space);
}

#[test]
fn a_whole_superpage_hands_its_bits_to_the_pages() {
    let vm = large(16).vm();
    let space = promoted(&vm);
    let hold = held(&space, 9);
    space.unmap(whole()).expect("unmap");
    let removed = vm.remove_all(&hold);
    assert!(removed.dirty && removed.referenced);
    assert_eq!(removed.mappings, 0);
    drop(hold);
    end(&vm, space);
}

#[test]
fn use_is_seen_through_a_superpage() {
    let vm = large(16).vm();
    let space = promoted(&vm);
    let hold = |index| held(&space, index);
    let used = || {
        (0..PAGES)
            .filter(|&index| vm.test_referenced(&hold(index)))
            .count()
    };
    let sweep = [used(), used()];
    assert!(sweep[0] >= 1 && sweep[1] < PAGES, "{sweep:?}");
    assert_eq!(used(), 0, "no task has used it since");
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
    let vm = large(16).vm();
    let space = space(&vm, 1);
    look(&space);
    space.copy_out(at(12), &7_u64.to_le_bytes()).expect("copy");
    assert_eq!(space.pmap().superpages(), 1);
    assert_eq!(space.load(at(12)), Ok(7));
    assert!(vm.remove_all(&held(&space, 12)).dirty);
    end(&vm, space);
}
