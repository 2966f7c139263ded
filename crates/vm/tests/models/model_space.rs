//! Spaces of the real VM under all interleavings of two CPUs: the tree's descent and its
//! subdivision, activation concurrent with an unmap, protection with a fork, and a private copy or
//! a mapping of an object's page with a truncation.

use crate::spaces;

use loomed::Loomed;
use loomed::flaw::{Flaw, Site, must_be_found};
use machine::{Access, Atomic, Cpus, Mmu, Ordering, PAGE_SIZE, PageFault, VaRange};
use spaces::{
    BEYOND, BEYOND_HEAP, HEAP_SLOT, HERE, MIB, NEAR, OURS, THEIRS, World, model, not_theirs, page,
};
use vm::object::Pattern;
use vm::{At, Error, HEAP_START, Move, Prot, Request};

/// The slot of level 1 that both lie in is not subdivided yet: one of the CPUs does it.
fn two_map_in_one_slot(preemptions: usize) -> impl FnOnce() {
    model(
        preemptions,
        |world| world.map(HERE + 1024 * MIB),
        [|world| world.map(HERE), |world| world.map(NEAR)],
        |world| {
            for at in [HERE, NEAR] {
                assert_eq!(world.space.load(at), Ok(0), "{at:#x}");
            }
        },
    )
}

#[test]
fn mappings_subdivide_a_slot_at_once() {
    two_map_in_one_slot(2)();
}

/// As [`two_map_in_one_slot`], where one only looks.
fn a_look_meets_a_subdivision(preemptions: usize) -> impl FnOnce() {
    model(
        preemptions,
        |world| world.map(HERE + 1024 * MIB),
        [
            |world| world.map(HERE),
            |world| {
                let fault = PageFault {
                    address: NEAR,
                    access: Access::Read,
                    present: false,
                };
                let answer = world.space.fault(fault);
                assert_eq!(answer, Err(Error::Segv(fault)), "nothing is mapped");
            },
        ],
        |world| assert_eq!(world.space.load(HERE), Ok(0)),
    )
}

#[test]
fn a_descent_meets_a_subdivision() {
    a_look_meets_a_subdivision(2)();
}

const SLOT: &str = include_str!("../../src/tree/slot.rs");

#[test]
fn a_node_that_is_not_released_is_found() {
    let publishes = Site::after(
        "tree/slot.rs",
        SLOT,
        "Release: a walk that finds the node finds it filled",
    );
    must_be_found(Flaw::Relaxed, publishes, a_look_meets_a_subdivision(2));
}

#[test]
fn a_node_that_is_not_acquired_is_found() {
    let descends = Site::after(
        "tree/slot.rs",
        SLOT,
        "Acquire: pairs with the release in `subdivide`",
    );
    must_be_found(Flaw::Relaxed, descends, a_look_meets_a_subdivision(2));
}

/// A fork walks over all slots, and another CPU subdivides one that is mapped whole.
#[test]
fn a_fork_meets_a_subdivision() {
    model(
        1,
        |world| {
            let request = Request::anonymous(128 * MIB, Prot::READ_WRITE).at(At::Fixed(HERE));
            let whole = world.space.map_as(&request);
            whole.expect("map");
        },
        [
            |world| {
                Loomed::relax(0);
                let protected = world.space.protect(page(HERE), Prot::READ);
                protected.expect("protect");
            },
            |world| {
                let child = world.space.fork().expect("fork");
                child.activate();
                assert_eq!(child.load(NEAR), Ok(0));
            },
        ],
        |world| assert_eq!(world.space.load(NEAR), Ok(0)),
    )();
}

