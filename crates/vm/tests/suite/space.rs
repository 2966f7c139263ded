//! A task's view of its space, operation by operation, on hosted memory.

use crate::system::{active as space, plain};
use hosted::Hosted;
use machine::{Access, Mmu, PAGE_SIZE, VaRange};
use vm::system::Reservation;
use vm::{Advice, At, Best, Error, Flags, HEAP_START, Prot, Request, Vm};

const MIB: usize = 1 << 20;

fn segv<T: std::fmt::Debug>(result: Result<T, Error>, access: Access) {
    match result {
        Err(Error::Segv(fault)) => assert_eq!(fault.access, access),
        other => panic!("a SEGV was due, not {other:?}"),
    }
}

#[test]
fn memory_is_zero_then_what_was_written() {
    let vm = plain(2, 16);
    let space = space(&vm);
    let at = space.map(3 * PAGE_SIZE, Prot::READ_WRITE).expect("map");
    for page in 0..3 {
        assert_eq!(space.load(at + page * PAGE_SIZE + 8), Ok(0));
        space
            .store(at + page * PAGE_SIZE, page as u64 + 7)
            .expect("store");
    }
    for page in 0..3 {
        assert_eq!(space.load(at + page * PAGE_SIZE), Ok(page as u64 + 7));
    }
    assert_eq!(space.pmap().resident(), 3);
}

#[test]
fn unmapped_memory_is_out_of_reach_and_its_frames_are_free() {
    let vm = plain(2, 16);
    let before = vm.frames().free_count();
    let space = space(&vm);
    let at = space.map(8 * PAGE_SIZE, Prot::READ_WRITE).expect("map");
    for page in 0..8 {
        space.store(at + page * PAGE_SIZE, 1).expect("store");
    }
    space
        .unmap(VaRange::sized(at, 8 * PAGE_SIZE))
        .expect("unmap");
    segv(space.load(at), Access::Read);
    segv(space.store(at, 1), Access::Write);
    drop(space);
    assert_eq!(vm.frames().free_count(), before, "frames leaked");
    assert_eq!(vm.swap().reserved(), 0, "swap leaked");
}

#[test]
fn unmapping_the_middle_leaves_both_ends() {
    let vm = plain(2, 16);
    let space = space(&vm);
    let at = space.map(4 * PAGE_SIZE, Prot::READ_WRITE).expect("map");
    for page in 0..4 {
        space
            .store(at + page * PAGE_SIZE, 10 + page as u64)
            .expect("store");
    }
    let middle = VaRange::sized(at + PAGE_SIZE, 2 * PAGE_SIZE);
    space.unmap(middle).expect("unmap");
    assert_eq!(space.load(at), Ok(10));
    segv(space.load(at + PAGE_SIZE), Access::Read);
    assert_eq!(space.load(at + 3 * PAGE_SIZE), Ok(13));
    assert_eq!(space.regions().len(), 2);
    // The gap is found again.
    assert_eq!(space.map(2 * PAGE_SIZE, Prot::READ_WRITE), Ok(middle.start));
    assert_eq!(space.regions().len(), 1, "neighbours join");
    assert_eq!(space.load(middle.start), Ok(0), "new memory is zero");
}

#[test]
fn rights_are_enforced_taken_and_given() {
    let vm = plain(2, 16);
    let space = space(&vm);
    let at = space.map(2 * PAGE_SIZE, Prot::READ_WRITE).expect("map");
    let range = VaRange::sized(at, 2 * PAGE_SIZE);
    space.store(at, 5).expect("store");
    space.protect(range, Prot::READ).expect("protect");
    assert_eq!(space.load(at), Ok(5));
    segv(space.store(at, 6), Access::Write);
    space.protect(range, Prot::NONE).expect("protect");
    segv(space.load(at), Access::Read);
    segv(space.load(at + PAGE_SIZE), Access::Read);
    space.protect(range, Prot::READ_WRITE).expect("protect");
    assert_eq!(space.load(at), Ok(5), "the page was kept");
    space.store(at, 6).expect("store");
    assert_eq!(space.load(at), Ok(6));
}

