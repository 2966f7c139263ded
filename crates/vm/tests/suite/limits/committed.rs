//! Shared memory is committed, and how much may be is a choice.

use super::*;

#[test]
fn shared_memory_is_committed_as_long_as_it_lives() {
    let vm = system_with(Overcommit::Never);
    let parent = Space::new(&vm).expect("a space");
    let shared = Request::anonymous(5 * P, Prot::READ).shared();
    let at = parent.map_as(&shared).expect("map");
    assert_eq!(vm.swap().reserved(), 5);
    let child = parent.fork().expect("fork");
    assert_eq!(vm.swap().reserved(), 5);
    parent.unmap(pages(at, 5)).expect("unmap");
    assert_eq!(vm.swap().reserved(), 5);
    child.unmap(pages(at, 4)).expect("unmap");
    assert_eq!(vm.swap().reserved(), 5);
    drop(child);
    assert_eq!(vm.swap().reserved(), 0);
    let object = vm.shared_memory(3 * P as u64 + 1).expect("an object");
    assert_eq!(vm.swap().reserved(), 4);
    object.set_size(P as u64).expect("set_size");
    assert_eq!(vm.swap().reserved(), 1);
    object.write(2 * P as u64, &[1]).expect("write");
    assert_eq!(vm.swap().reserved(), 3);
    let all = 2 * vm.frames().total() as u64;
    let more = object.set_size((all + 1) * P as u64);
    assert!(matches!(more, Err(Error::OverCommit { .. })), "{more:?}");
    assert!(vm.shared_memory(all * P as u64).is_err());
    assert_eq!(vm.swap().reserved(), 3);
    drop(object);
    assert_eq!(vm.swap().reserved(), 0);
}

#[test]
fn shared_memory_that_can_not_be_made_commits_nothing() {
    let vm = system_with(Overcommit::Never);
    let mut refused = 0;
    for nth in 1.. {
        refusing::refuse_after(nth);
        let made = vm.shared_memory(3 * P as u64);
        refusing::refuse_after(0);
        match made {
            Ok(_) => break,
            Err(error) => assert_eq!(error, Error::OutOfMemory(Resource::Heap)),
        }
        assert_eq!(vm.swap().reserved(), 0);
        refused += 1;
    }
    assert!(refused > 1, "{refused} allocations");
}

#[test]
fn what_may_be_committed_is_a_choice() {
    let unreserved =
        |pages: usize| Request::anonymous(pages * P, Prot::READ_WRITE).with(Flags::NO_RESERVE);
    // A thread is a CPU of one machine.
    let each = |overcommit| {
        let vm = system_with(overcommit);
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
        assert_eq!(vm.swap().reserved(), committed as u64);
        let honoured = space.map_as(&unreserved(4 * memory)).map(drop);
        assert_eq!(honoured, fits(overcommit != Overcommit::Never, 4 * memory));
        assert_eq!(vm.swap().reserved(), committed as u64);
        let child = space.fork().map(drop);
        assert_eq!(child.is_ok(), overcommit != Overcommit::Never);
        assert_eq!(vm.swap().reserved(), committed as u64);
        drop(space);
        assert_eq!(vm.swap().reserved(), 0);
    };
    for overcommit in [Overcommit::Never, Overcommit::Heuristic, Overcommit::Always] {
        std::thread::scope(|scope| scope.spawn(|| each(overcommit)).join()).expect("no panic");
    }
}
