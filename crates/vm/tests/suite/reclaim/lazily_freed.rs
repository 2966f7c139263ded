//! `MADV_FREE`: pages stay until memory is short, and keep their content from the first
//! store on.

use crate::world::{
    MIB, P, System, TestSpace, World, active, nothing_left, page, pages, squeeze, swapped, world,
};
use machine::VaRange;
use std::thread;
use vm::{Advice, Bring, Error, Move, Prot, Request, Superpages};

const PAGES: usize = 16;

/// Little memory without superpages.
fn small() -> World {
    world(8)
        .swap(4_096)
        .with(|options| options.superpages = Superpages::Never)
}

/// Two words of a page.
fn words(at: usize, page: usize) -> [usize; 2] {
    let at = at + page * P;
    [at, at + P - 8]
}

fn store_all(space: &TestSpace, at: usize, count: usize) {
    for page in 0..count {
        for word in words(at, page) {
            space.store(word, word as u64).expect("store");
        }
    }
}

/// Returns true if the page has the content from `store_all`; else it must be zero.
fn is_kept(space: &TestSpace, at: usize, page: usize) -> bool {
    let found = words(at, page).map(|word| space.load(word).expect("load"));
    let kept = found == words(at, page).map(|word| word as u64);
    assert!(kept || found == [0, 0], "page {page} has {found:?}");
    kept
}

/// Memory whose pages were touched and have been given up.
fn given_up(space: &TestSpace, pages: usize) -> usize {
    let at = space.map(pages * P, Prot::READ_WRITE).expect("map");
    store_all(space, at, pages);
    free(space, at, pages);
    at
}

fn free(space: &TestSpace, at: usize, count: usize) {
    space
        .advise(pages(at, count), Advice::Free)
        .expect("advise");
}

fn lazily_freed(space: &TestSpace) -> u64 {
    let footprints = space.scan(0, usize::MAX).expect("memory");
    footprints.iter().map(|one| one.lazily_freed).sum()
}

#[test]
fn pages_stay_until_memory_is_short() {
    let vm = small().vm();
    let space = active(&vm);
    let at = given_up(&space, PAGES);
    assert_eq!(lazily_freed(&space), PAGES as u64);
    assert_eq!(space.stats().private, PAGES as u64);
    assert!((0..PAGES).all(|page| is_kept(&space, at, page)));
    // Reading them has made them no dearer.
    squeeze(&vm);
    assert_eq!((space.stats().private, space.stats().swapped), (0, 0));
    assert_eq!(swapped(&vm), 0);
    assert!(!(0..PAGES).any(|page| is_kept(&space, at, page)));
    drop(space);
    nothing_left(&vm);
}

#[test]
fn whoever_writes_keeps_the_page() {
    let vm = small().vm();
    let space = active(&vm);
    let at = given_up(&space, PAGES);
    let own = |page: usize| words(at, page)[0] as u64;
    for page in (0..PAGES).step_by(4) {
        space.store(words(at, page)[0], own(page)).expect("store");
        let kernel = words(at, page + 1)[0];
        let copied = space.copy_out(kernel, &own(page + 1).to_le_bytes());
        copied.expect("copy");
    }
    assert_eq!(lazily_freed(&space), PAGES as u64 / 2);
    squeeze(&vm);
    assert_eq!(swapped(&vm), PAGES as u64 / 2);
    for page in 0..PAGES {
        assert_eq!(is_kept(&space, at, page), page % 4 < 2, "page {page}");
    }
    // A page that has been read in is not given up any more, and can be anew.
    squeeze(&vm);
    assert!(is_kept(&space, at, 0));
    free(&space, at, 1);
    squeeze(&vm);
    assert!(!is_kept(&space, at, 0));
    drop(space);
    nothing_left(&vm);
}

#[test]
fn who_takes_the_dirty_mark_knows_that_it_was_written() {
    let vm = small().vm();
    let space = active(&vm);
    let at = given_up(&space, 1);
    space.store(at, at as u64).expect("store");
    let frame = space.pmap().lookup(at).expect("a page");
    let hold = vm.hold(frame).expect("held");
    assert!(vm.test_modified(&hold));
    drop(hold);
    squeeze(&vm);
    assert!(is_kept(&space, at, 0));
    drop(space);
    nothing_left(&vm);
}