#[test]
fn whatever_may_be_done_memory_can_be_read() {
    let vm = plain(2, 16);
    let space = space(&vm);
    let read = |prot: Prot| (prot.reads(), prot.writes(), prot.executes());
    for bits in 1..8 {
        let rights = (bits & 1 != 0, bits & 2 != 0, bits & 4 != 0);
        let prot = Prot::new(rights.0, rights.1, rights.2);
        let at = space.map(PAGE_SIZE, prot).expect("map");
        assert_eq!(space.load(at), Ok(0));
        if rights.1 {
            space.store(at, 1).expect("store")
        } else {
            segv(space.store(at, 1), Access::Write)
        }
        let region = space.regions().pop().expect("a region");
        assert_eq!(read(region.prot()), rights);
        // A task that wants pages in memory must have named the right.
        let page = VaRange::sized(at, PAGE_SIZE);
        let populated = |advice| space.advise(page, advice).is_ok();
        assert_eq!(populated(Advice::PopulateRead), rights.0, "{prot}");
        assert_eq!(populated(Advice::PopulateWrite), rights.1, "{prot}");
        space.unmap(page).expect("unmap");
    }
    // It is none of these that makes a stack grow.
    let top = VaRange::sized(1 << 39, PAGE_SIZE);
    let stack = Request::anonymous(PAGE_SIZE, Prot::READ_WRITE).with(Flags::GROWS_DOWN);
    space.map_as(&stack.at(At::Fixed(top.start))).expect("map");
    let below = VaRange::sized(top.start - PAGE_SIZE, PAGE_SIZE);
    let address = below.start;
    let populated = space.advise(below, Advice::PopulateWrite);
    assert_eq!(populated, Err(Error::NotMapped { address }));
}

#[test]
fn protecting_a_hole_changes_nothing() {
    let vm = plain(2, 16);
    let space = space(&vm);
    let at = space.map(PAGE_SIZE, Prot::READ_WRITE).expect("map");
    let error = space.protect(VaRange::sized(at, 2 * PAGE_SIZE), Prot::READ);
    assert_eq!(
        error,
        Err(Error::NotMapped {
            address: at + PAGE_SIZE
        })
    );
    space.store(at, 1).expect("still writable");
}

#[test]
fn discarded_pages_are_zero_again() {
    let vm = plain(2, 16);
    let space = space(&vm);
    let at = space.map(2 * PAGE_SIZE, Prot::READ_WRITE).expect("map");
    space.store(at, 5).expect("store");
    space.store(at + PAGE_SIZE, 6).expect("store");
    space
        .discard(VaRange::sized(at, PAGE_SIZE))
        .expect("discard");
    assert_eq!(space.load(at), Ok(0));
    assert_eq!(space.load(at + PAGE_SIZE), Ok(6));
    let beyond = VaRange::sized(at, 3 * PAGE_SIZE);
    let hole = at + 2 * PAGE_SIZE;
    assert_eq!(
        space.discard(beyond),
        Err(Error::NotMapped { address: hole })
    );
    assert_eq!(space.load(at + PAGE_SIZE), Ok(6));
}

#[test]
fn a_fixed_mapping_replaces_what_was_there() {
    let vm = plain(2, 16);
    let space = space(&vm);
    let at = space.map(4 * PAGE_SIZE, Prot::READ_WRITE).expect("map");
    space.store(at + PAGE_SIZE, 9).expect("store");
    let fixed = VaRange::sized(at + PAGE_SIZE, PAGE_SIZE);
    space.map_fixed(fixed, Prot::READ).expect("map");
    assert_eq!(space.load(at + PAGE_SIZE), Ok(0));
    segv(space.store(at + PAGE_SIZE, 1), Access::Write);
    assert_eq!(space.regions().len(), 3);
    assert_eq!(vm.swap().reserved(), 3, "read-only memory reserves nothing");
}

#[test]
fn the_heap_grows_and_shrinks() {
    let vm = plain(2, 16);
    let space = space(&vm);
    assert_eq!(space.current_break(), HEAP_START);
    space.set_break(HEAP_START + 5000).expect("grow");
    space.store(HEAP_START + 4096, 3).expect("store");
    segv(space.load(HEAP_START + 2 * PAGE_SIZE), Access::Read);
    space.set_break(HEAP_START).expect("shrink");
    segv(space.load(HEAP_START), Access::Read);
    assert!(matches!(space.set_break(0), Err(Error::Invalid { .. })));
    assert_eq!(vm.swap().reserved(), 0);
}

#[test]
fn swap_space_is_reserved_exactly() {
    let machine = Hosted::with_memory(1, 4 * MIB).expect("memory");
    machine.attach(0);
    let vm = Vm::<Best<Hosted>>::new(machine).expect("memory for the VM");
    let space = space(&vm);
    let limit = 2 * vm.frames().total();
    let at = space
        .map(limit * PAGE_SIZE, Prot::READ_WRITE)
        .expect("all of it");
    let refused = space.map(PAGE_SIZE, Prot::READ_WRITE);
    assert_eq!(refused, Err(Error::OverCommit { pages: 1 }));
    space
        .map(PAGE_SIZE, Prot::READ)
        .expect("read-only needs none");
    space.unmap(VaRange::sized(at, PAGE_SIZE)).expect("unmap");
    space
        .map(PAGE_SIZE, Prot::READ_WRITE)
        .expect("there is room for one");
}

