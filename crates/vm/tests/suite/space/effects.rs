//! What one task sees of the states behind its space.

use crate::world::{MIB, P, is_segv, pages, world};
use machine::VaRange;
use vm::{Error, Prot, Resource};

/// On Linux the part in front of the hole changes.
#[test]
fn a_call_that_fails_half_way_is_undone() {
    let space = world(16).space();
    let at = space.map(P, Prot::READ_WRITE).expect("map");
    let hole = Err(Error::NotMapped { address: at + P });
    space.store(at, 1).expect("store");
    assert_eq!(space.protect(pages(at, 2), Prot::READ), hole);
    assert_eq!(space.discard(pages(at, 2)), hole);
    assert_eq!(space.load(at), Ok(1));
    space.store(at, 2).expect("still writable");
}

#[test]
fn bad_requests_are_refused_with_the_reason() {
    let space = world(4).space();
    let invalid = |result: Result<(), Error>| {
        assert!(matches!(result, Err(Error::Invalid { .. })), "{result:?}");
        assert_eq!(result.map_err(|e| e.errno()), Err(22));
    };
    invalid(space.map(0, Prot::READ).map(|_| ()));
    for (start, end) in [(MIB | 1, 2 * MIB), (2 * MIB, MIB), (0, MIB)] {
        invalid(space.unmap(VaRange { start, end }));
    }
    let (start, end) = (1 << 46, 1 << 60);
    invalid(space.map_fixed(VaRange { start, end }, Prot::READ));
    let huge = space.map(usize::MAX, Prot::READ);
    assert_eq!(huge.map_err(|e| e.errno()), Err(12));
    let last = usize::MAX - 7;
    assert!(is_segv(space.load(last)) && is_segv(space.store(last, 1)));
    assert!(is_segv(space.copy_in(last, &mut [0; 8])));
}

#[test]
fn memory_is_refused_only_when_it_is_out() {
    let space = world(4).space();
    let vm = space.vm();
    let total = vm.frames().total();
    let at = space.map(total * P, Prot::READ_WRITE).expect("map");
    let stores = (0..).map(|page| space.store(at + page * P, 1));
    let touched = stores.take_while(Result::is_ok).count();
    let refused = space.store(at + touched * P, 2);
    assert_eq!(refused, Err(Error::OutOfMemory(Resource::Frames)));
    assert!(vm.frames().free_count() < 4, "refused with frames left");
    assert_eq!(space.load(at), Ok(1), "the space works on");
    space.discard(pages(at, 1)).expect("discard");
    let again = space.store(at + touched * P, 2);
    again.expect("a frame is free again");
}

#[test]
fn zeroed_frames_are_kept_and_made_ahead() {
    let space = world(16).space();
    let vm = space.vm();
    let at = space.map(P, Prot::READ_WRITE).expect("map");
    let stored_and_gone = |value| {
        space.store(at, value).expect("store");
        space.discard(pages(at, 1)).expect("discard");
    };
    stored_and_gone(77);
    // SAFETY: the frames are the machine's.
    assert!(unsafe { vm.frames().zero_ahead(vm.machine(), 4) } > 0);
    for _ in 0..64 {
        assert_eq!(space.load(at), Ok(0), "a kept frame was not zero");
        stored_and_gone(78);
    }
}

#[test]
fn no_other_cpu_is_interrupted_for_a_local_mapping() {
    let space = world(64).space();
    for _ in 0..10 {
        let at = space.map(MIB, Prot::READ_WRITE).expect("map");
        for address in (at..at + MIB).step_by(P) {
            space.store(address, 1).expect("store");
        }
        space.unmap(VaRange::sized(at, MIB)).expect("unmap");
    }
    let stats = space.vm().machine().stats();
    let sent: u64 = stats.iter().map(|cpu| cpu.shootdowns).sum();
    assert_eq!(sent, 0);
}