#[test]
fn a_held_page_is_not_forgotten() {
    let vm = small().vm();
    let space = active(&vm);
    let at = given_up(&space, 1);
    let frame = space.pmap().lookup(at).expect("a page");
    let hold = vm.hold(frame).expect("held");
    squeeze(&vm);
    // It may go to the swap space, but its content stays.
    assert!(is_kept(&space, at, 0));
    drop(hold);
    drop(space);
    nothing_left(&vm);
}

#[test]
fn what_is_in_the_swap_space_goes_at_once() {
    let vm = small().vm();
    let space = active(&vm);
    let at = space.map(PAGES * P, Prot::READ_WRITE).expect("map");
    store_all(&space, at, PAGES);
    squeeze(&vm);
    assert_eq!(swapped(&vm), PAGES as u64);
    free(&space, at, PAGES / 2);
    assert_eq!(swapped(&vm), PAGES as u64 / 2);
    assert_eq!(space.stats().swapped, PAGES as u64 / 2);
    for page in 0..PAGES {
        assert_eq!(is_kept(&space, at, page), page >= PAGES / 2);
    }
    drop(space);
    nothing_left(&vm);
}

#[test]
fn a_relative_loses_nothing() {
    let vm = small().vm();
    let parent = active(&vm);
    let at = parent.map(PAGES * P, Prot::READ_WRITE).expect("map");
    store_all(&parent, at, PAGES);
    let child = parent.fork().expect("fork");
    free(&parent, at, PAGES);
    assert_eq!(lazily_freed(&parent), 0);
    squeeze(&vm);
    child.activate();
    assert!((0..PAGES).all(|page| is_kept(&child, at, page)));
    drop((parent, child));
    nothing_left(&vm);
}

/// A family whose parent has written some of the pages it had given up before it forked: then its
/// entries are dirty, and the child's are not.
fn forked(vm: &System) -> (usize, [TestSpace; 2]) {
    let parent = active(vm);
    let at = given_up(&parent, PAGES);
    for page in (0..PAGES).filter(|&page| was_written(page)) {
        let word = words(at, page)[0];
        parent.store(word, word as u64).expect("store");
    }
    let child = parent.fork().expect("fork");
    child.activate();
    (at, [child, parent])
}

fn was_written(page: usize) -> bool {
    page.is_multiple_of(2)
}

#[test]
fn what_a_parent_wrote_before_a_fork_is_its_childs() {
    let vm = small().vm();
    let (at, family) = forked(&vm);
    squeeze(&vm);
    for member in &family {
        member.activate();
        for page in 0..PAGES {
            assert!(is_kept(member, at, page) || !was_written(page));
        }
    }
    drop(family);
    nothing_left(&vm);
}

#[test]
fn what_a_parent_wrote_is_its_childs_when_it_has_gone() {
    let vm = small().vm();
    let (at, [child, parent]) = forked(&vm);
    drop(parent);
    squeeze(&vm);
    for page in 0..PAGES {
        assert_eq!(is_kept(&child, at, page), was_written(page), "page {page}");
    }
    drop(child);
    nothing_left(&vm);
}

#[test]
fn pages_are_given_up_wherever_they_move() {
    let vm = small().vm();
    let space = active(&vm);
    let at = given_up(&space, PAGES);
    let words: Vec<_> = (0..PAGES).map(|page| words(at, page)[0]).collect();
    for word in words.iter().step_by(2) {
        space.store(*word, *word as u64).expect("store");
    }
    let to = at + (1 << 30);
    let moved = space.remap(pages(at, PAGES), PAGES * P, Move::To(to));
    assert_eq!(moved, Ok(to));
    squeeze(&vm);
    for (page, word) in words.iter().enumerate() {
        let expected = if page % 2 == 0 { *word as u64 } else { 0 };
        assert_eq!(space.load(to + page * P), Ok(expected));
    }
    drop(space);
    nothing_left(&vm);
}