/// A fork passes over empty slots, and another CPU maps two of them at once: the child has both or
/// none.
#[test]
fn a_fork_meets_a_mapping_of_two_slots() {
    model(
        2,
        |world| world.fill(BEYOND),
        [
            |world| {
                let both = VaRange::sized(HERE, NEAR - HERE + PAGE_SIZE);
                let mapped = world.space.map_fixed(both, Prot::READ_WRITE);
                mapped.expect("map");
            },
            |world| {
                let child = world.space.fork().expect("fork");
                child.activate();
                let [here, near] = [HERE, NEAR].map(|at| child.load(at).is_ok());
                assert_eq!(here, near, "half of a mapping is inherited");
                assert_eq!(child.load(BEYOND), Ok(OURS));
            },
        ],
        |world| world.has(BEYOND),
    )();
}

/// Two CPUs move the heap's end from where two slots meet, one up and one down: one after the
/// other.
#[test]
fn a_heap_that_grows_meets_one_that_shrinks() {
    model(
        2,
        |world| world.set_break(HEAP_SLOT),
        [
            |world| world.set_break(HEAP_SLOT + PAGE_SIZE),
            |world| world.set_break(HEAP_SLOT - PAGE_SIZE),
        ],
        |world| World::has_heap(&world.space),
    )();
}

/// A fork passes over the slots while the heap's end moves, from one slot to the next or where
/// nothing is mapped: the child has the pages below its end, and no others.
fn a_fork_meets_a_heap<const FROM: usize, const TO: usize>() {
    model(
        3,
        |world| {
            world.set_break(FROM);
            world.fill(BEYOND_HEAP);
        },
        [
            |world| world.set_break(TO),
            |world| World::has_heap(&world.space.fork().expect("fork")),
        ],
        |world| World::has_heap(&world.space),
    )();
}

#[test]
fn a_fork_meets_a_heap_that_grows() {
    a_fork_meets_a_heap::<HEAP_START, { HEAP_START + PAGE_SIZE }>();
    a_fork_meets_a_heap::<HEAP_SLOT, { HEAP_SLOT + PAGE_SIZE }>();
}

#[test]
fn a_fork_meets_a_heap_that_shrinks() {
    a_fork_meets_a_heap::<{ HEAP_START + PAGE_SIZE }, HEAP_START>();
    a_fork_meets_a_heap::<{ HEAP_SLOT + PAGE_SIZE }, { HEAP_SLOT - PAGE_SIZE }>();
    a_fork_meets_a_heap::<{ HEAP_SLOT + PAGE_SIZE }, HEAP_SLOT>();
}

/// As [`a_fork_meets_a_heap`], when the heap's first slot has been unmapped by hand.
fn a_fork_meets_a_hole_in_a_heap<const FROM: usize, const TO: usize>() {
    model(
        2,
        |world| {
            world.set_break(FROM);
            let first = VaRange::sized(HEAP_START, 2 * MIB);
            world.space.unmap(first).expect("unmap");
            world.fill(BEYOND_HEAP);
        },
        [
            |world| world.set_break(TO),
            |world| {
                let child = world.space.fork().expect("fork");
                let end = child.current_break();
                assert!([FROM, TO].contains(&end), "{end:#x}");
                let has_second = child.region_at(HEAP_SLOT).is_some();
                assert_eq!(has_second, end > HEAP_SLOT, "{end:#x}");
            },
        ],
        |_| {},
    )();
}

#[test]
fn a_fork_meets_a_hole_in_a_heap_that_moves() {
    a_fork_meets_a_hole_in_a_heap::<HEAP_SLOT, { HEAP_SLOT + PAGE_SIZE }>();
    a_fork_meets_a_hole_in_a_heap::<{ HEAP_SLOT + PAGE_SIZE }, HEAP_SLOT>();
}

/// A CPU begins to run in the space while another one unmaps: it is flushed, or finds nothing.
#[test]
fn an_activation_meets_an_unmap() {
    model(
        2,
        |world| world.fill(HERE),
        [
            |world| {
                world.space.unmap(page(HERE)).expect("unmap");
                world.reuse();
            },
            |world| {
                world.space.activate();
                // SAFETY: the CPU translates by tables that stay during the call.
                let seen = unsafe { world.machine.load(HERE) };
                assert!(
                    matches!(seen, Ok(OURS) | Err(_)),
                    "somebody else's: {seen:?}"
                );
            },
        ],
        |world| assert!(matches!(world.space.load(HERE), Err(Error::Segv(_)))),
    )();
}

