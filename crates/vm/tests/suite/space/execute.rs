//! The right to execute: fetches when the right comes and when it goes.

use crate::world::{P, SLOT, System, TestSpace, active, pages, world};
use machine::{Access, PageFault, VaRange};
use std::sync::Arc;
use vm::{At, Error, Prot, Request};

const AT: usize = 1 << 42;
const ALL: Prot = Prot::new(true, true, true);

/// A space of this CPU's in which `bytes` at [`AT`] are mapped.
fn space(vm: &System, bytes: usize, prot: Prot) -> TestSpace {
    let space = active(vm);
    let mapped = space.map_fixed(VaRange::sized(AT, bytes), prot);
    mapped.expect("map");
    space
}

fn page() -> VaRange {
    pages(AT, 1)
}

/// Sees that a fetch is refused, as one.
#[track_caller]
fn refused(space: &TestSpace, address: usize) {
    match space.fetch(address) {
        Err(error @ Error::Segv(PageFault { access, .. })) => {
            assert_eq!((access, error.errno()), (Access::Execute, 14));
        }
        other => panic!("a fetch at {address:#x}: {other:?}"),
    }
}

#[test]
fn only_what_is_mapped_with_the_right_is_executed() {
    let vm = world(16).superpages().vm();
    for bits in 0..8_u8 {
        let prot = Prot::new(bits & 1 != 0, bits & 2 != 0, bits & 4 != 0);
        let space = space(&vm, 2 * P, prot);
        for touched in [false, true] {
            if prot.executes() {
                assert_eq!(space.fetch(AT), Ok(0), "{prot} {touched}")
            } else {
                refused(&space, AT)
            }
            // Reads where it may, so that the page is there and cached.
            assert_eq!(space.load(AT).is_ok(), prot.is_accessible(), "{prot}");
        }
        refused(&space, AT + 2 * P);
    }
}

#[test]
fn the_right_comes_and_goes_with_protect() {
    let vm = world(16).superpages().vm();
    for bytes in [P, SLOT] {
        let space = space(&vm, bytes, Prot::READ_WRITE);
        let pages = (0..bytes).step_by(P);
        let last = AT + bytes - P;
        pages.for_each(|page| space.store(AT + page, 7).expect("store"));
        assert_eq!(space.pmap().superpages(), bytes / SLOT);
        refused(&space, last);
        let whole = VaRange::sized(AT, bytes);
        space.protect(whole, Prot::READ_EXECUTE).expect("protect");
        assert_eq!(space.fetch(last), Ok(7));
        space.protect(whole, ALL).expect("protect");
        space.store(last, 8).expect("store");
        assert_eq!(space.fetch(last), Ok(8));
        space.protect(whole, Prot::READ_WRITE).expect("protect");
        refused(&space, last);
        space.store(last, 9).expect("store");
    }
}

/// A protect of one page takes a superpage apart, whose other pages keep the right.
#[test]
fn a_page_of_a_superpage_loses_the_right_alone() {
    let vm = world(16).superpages().vm();
    let space = space(&vm, SLOT, ALL);
    (0..SLOT)
        .step_by(P)
        .for_each(|page| space.store(AT + page, 1).expect("store"));
    assert_eq!(space.fetch(AT), Ok(1));
    space.protect(page(), Prot::READ_WRITE).expect("protect");
    refused(&space, AT);
    assert_eq!(space.fetch(AT + P), Ok(1));
}

#[test]
fn no_cpu_executes_once_protect_has_returned() {
    let vm = world(16).superpages().vm();
    let space = Arc::new(space(&vm, P, ALL));
    let at_other = |act: &(dyn Fn(&TestSpace) + Sync)| {
        vm.machine().on_cpu(1, || {
            space.activate();
            act(&space);
        });
    };
    at_other(&|space| assert_eq!(space.fetch(AT), Ok(0)));
    space.protect(page(), Prot::READ_WRITE).expect("protect");
    at_other(&|space| {
        refused(space, AT);
        assert_eq!(space.load(AT), Ok(0));
    });
}

#[test]
fn forks_and_shared_memory_keep_it() {
    let vm = world(16).superpages().vm();
    let parent = space(&vm, P, ALL);
    parent.store(AT, 5).expect("store");
    let shared = Request::anonymous(P, Prot::READ_EXECUTE)
        .shared()
        .at(At::Fixed(AT + SLOT));
    parent.map_as(&shared).expect("map");
    let child = parent.fork().expect("fork");
    child.activate();
    assert_eq!(child.fetch(AT), Ok(5));
    child.store(AT, 6).expect("a copy");
    assert_eq!(child.fetch(AT), Ok(6));
    assert_eq!(child.fetch(AT + SLOT), Ok(0));
    child.protect(page(), Prot::READ).expect("protect");
    refused(&child, AT);
    parent.activate();
    assert_eq!(parent.fetch(AT), Ok(5));
}
