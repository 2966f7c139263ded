//! Faults that map what is around.

use crate::world::{File, P, SLOT, System, TestSpace, active, is_segv, pages, world};
use hosted::Hosted;
use vm::object::{self, Object};
use vm::system::ObjectPages;
use vm::{At, Best, Error, Flags, Prot, Request};

/// 16 pages are a block.
const AT: usize = 1 << 41;

/// An object of 64 pages. The first `present` of them are in memory.
fn object(vm: &System, present: u64) -> File {
    let object = Object::anonymous(vm, 64 * P as u64).expect("an object");
    for index in 0..present {
        drop(object.page(index, object::Pattern::Random).expect("a page"));
    }
    object
}

fn request(object: &File, pages: usize) -> Request<'_, Best<Hosted>> {
    Request::object(object, 0, pages * P, Prot::READ_WRITE).expect("a request")
}

fn map(space: &TestSpace, request: Request<'_, Best<Hosted>>, at: usize) {
    space.map_as(&request.at(At::Fixed(at))).expect("map");
}

/// Which of the `pages` pages from `at` on are mapped.
fn mapped(space: &TestSpace, at: usize, pages: usize) -> Vec<usize> {
    let is_mapped = |&page: &usize| space.pmap().lookup(at + page * P).is_some();
    (0..pages).filter(is_mapped).collect()
}

/// A read in `vm` maps the pages of its block that are in memory, and no others.
fn maps_its_block(vm: &System) {
    let (space, object) = (active(vm), object(vm, 20));
    map(&space, request(&object, 64), AT);
    space.load(AT + 5 * P).expect("load");
    assert_eq!(mapped(&space, AT, 64), Vec::from_iter(0..16));
    assert_eq!(space.stats().resident(), 16);
    space.load(AT + 16 * P).expect("load");
    assert_eq!(mapped(&space, AT, 64), Vec::from_iter(0..20));
    assert_eq!(object.resident_pages(), 20);
    space.load(AT + 40 * P).expect("load");
    assert_eq!(object.resident_pages(), 21);
}

#[test]
fn a_read_maps_the_pages_of_its_block_that_are_in_memory() {
    maps_its_block(&world(16).vm());
}

#[test]
fn so_it_does_where_mappings_are_listed() {
    let listed = world(16).with(|options| options.object_pages = ObjectPages::Listed);
    maps_its_block(&listed.vm());
}

#[test]
fn a_block_ends_with_its_mapping_and_its_slot() {
    let vm = world(16).vm();
    let (space, object) = (active(&vm), object(&vm, 64));
    let edge = AT + SLOT - 4 * P;
    map(&space, request(&object, 10), edge);
    space.load(edge + P).expect("load");
    assert_eq!(mapped(&space, edge, 10), [0, 1, 2, 3]);
    space.load(edge + 4 * P).expect("load");
    assert_eq!(mapped(&space, edge, 10), Vec::from_iter(0..10));
    // A neighbouring mapping with other rights is another one.
    map(&space, request(&object, 8), AT);
    let rights = space.protect(pages(AT + 4 * P, 4), Prot::READ);
    rights.expect("protect");
    space.load(AT + 5 * P).expect("load");
    assert_eq!(mapped(&space, AT, 8), [4, 5, 6, 7]);
    let denied = space.store(AT + 6 * P, 1);
    assert!(is_segv(denied), "{denied:?}");
}

#[test]
fn neither_a_store_nor_random_access_maps_more_than_its_page() {
    let vm = world(16).vm();
    let (space, object) = (active(&vm), object(&vm, 16));
    map(&space, request(&object, 16).shared(), AT);
    space.store(AT + P, 1).expect("store");
    assert_eq!(mapped(&space, AT, 16), [1]);
    let random = AT + SLOT;
    map(&space, request(&object, 16).with(Flags::RANDOM), random);
    space.load(random + P).expect("load");
    assert_eq!(mapped(&space, random, 16), [1]);
}

#[test]
fn blocks_of_one_page_are_the_page() {
    let vm = world(16).with(|options| options.fault_around = 1).vm();
    let (space, object) = (active(&vm), object(&vm, 16));
    map(&space, request(&object, 16), AT);
    space.load(AT + P).expect("load");
    assert_eq!(mapped(&space, AT, 16), [1]);
}

/// Neighbours are the object's as the page is: private stores copy them, shared ones need no fault,
/// and a truncation finds them.
#[test]
fn neighbours_are_mappings_as_others() {
    let vm = world(16).vm();
    let (space, object) = (active(&vm), object(&vm, 16));
    map(&space, request(&object, 16), AT);
    map(&space, request(&object, 16).shared(), AT + SLOT);
    space.store(AT + 3 * P, 7).expect("store");
    let own = space.pmap().lookup(AT + 3 * P);
    for start in [AT, AT + SLOT] {
        space.load(start).expect("load");
        assert_eq!(mapped(&space, start, 16).len(), 16);
    }
    assert_eq!(space.pmap().lookup(AT + 3 * P), own, "the copy stays");
    space.store(AT + SLOT + 2 * P, 9).expect("store");
    space.store(AT + P, 8).expect("store");
    assert_eq!(space.load(AT + 2 * P), Ok(9));
    assert_eq!(space.load(AT + SLOT + P), Ok(0));
    let mut bytes = [0; 8];
    object.read(2 * P as u64, &mut bytes).expect("read");
    assert_eq!(u64::from_le_bytes(bytes), 9);
    object.set_size(2 * P as u64).expect("set_size");
    for start in [AT, AT + SLOT] {
        assert_eq!(mapped(&space, start, 16), [0, 1]);
        let gone = space.load(start + 9 * P);
        assert!(matches!(gone, Err(Error::Bus { page: 9 })), "{gone:?}");
    }
}