/// A fork makes entries read-only and flushes at its end; a CPU that takes rights meanwhile flushes
/// translations that TLBs still know as writable.
fn a_protect_meets_a_fork() -> impl FnOnce() {
    model(
        1,
        |world| world.fill(HERE),
        [
            |world| {
                // The fork begins: no preemption.
                Loomed::relax(0);
                let protected = world.space.protect(page(HERE), Prot::READ);
                protected.expect("protect");
                // SAFETY: the CPU translates by tables that stay during the call.
                let stored = unsafe { world.machine.store(HERE, THEIRS) };
                assert!(stored.is_err(), "a right that was taken is used");
            },
            |world| {
                let child = world.space.fork().expect("fork");
                assert_eq!(child.pmap().resident(), 1);
            },
        ],
        |world| world.has(HERE),
    )
}

#[test]
fn a_protect_beside_a_fork_flushes() {
    a_protect_meets_a_fork()();
}

#[test]
fn a_protect_that_sees_no_fork_is_found() {
    let copy = include_str!("../../src/pmap/revocation.rs");
    let looks = Site::after(
        "pmap/revocation.rs",
        copy,
        "Acquire: pairs with the release of the fork that has flushed",
    );
    must_be_found(Flaw::Blind, looks, a_protect_meets_a_fork());
}

/// A fork reads a slot that another CPU wants to change: that waits, or comes first.
#[test]
fn an_unmap_waits_for_a_fork_that_reads_its_slot() {
    model(
        1,
        |world| world.fill(HERE),
        [
            |world| {
                Loomed::relax(0);
                world.space.unmap(page(HERE)).expect("unmap");
                world.reuse();
            },
            |world| {
                let child = world.space.fork().expect("fork");
                child.activate();
                let seen = child.load(HERE);
                assert!(matches!(seen, Ok(OURS) | Err(Error::Segv(_))), "{seen:?}");
            },
        ],
        |world| assert!(matches!(world.space.load(HERE), Err(Error::Segv(_)))),
    )();
}

/// A private copy is made while its page goes from the object: it goes, too.
fn a_copy_meets_a_truncation(prepare: fn(&World)) {
    model(
        1,
        prepare,
        [
            |world| {
                Loomed::relax(0);
                world.object.set_size(0).expect("set_size");
            },
            |world| {
                world.space.activate();
                match world.space.store(HERE, OURS) {
                    Ok(()) | Err(Error::Bus { .. }) => {}
                    other => panic!("{other:?}"),
                }
            },
        ],
        |world| {
            let seen = world.space.load(HERE);
            assert!(matches!(seen, Err(Error::Bus { .. })), "{seen:?}");
        },
    )();
}

#[test]
fn a_first_copy_does_not_stay_behind_the_end() {
    a_copy_meets_a_truncation(|world| {
        world.map_object(HERE);
        drop(world.object.page(0, Pattern::Random).expect("a page"));
    });
}

/// The slot that the mapping covers has no page and no node yet: the fault subdivides it.
#[test]
fn a_copy_that_subdivides_does_not_stay_behind_the_end() {
    a_copy_meets_a_truncation(|world| {
        let request = Request::object(&world.object, 0, 128 * MIB, Prot::READ_WRITE);
        let request = request.expect("a request").at(At::Fixed(HERE));
        world.space.map_as(&request).expect("map");
        drop(world.object.page(0, Pattern::Random).expect("a page"));
    });
}

#[test]
fn a_copy_of_what_is_mapped_does_not_stay_behind_the_end() {
    a_copy_meets_a_truncation(|world| {
        world.map_object(HERE);
        assert_eq!(world.space.load(HERE), Ok(0));
    });
}

