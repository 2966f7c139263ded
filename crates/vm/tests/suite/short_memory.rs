//! Operations that bring pages while there is hardly memory for their other needs: they
//! come to an end.

use crate::failing;
use crate::store;

use failing::{Disk, TestSpace, check_empty, pages, system};
use machine::PAGE_SIZE;
use std::sync::Arc;
use store::TestStore;
use vm::object::Object;
use vm::{Advice, Bring, Error, Hold, Prot, Request, Resource, Superpages};

/// Leaves `left` frames free.
fn withhold(space: &TestSpace, left: usize) -> Vec<Hold<vm::Best<hosted::Hosted>>> {
    let vm = space.vm();
    let surplus = vm.frames().free_count() - left;
    (0..surplus)
        .map(|_| vm.new_page().expect("a page"))
        .collect()
}

/// The pages that a fault reads ahead of a file must not take the memory to map its page: that page
/// would go out again, and be read again, for ever.
#[test]
fn reading_ahead_leaves_room_for_tables() {
    let vm = system(1, Superpages::Never, &Disk::default(), 256);
    let file = Object::file(&vm, Disk::default(), 0).expect("an object");
    file.set_size(64 * PAGE_SIZE as u64).expect("set_size");
    for left in 3..24 {
        let space = TestSpace::new(&vm).expect("a space");
        space.activate();
        let request = Request::object(&file, 0, 64 * PAGE_SIZE, Prot::READ).expect("a request");
        let at = space.map_as(&request).expect("map");
        vm.reclaim(usize::MAX);
        let withheld = withhold(&space, left);
        // The page and its three tables take four frames.
        let loaded = space.load(at + PAGE_SIZE);
        assert_eq!(loaded.is_ok(), left >= 4, "{left} frames: {loaded:?}");
        drop((withheld, space));
    }
    drop(file);
    check_empty(&vm, "read");
}

/// Each look at all the memory costs as much as memory is large: after a few that free only the
/// page that the fault itself has read, the fault fails.
#[test]
fn a_fault_that_frees_only_its_own_page_fails_soon() {
    let vm = system(1, Superpages::Never, &Disk::default(), 256);
    let store = Arc::new(TestStore::with(1, 1));
    let file = Object::file(&vm, store.clone(), PAGE_SIZE as u64).expect("an object");
    let space = TestSpace::new(&vm).expect("a space");
    space.activate();
    let request = Request::object(&file, 0, PAGE_SIZE, Prot::READ).expect("a request");
    let at = space.map_as(&request).expect("map");
    // The page and two of its three tables.
    let withheld = withhold(&space, 3);
    assert_eq!(space.load(at), Err(Error::OutOfMemory(Resource::Frames)));
    let reads = store.calls().len();
    assert!((2..=6).contains(&reads), "the page was read {reads} times");
    drop((withheld, space, file));
    check_empty(&vm, "read");
}

/// A store to a page that is out, and another process's too, takes the page and a copy of it. With
/// room for one of them only it is refused; one must not go for the other, and come back, for ever.
#[test]
fn a_store_that_needs_a_page_and_its_copy_is_refused_with_one_frame() {
    let vm = system(1, Superpages::Never, &Disk::default(), 256);
    let refused = Err(Error::OutOfMemory(Resource::Frames));
    for left in 0..4 {
        let parent = TestSpace::new(&vm).expect("a space");
        parent.activate();
        let at = parent.map(2 * PAGE_SIZE, Prot::READ_WRITE).expect("map");
        parent.store(at, 7).expect("store");
        // Keeps the tables: it cannot go.
        parent.store(at + PAGE_SIZE, 8).expect("store");
        parent.lock(pages(at, 1, 1), Bring::Now).expect("lock");
        let child = parent.fork().expect("fork");
        parent
            .advise(pages(at, 0, 1), Advice::PageOut)
            .expect("advise");
        vm.reclaim(usize::MAX);
        let withheld = withhold(&parent, left);
        let expected = if left < 2 { refused } else { Ok(()) };
        let stored = parent.copy_out(at, &9_u64.to_le_bytes());
        assert_eq!(stored, expected, "{left} frames, by the kernel");
        assert_eq!(parent.store(at, 10), expected, "{left} frames");
        drop(withheld);
        assert_eq!(parent.load(at), Ok(if left < 2 { 7 } else { 10 }));
        child.activate();
        assert_eq!(child.load(at), Ok(7), "{left} frames");
        drop((parent, child));
    }
    check_empty(&vm, "stored");
}
