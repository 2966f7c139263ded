//! Operations that bring pages while there is hardly memory for what they need besides: they
//! come to an end.

use crate::failing;

use failing::{Disk, TestSpace, check_empty, system};
use machine::PAGE_SIZE;
use vm::object::Object;
use vm::{Hold, Prot, Request, Superpages};

/// Leaves `left` frames free.
fn withhold(space: &TestSpace, left: usize) -> Vec<Hold<hosted::Hosted, vm::Best>> {
    let vm = space.vm();
    let surplus = vm.frames().free_count() - left;
    (0..surplus)
        .map(|_| vm.new_page().expect("a page"))
        .collect()
}

/// What a fault reads ahead of a file must not take what its page is mapped with: that would go
/// out again, and be read again, for ever.
#[test]
fn reading_ahead_leaves_room_for_tables() {
    let vm = system(1, Superpages::Never, &Disk::default(), 256);
    let file = Object::file(&vm, Disk::default(), 0).expect("an object");
    file.set_size(64 * PAGE_SIZE as u64).expect("set_size");
    for left in 4..24 {
        let space = TestSpace::new(&vm).expect("a space");
        space.activate();
        let request = Request::object(&file, 0, 64 * PAGE_SIZE, Prot::READ).expect("a request");
        let at = space.map_as(&request).expect("map");
        vm.reclaim(usize::MAX);
        let withheld = withhold(&space, left);
        // The page, its three tables and a place on its list take five frames.
        let loaded = space.load(at + PAGE_SIZE);
        assert_eq!(loaded.is_ok(), left >= 5, "{left} frames: {loaded:?}");
        drop((withheld, space));
    }
    drop(file);
    check_empty(&vm, "read");
}
