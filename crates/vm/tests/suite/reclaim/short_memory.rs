//! Operations that bring pages while there is hardly memory for their other needs: they
//! come to an end.

use crate::store::TestStore;
use crate::world::{P, System, TestSpace, active, nothing_left, page, world};
use hosted::Hosted;
use std::sync::Arc;
use vm::object::Object;
use vm::{Advice, Best, Bring, Error, Hold, Prot, Request, Resource, Superpages};

/// A MiB of memory, and no superpages.
fn vm() -> System {
    let little = world(1).cpus(1).swap(256);
    little
        .with(|options| options.superpages = Superpages::Never)
        .vm()
}

/// Leaves `left` frames free.
fn withhold(space: &TestSpace, left: usize) -> Vec<Hold<Best<Hosted>>> {
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
    let vm = vm();
    let file = Object::file(&vm, Arc::new(TestStore::default()), 0).expect("an object");
    file.set_size(64 * P as u64).expect("set_size");
    for left in 3..24 {
        let space = active(&vm);
        let request = Request::object(&file, 0, 64 * P, Prot::READ).expect("a request");
        let at = space.map_as(&request).expect("map");
        vm.reclaim(usize::MAX);
        let withheld = withhold(&space, left);
        // The page and its three tables take four frames.
        let loaded = space.load(at + P);
        assert_eq!(loaded.is_ok(), left >= 4, "{left} frames: {loaded:?}");
        drop((withheld, space));
    }
    drop(file);
    nothing_left(&vm);
}

/// Each look at all the memory costs as much as memory is large: after a few that free only the
/// page that the fault itself has read, the fault fails.
#[test]
fn a_fault_that_frees_only_its_own_page_fails_soon() {
    let vm = vm();
    let store = Arc::new(TestStore::with(1, 1));
    let file = Object::file(&vm, store.clone(), P as u64).expect("an object");
    let space = active(&vm);
    let request = Request::object(&file, 0, P, Prot::READ).expect("a request");
    let at = space.map_as(&request).expect("map");
    // The page and two of its three tables.
    let withheld = withhold(&space, 3);
    assert_eq!(space.load(at), Err(Error::OutOfMemory(Resource::Frames)));
    let reads = store.calls().len();
    assert!((2..=6).contains(&reads), "the page was read {reads} times");
    drop((withheld, space, file));
    nothing_left(&vm);
}

/// A store to a page that is out, and another process's too, takes the page and a copy of it. With
/// room for one of them only it is refused; one must not go for the other, and come back, for ever.
#[test]
fn a_store_that_needs_a_page_and_its_copy_is_refused_with_one_frame() {
    let vm = vm();
    let refused = Err(Error::OutOfMemory(Resource::Frames));
    for left in 0..4 {
        let parent = active(&vm);
        let at = parent.map(2 * P, Prot::READ_WRITE).expect("map");
        parent.store(at, 7).expect("store");
        // Keeps the tables: it cannot go.
        parent.store(at + P, 8).expect("store");
        parent.lock(page(at + P), Bring::Now).expect("lock");
        let child = parent.fork().expect("fork");
        parent.advise(page(at), Advice::PageOut).expect("advise");
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
    nothing_left(&vm);
}
