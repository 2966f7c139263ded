//! Shared memory is committed, and how much may be is a choice.

use super::*;

#[test]
fn shared_memory_is_committed_as_long_as_it_lives() {
    let vm = world(16).vm();
    let parent = Space::new(&vm).expect("a space");
    let shared = Request::anonymous(5 * P, Prot::READ).shared();
    let at = parent.map_as(&shared).expect("map");
    assert_eq!(reserved(&vm), 5);
    let child = parent.fork().expect("fork");
    assert_eq!(reserved(&vm), 5);
    parent.unmap(pages(at, 5)).expect("unmap");
    assert_eq!(reserved(&vm), 5);
    child.unmap(pages(at, 4)).expect("unmap");
    assert_eq!(reserved(&vm), 5);
    drop(child);
    assert_eq!(reserved(&vm), 0);
    let object = vm.shared_memory(3 * P as u64 + 1).expect("an object");
    assert_eq!(reserved(&vm), 4);
    object.set_size(P as u64).expect("set_size");
    assert_eq!(reserved(&vm), 1);
    object.write(2 * P as u64, &[1]).expect("write");
    assert_eq!(reserved(&vm), 3);
    let all = 2 * vm.frames().total() as u64;
    let more = object.set_size((all + 1) * P as u64);
    assert!(matches!(more, Err(Error::OverCommit { .. })), "{more:?}");
    assert!(vm.shared_memory(all * P as u64).is_err());
    assert_eq!(reserved(&vm), 3);
    drop(object);
    assert_eq!(reserved(&vm), 0);
}

#[test]
fn shared_memory_that_can_not_be_made_commits_nothing() {
    let vm = world(16).vm();
    let failed = |error| {
        assert_eq!(error, Error::OutOfMemory(Resource::Heap));
        assert_eq!(reserved(&vm), 0);
    };
    let (_, refused) = refusing::each(|| vm.shared_memory(3 * P as u64), failed);
    assert!(refused > 1, "{refused} allocations");
}

#[test]
fn what_may_be_committed_is_a_choice() {
    let unreserved =
        |pages: usize| Request::anonymous(pages * P, Prot::READ_WRITE).with(Flags::NO_RESERVE);
    // A thread is a CPU of one machine.
    let each = |overcommit| {
        let vm = world(16)
            .with(|options| options.overcommit = overcommit)
            .vm();
        let space = Space::new(&vm).expect("a space");
        let memory = vm.frames().total();
        let map = |pages: usize| space.map(pages * P, Prot::READ_WRITE).map(drop);
        let refused = |pages: usize| {
            let pages = pages as u64;
            Err(Error::OverCommit { pages })
        };
        let fits = |does: bool, pages| if does { Ok(()) } else { refused(pages) };
        assert_eq!(map(memory), Ok(()));
        assert_eq!(
            map(memory + 1),
            fits(overcommit == Overcommit::Always, memory + 1)
        );
        assert_eq!(map(memory), Ok(()));
        assert_eq!(map(memory), fits(overcommit != Overcommit::Never, memory));
        let committed = match overcommit {
            Overcommit::Never => 2 * memory,
            Overcommit::Heuristic => 3 * memory,
            Overcommit::Always => 4 * memory + 1,
        };
        assert_eq!(reserved(&vm), committed as u64);
        let honoured = space.map_as(&unreserved(4 * memory)).map(drop);
        assert_eq!(honoured, fits(overcommit != Overcommit::Never, 4 * memory));
        assert_eq!(reserved(&vm), committed as u64);
        let child = space.fork().map(drop);
        assert_eq!(child.is_ok(), overcommit != Overcommit::Never);
        assert_eq!(reserved(&vm), committed as u64);
        drop(space);
        assert_eq!(reserved(&vm), 0);
    };
    for overcommit in [Overcommit::Never, Overcommit::Heuristic, Overcommit::Always] {
        std::thread::scope(|scope| scope.spawn(|| each(overcommit)).join()).expect("no panic");
    }
}

#[test]
fn what_is_given_back_can_be_committed() {
    let space = world(4).cpus(1).space();
    let limit = 2 * space.vm().frames().total();
    let map = |pages: usize, prot| space.map(pages * P, prot);
    let at = map(limit, Prot::READ_WRITE).expect("all of it");
    let refused = map(1, Prot::READ_WRITE);
    assert_eq!(refused, Err(Error::OverCommit { pages: 1 }));
    map(1, Prot::READ).expect("read-only needs none");
    space.unmap(pages(at, 1)).expect("unmap");
    map(1, Prot::READ_WRITE).expect("there is room for one");
}
