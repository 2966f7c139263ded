//! Where memory is mapped by superpages, and where it is not.

use super::*;

#[test]
fn a_slot_that_is_full_is_one_translation() {
    let vm = large(16).vm();
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
    let vm = large(16).vm();
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
        let vm = world(16)
            .with(|options| options.superpages = superpages)
            .vm();
        for (flags, expected) in [
            (Flags::NONE, plain),
            (Flags::HUGE, advised),
            (Flags::NO_HUGE, refused),
        ] {
            let space = active(&vm);
            let request = Request::anonymous(SLOT, Prot::READ_WRITE);
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
    let vm = world(16)
        .with(|options| options.superpages = Superpages::Advised)
        .vm();
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
    let vm = large(16).vm();
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
    let vm = large(16).vm();
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
    let vm = large(6).vm();
    let mut frames = Vec::new();
    // One frame of each block.
    while let Some(first) = vm.frames().allocate_block(vm.machine()) {
        frames.push(first);
    }
    for &first in &frames {
        for frame in first.0 + 1..first.0 + PAGES as u32 {
            // SAFETY: the frames were given out, and nothing uses them.
            unsafe { vm.frames().free(vm.machine(), Frame(frame), Content::Any) };
        }
    }
    let space = space(&vm, 1);
    fill(&space, 0..PAGES);
    assert_eq!(space.pmap().superpages(), 0);
    check(&space, 0..PAGES);
    for first in frames {
        // SAFETY: the frames were given out, and nothing uses them.
        unsafe { vm.frames().free(vm.machine(), first, Content::Any) };
    }
    end(&vm, space);
}
