//! A page with a hundred thousand mappings.

use crate::world::{File, P, System, TestSpace, active, nothing_left, page, world};
use vm::{At, Error, Prot, Request};

const SPACES: usize = 4;
/// Mappings in each space.
const MAPPINGS: usize = 25_000;
const START: usize = 1 << 42;

/// The `index`th mapping's place.
fn place(index: usize) -> usize {
    START + index * P
}

/// A space that has mapped and used the object's page in all places.
fn sharer(vm: &System, object: &File) -> TestSpace {
    let space = active(vm);
    let request = || Request::object(object, 0, P, Prot::READ_WRITE).expect("a request");
    for index in 0..MAPPINGS {
        let request = request().shared().at(At::Free(place(index)));
        space.map_as(&request).expect("map");
        assert_eq!(space.load(place(index)), Ok(7), "mapping {index}");
    }
    space
}

/// A page with content, and all spaces that share it.
fn sharers(vm: &System) -> (File, Vec<TestSpace>) {
    let object = vm.shared_memory(P as u64).expect("an object");
    object.write(0, &7u64.to_le_bytes()).expect("written");
    let spaces = (0..SPACES).map(|_| sharer(vm, &object)).collect();
    (object, spaces)
}

#[test]
fn all_mappings_are_removed_at_once_and_come_back() {
    let vm = world(64).vm();
    let (object, spaces) = sharers(&vm);
    let frame = object.resident(0).expect("in memory");
    let hold = vm.hold(frame).expect("a page");
    let removed = vm.remove_all(&hold);
    assert_eq!(removed.mappings, SPACES * MAPPINGS);
    drop(hold);
    for space in &spaces {
        space.activate();
        for index in [0, 1, MAPPINGS / 2, MAPPINGS - 1] {
            assert_eq!(space.pmap().lookup(place(index)), None);
            assert_eq!(space.load(place(index)), Ok(7));
            assert_eq!(space.pmap().lookup(place(index)), Some(frame));
        }
    }
}

#[test]
fn the_page_goes_with_the_last_of_them() {
    let vm = world(64).vm();
    let (object, spaces) = sharers(&vm);
    let frame = object.resident(0).expect("in memory");
    drop(object);
    for space in spaces {
        assert!(vm.hold(frame).is_some(), "a mapping keeps the page");
        // The oldest first: were a mapping searched for among the others, this would take hours.
        for index in 0..MAPPINGS {
            space.unmap(page(place(index))).expect("unmap");
        }
    }
    assert!(vm.hold(frame).is_none(), "the page has no references");
    nothing_left(&vm);
}

#[test]
fn truncation_takes_it_from_all() {
    let vm = world(64).vm();
    let (object, spaces) = sharers(&vm);
    object.set_size(0).expect("truncated");
    for space in &spaces {
        space.activate();
        for index in [0, MAPPINGS / 2, MAPPINGS - 1] {
            assert_eq!(space.pmap().lookup(place(index)), None);
            assert_eq!(space.load(place(index)), Err(Error::Bus { page: 0 }));
        }
    }
}