/// A space with a private copy hands it on while the page goes from the object.
#[test]
fn a_childs_copy_does_not_stay_behind_the_end() {
    model(
        1,
        |world| {
            world.map_object(HERE);
            world.space.store(HERE, OURS).expect("store");
        },
        [
            |world| {
                Loomed::relax(0);
                world.object.set_size(0).expect("set_size");
                world.cut.store(1, Ordering::Release);
            },
            |world| {
                let child = world.space.fork().expect("fork");
                child.activate();
                Loomed::spin_until(|| world.cut.load(Ordering::Acquire) == 1);
                let seen = child.load(HERE);
                assert!(matches!(seen, Err(Error::Bus { .. })), "{seen:?}");
            },
        ],
        |_| {},
    )();
}

#[test]
fn a_moved_copy_does_not_stay_behind_the_end() {
    model(
        1,
        |world| {
            world.map(NEAR);
            world.map_object(HERE);
            world.space.store(HERE, OURS).expect("store");
        },
        [
            |world| {
                Loomed::relax(0);
                world.object.set_size(0).expect("set_size");
            },
            |world| {
                let to = Move::To(NEAR);
                let moved = world.space.remap(page(HERE), PAGE_SIZE, to);
                assert_eq!(moved, Ok(NEAR));
            },
        ],
        |world| {
            let seen = world.space.load(NEAR);
            assert!(matches!(seen, Err(Error::Bus { .. })), "{seen:?}");
        },
    )();
}

/// An object's page is mapped, by an entry that no list has, while it goes from the object.
#[test]
fn a_mapping_does_not_outlive_its_page() {
    model(
        2,
        |world| {
            world.map_object(HERE);
            drop(world.object.page(0, Pattern::Random).expect("a page"));
        },
        [
            |world| {
                world.object.set_size(0).expect("set_size");
                world.reuse();
            },
            |world| {
                world.space.activate();
                not_theirs(world.space.load(HERE));
                // SAFETY: the CPU translates by tables that stay during the call.
                not_theirs(unsafe { world.machine.load(HERE) });
            },
        ],
        |world| {
            let seen = world.space.load(HERE);
            assert!(matches!(seen, Err(Error::Bus { .. })), "{seen:?}");
        },
    )();
}

/// As above, where the mapping's attachment is made meanwhile, too: the first on its CPU.
#[test]
fn a_new_mapping_does_not_outlive_its_page() {
    model(
        2,
        |world| {
            world.fill(NEAR);
            drop(world.object.page(0, Pattern::Random).expect("a page"));
        },
        [
            |world| {
                world.object.set_size(0).expect("set_size");
                world.reuse();
            },
            |world| {
                world.space.activate();
                world.map_object(HERE);
                not_theirs(world.space.load(HERE));
                // SAFETY: the CPU translates by tables that stay during the call.
                not_theirs(unsafe { world.machine.load(HERE) });
            },
        ],
        |world| {
            let seen = world.space.load(HERE);
            assert!(matches!(seen, Err(Error::Bus { .. })), "{seen:?}");
        },
    )();
}

/// A move hands an entry on while its page goes from the object.
#[test]
fn a_moved_mapping_does_not_outlive_its_page() {
    model(
        1,
        |world| {
            world.map(NEAR);
            world.map_object(HERE);
            assert_eq!(world.space.load(HERE), Ok(0));
        },
        [
            |world| {
                Loomed::relax(0);
                world.object.set_size(0).expect("set_size");
                world.reuse();
            },
            |world| {
                let to = Move::To(NEAR);
                let moved = world.space.remap(page(HERE), PAGE_SIZE, to);
                assert_eq!(moved, Ok(NEAR));
                world.space.activate();
                // SAFETY: the CPU translates by tables that stay during the call.
                not_theirs(unsafe { world.machine.load(NEAR) });
            },
        ],
        |world| {
            let seen = world.space.load(NEAR);
            assert!(matches!(seen, Err(Error::Bus { .. })), "{seen:?}");
        },
    )();
}