#[test]
fn bad_requests_are_refused_with_the_reason() {
    let vm = plain(2, 4);
    let space = space(&vm);
    let invalid = |result: Result<(), Error>| {
        assert!(matches!(result, Err(Error::Invalid { .. })), "{result:?}");
        assert_eq!(result.map_err(|e| e.errno()), Err(22));
    };
    invalid(space.map(0, Prot::READ).map(|_| ()));
    invalid(space.unmap(VaRange {
        start: 1 << 20 | 1,
        end: 2 << 20,
    }));
    invalid(space.unmap(VaRange {
        start: 2 << 20,
        end: 1 << 20,
    }));
    invalid(space.unmap(VaRange {
        start: 0,
        end: 1 << 20,
    }));
    invalid(space.map_fixed(
        VaRange {
            start: 1 << 46,
            end: 1 << 60,
        },
        Prot::READ,
    ));
    let huge = space.map(usize::MAX, Prot::READ);
    assert_eq!(huge.map_err(|e| e.errno()), Err(12));
    space
        .unmap(VaRange::sized(1 << 30, PAGE_SIZE))
        .expect("a hole is no error");
}

#[test]
fn memory_is_refused_only_when_it_is_out() {
    let vm = plain(2, 4);
    let space = space(&vm);
    let total = vm.frames().total();
    let at = space.map(total * PAGE_SIZE, Prot::READ_WRITE).expect("map");
    let mut touched = 0;
    let error = loop {
        match space.store(at + touched * PAGE_SIZE, 1) {
            Ok(()) => touched += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(error, Error::OutOfMemory(vm::Resource::Frames));
    assert!(vm.frames().free_count() < 4, "refused with frames left");
    assert_eq!(space.load(at), Ok(1), "the space works on");
    space
        .discard(VaRange::sized(at, PAGE_SIZE))
        .expect("discard");
    space
        .store(at + touched * PAGE_SIZE, 2)
        .expect("a frame is free again");
}

#[test]
fn zeroed_frames_are_kept_and_made_ahead() {
    let vm = plain(2, 16);
    let space = space(&vm);
    let at = space.map(PAGE_SIZE, Prot::READ_WRITE).expect("map");
    space.store(at, 77).expect("store");
    space
        .discard(VaRange::sized(at, PAGE_SIZE))
        .expect("discard");
    assert!(vm.frames().zero_ahead(vm.machine(), 4) > 0);
    for _ in 0..64 {
        assert_eq!(space.load(at), Ok(0), "a kept frame was not zero");
        space.store(at, 78).expect("store");
        space
            .discard(VaRange::sized(at, PAGE_SIZE))
            .expect("discard");
    }
}

#[test]
fn removal_by_the_reverse_map_takes_every_mapping_and_the_dirty_bit() {
    let vm = plain(2, 16);
    let (a, b) = (space(&vm), space(&vm));
    let page = vm.new_page().expect("a page");
    for space in [&a, &b] {
        let entered = space.pmap().enter(1 << 30, page.frame(), Prot::READ_WRITE);
        assert_eq!(entered, Ok(true));
        assert_eq!(
            space.pmap().enter(1 << 30, page.frame(), Prot::READ),
            Ok(false)
        );
    }
    a.activate();
    assert_eq!(vm.machine().load(1 << 30), Ok(0));
    let clean = vm.remove_all(&page);
    assert_eq!(
        (clean.mappings, clean.dirty, clean.referenced),
        (2, false, true)
    );
    a.pmap()
        .enter(1 << 30, page.frame(), Prot::READ_WRITE)
        .expect("enter");
    a.store(1 << 30, 4).expect("store");
    let dirty = vm.remove_all(&page);
    assert_eq!((dirty.mappings, dirty.dirty), (1, true));
    let nothing = vm.remove_all(&page);
    assert_eq!(
        (nothing.mappings, nothing.dirty),
        (0, false),
        "bits were handed over"
    );
    segv(a.load(1 << 30), Access::Read);
    assert_eq!((a.pmap().resident(), b.pmap().resident()), (0, 0));
}

#[test]
fn no_other_cpu_is_interrupted_for_a_local_mapping() {
    let vm = plain(2, 64);
    let space = space(&vm);
    for _ in 0..10 {
        let at = space.map(MIB, Prot::READ_WRITE).expect("map");
        for address in (at..at + MIB).step_by(PAGE_SIZE) {
            space.store(address, 1).expect("store");
        }
        space.unmap(VaRange::sized(at, MIB)).expect("unmap");
    }
    let sent: u64 = vm.machine().stats().iter().map(|cpu| cpu.shootdowns).sum();
    assert_eq!(sent, 0);
}