/// A space in which each page of a superpage has been written.
fn with_superpage() -> (System, TestSpace, VaRange) {
    let vm = world(8).superpages().swap(4_096).vm();
    let space = active(&vm);
    let range = pages(1 << 42, 512);
    space.map_fixed(range, Prot::READ_WRITE).expect("map");
    store_all(&space, range.start, range.pages());
    (vm, space, range)
}

/// Its one mark stands for all its pages.
#[test]
fn a_superpage_is_given_up_and_kept_as_one() {
    let (vm, space, range) = with_superpage();
    let (at, pages) = (range.start, range.pages());
    free(&space, at, pages);
    assert_eq!(space.pmap().superpages(), 1);
    assert_eq!(lazily_freed(&space), pages as u64);
    let word = words(at, 77)[1];
    space.store(word, word as u64).expect("store");
    squeeze(&vm);
    assert!((0..pages).all(|page| is_kept(&space, at, page)));
    space.discard(range).expect("discard");
    store_all(&space, at, pages);
    assert_eq!(space.pmap().superpages(), 1);
    free(&space, at, pages);
    squeeze(&vm);
    assert_eq!((space.stats().private, swapped(&vm)), (0, 0));
    assert!(!(0..pages).any(|page| is_kept(&space, at, page)));
    drop(space);
    nothing_left(&vm);
}

#[test]
fn a_part_of_a_superpage_is_given_up_alone() {
    let (vm, space, range) = with_superpage();
    let (at, pages) = (range.start, range.pages());
    free(&space, at, 100);
    let word = words(at, 77)[1];
    space.store(word, word as u64).expect("store");
    squeeze(&vm);
    for page in 0..pages {
        let kept = page >= 100 || page == 77;
        assert_eq!(is_kept(&space, at, page), kept, "page {page}");
    }
    drop(space);
    nothing_left(&vm);
}

#[test]
fn without_swap_space_they_are_what_can_be_had() {
    let space = world(4).cpus(1).space();
    let pages = 4 * MIB / P;
    let at = space.map(2 * pages * P, Prot::READ_WRITE).expect("map");
    for page in 0..2 * pages {
        space.store(at + page * P, 1).expect("store");
        free(&space, at + page * P, 1);
    }
    assert!(space.stats().private > pages as u64 / 2);
    assert_eq!(space.load(at + (2 * pages - 1) * P), Ok(1));
}

#[test]
fn what_can_not_be_given_up_is_refused() {
    let vm = small().vm();
    let space = active(&vm);
    let shared = Request::anonymous(P, Prot::READ_WRITE).shared();
    let shared = space.map_as(&shared).expect("map");
    let at = space.map(P, Prot::READ_WRITE).expect("map");
    space.store(at, 1).expect("store");
    space.lock(page(at), Bring::Now).expect("lock");
    for at in [shared, at] {
        let refused = space.advise(page(at), Advice::Free);
        assert!(matches!(refused, Err(Error::Invalid { .. })));
    }
    // Locked later, it stays.
    space.unlock(page(at)).expect("unlock");
    free(&space, at, 1);
    space.lock(page(at), Bring::Now).expect("lock");
    squeeze(&vm);
    assert_eq!(space.load(at), Ok(1));
}

/// One writes and gives up, another one reclaims.
#[test]
fn nothing_that_was_written_is_lost_beside_a_reclaimer() {
    let vm = small().vm();
    let worker = || {
        vm.machine().attach(1);
        let space = active(&vm);
        let at = space.map(PAGES * P, Prot::READ_WRITE).expect("map");
        for round in 1..2_000_u64 {
            let page = round as usize * 7 % PAGES;
            let word = at + page * P;
            space.store(word, round).expect("store");
            assert_eq!(space.load(word), Ok(round));
            free(&space, word, 1);
            let found = space.load(word).expect("load");
            assert!(found == round || found == 0, "{found} in round {round}");
            space.store(word + 8, round).expect("store");
            thread::yield_now();
            assert_eq!(space.load(word + 8), Ok(round));
            // Zero or not, it stays so now.
            let kept = space.load(word).expect("load");
            assert!(kept == found || kept == 0, "{kept} in round {round}");
        }
    };
    thread::scope(|scope| {
        let worker = scope.spawn(worker);
        while !worker.is_finished() {
            vm.reclaim(4);
            thread::yield_now();
        }
    });
    nothing_left(&vm);
}
