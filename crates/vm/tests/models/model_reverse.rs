//! Removal, the look for stores and eviction over the reverse map, of the real VM, under all
//! interleavings with an unmap or a fault, and with a third CPU that uses the translation.

use crate::spaces;

use loomed::Loomed;
use machine::{Atomic, Cpus, Mmu, Ordering, PAGE_SIZE, Tasks};
use spaces::{HERE, NEAR, OURS, THEIRS, World, model, not_theirs, page};
use sync::sleepq::{Hashed, SleepQueue};
use vm::object::{self, Home, Object};
use vm::{Advice, At, Best, Error, Move, Prot, Request};

/// Evicts the object's page if it is not mapped.
fn evict(world: &World) {
    evict_from(world, &world.object);
}

fn evict_from(world: &World, object: &Object<Best<Loomed>>) {
    let frame = object.resident(0).expect("no other task takes it");
    let held = world.vm.page_ref(frame).expect("the object has it");
    // None while another task is busy with the page.
    if world.vm.home(&held).is_some_and(Home::evict) {
        drop(held);
        world.reuse();
    }
}

#[test]
fn an_eviction_sees_a_mapping_or_a_fault_sees_the_eviction() {
    model(
        2,
        |world| {
            // Where the fault sleeps while the eviction has the entry: made here, since the checker
            // does not see how two CPUs make it at once.
            Loomed::anchor().get_or_init(Hashed::<Loomed>::new);
            world.map_object(HERE);
            drop(
                world
                    .object
                    .page(0, object::Pattern::Random)
                    .expect("a page"),
            );
        },
        [evict, |world| {
            world.space.activate();
            assert_eq!(world.space.load(HERE), Ok(0));
            // SAFETY: the CPU translates by tables that stay during the call.
            assert_eq!(unsafe { world.machine.load(HERE) }, Ok(0), "it is mapped");
        }],
        |world| assert_eq!(world.space.load(HERE), Ok(0)),
    )();
}

/// The fault is on the page behind it, and may map it, too.
#[test]
fn an_eviction_sees_a_neighbours_mapping_or_the_fault_sees_the_eviction() {
    const BOTH: usize = 2 * PAGE_SIZE;
    model(
        2,
        |world| {
            Loomed::anchor().get_or_init(Hashed::<Loomed>::new);
            world.object.set_size(BOTH as u64).expect("set_size");
            let request = Request::object(&world.object, 0, BOTH, Prot::READ);
            let request = request.expect("a request").at(At::Fixed(HERE));
            world.space.map_as(&request).expect("map");
            for index in 0..2 {
                let page = world.object.page(index, object::Pattern::Random);
                drop(page.expect("a page"));
            }
        },
        [evict, |world| {
            world.space.activate();
            assert_eq!(world.space.load(HERE + PAGE_SIZE), Ok(0));
            // SAFETY: the CPU translates by tables that stay during the call.
            not_theirs(unsafe { world.machine.load(HERE) });
        }],
        |world| assert_eq!(world.space.load(HERE), Ok(0)),
    )();
}

/// The page is clean, and a translation of it is on its way out.
#[test]
fn an_eviction_waits_for_the_flush_of_an_unmap() {
    model(
        2,
        |world| {
            world.map_object(HERE);
            assert_eq!(world.space.load(HERE), Ok(0));
        },
        [evict, |world| {
            world.space.activate();
            // SAFETY: the CPU translates by tables that stay during the call.
            not_theirs(unsafe { world.machine.load(HERE) });
            world.space.unmap(page(HERE)).expect("unmap");
        }],
        |world| assert!(matches!(world.space.load(HERE), Err(Error::Segv(_)))),
    )();
}

/// Unmaps the page. Another CPU goes first, and that is no preemption.
fn unmap(world: &World) {
    Loomed::relax(0);
    world.space.unmap(page(HERE)).expect("unmap");
}

/// A private page is found on no list while a third CPU may still use its translation, which it has
/// from before.
#[test]
fn a_removal_waits_for_the_flush_of_an_unmap() {
    model(
        1,
        |world| {
            world.fill_held(HERE);
            // SAFETY: the CPU translates by tables that stay during the call.
            assert_eq!(unsafe { world.machine.load(HERE) }, Ok(OURS));
        },
        [
            |world| {
                Loomed::relax(0);
                // SAFETY: the CPU translates by tables that stay during the call.
                not_theirs(unsafe { world.machine.load(HERE) });
            },
            unmap,
            |world| {
                let hold = world.take_held();
                Loomed::relax(0);
                world.vm.remove_all(&hold);
                let word = hold.word(0);
                word.store(THEIRS, Ordering::Relaxed);
            },
        ],
        |world| assert!(matches!(world.space.load(HERE), Err(Error::Segv(_)))),
    )();
}

/// The same for stores: one by a translation on its way out marks nothing, so it must come before
/// the look ends. The CPU that stores has the translation from before.
#[test]
fn a_look_for_stores_waits_for_the_flush_of_an_unmap() {
    model(
        1,
        |world| {
            world.fill_held(HERE);
            // SAFETY: the CPU translates by tables that stay during the call.
            unsafe { world.machine.store(HERE, OURS + 1) }.expect("it is mapped");
        },
        [
            |world| {
                Loomed::relax(0);
                // SAFETY: the CPU translates by tables that stay during the call.
                let _ = unsafe { world.machine.store(HERE, OURS + 2) };
            },
            unmap,
            |world| {
                let hold = world.take_held();
                Loomed::relax(0);
                world.vm.test_modified(&hold);
                let found = hold.word(0);
                world
                    .seen
                    .store(found.load(Ordering::Relaxed), Ordering::Relaxed);
                world.put_held(hold);
            },
        ],
        |world| {
            let hold = world.take_held();
            let found = hold.word(0);
            let is_seen = found.load(Ordering::Relaxed) == world.seen.load(Ordering::Relaxed);
            assert!(
                is_seen || world.vm.test_modified(&hold),
                "a store is missed"
            );
        },
    )();
}

/// A page that nobody holds goes from its only mapping, and a task that has seen its frame there
/// comes: it holds the page first, and waits for the flush, or gets nothing.
#[test]
fn a_removal_of_a_page_that_goes_waits_or_finds_nothing() {
    model(
        1,
        |world| {
            world.fill(HERE);
            world.note_frame(HERE);
        },
        [
            |world| {
                Loomed::relax(0);
                if let Some(hold) = world.vm.hold(world.noted_frame()) {
                    world.vm.remove_all(&hold);
                    let word = hold.word(0);
                    word.store(THEIRS, Ordering::Relaxed);
                }
            },
            |world| {
                unmap(world);
                world.reuse();
            },
            |world| {
                world.space.activate();
                // SAFETY: the CPU translates by tables that stay during the call.
                let _ = unsafe { world.machine.load(HERE) };
                Loomed::relax(0);
                // SAFETY: the CPU translates by tables that stay during the call.
                not_theirs(unsafe { world.machine.load(HERE) });
            },
        ],
        |world| assert!(matches!(world.space.load(HERE), Err(Error::Segv(_)))),
    )();
}

/// A task that held a page, and looked at its list, is gone when the page goes from its only
/// mapping and another one begins in the frame.
#[test]
fn a_page_goes_after_its_holder() {
    model(
        2,
        |world| world.fill_held(HERE),
        [
            |world| {
                let hold = world.take_held();
                world.vm.test_referenced(&hold);
            },
            |world| {
                unmap(world);
                world.reuse();
            },
        ],
        |world| assert!(matches!(world.space.load(HERE), Err(Error::Segv(_)))),
    )();
}

/// A task that has seen a frame comes back to it while a first touch begins a page there, whose
/// list it has not locked.
#[test]
fn a_page_begins_beside_an_old_hint() {
    model(
        2,
        |world| {
            world.fill(NEAR);
            world.fill(HERE);
            world.note_frame(HERE);
            world.space.discard(page(HERE)).expect("discard");
        },
        [
            // On the CPU that has freed the frame.
            |world| world.space.store(HERE, OURS).expect("store"),
            |world| {
                if let Some(hold) = world.vm.hold(world.noted_frame()) {
                    world.vm.test_referenced(&hold);
                }
            },
        ],
        |world| world.has(HERE),
    )();
}

/// A fault brings a page in, which then is written, and goes out once more: to the same slot.
#[test]
fn a_fault_sees_that_its_page_went_out_again() {
    model(
        1,
        |world| {
            world.fill(HERE);
            page_out(world);
        },
        [
            |world| {
                world.space.activate();
                let seen = world.space.load(HERE);
                assert!(matches!(seen, Ok(OURS | THEIRS)), "{seen:?}");
            },
            |world| {
                world.space.activate();
                world.space.store(HERE, THEIRS).expect("store");
                page_out(world);
            },
        ],
        |world| assert_eq!(world.space.load(HERE), Ok(THEIRS)),
    )();
}

fn page_out(world: &World) {
    let advised = world.space.advise(page(HERE), Advice::PageOut);
    advised.expect("advise");
}

/// The eviction has passed by the new mapping's place: it stands with those of CPU 0, and the old
/// one with those of CPU 1. The page is dirty, which only its mapping knows.
#[test]
fn a_mapping_that_moves_to_where_an_eviction_has_looked_loses_nothing() {
    model(
        1,
        |world| world.map(NEAR),
        [
            |world| {
                while world.seen.load(Ordering::Acquire) == 0 {
                    Loomed::relax(0);
                }
                let moved = world.space.remap(page(HERE), PAGE_SIZE, Move::To(NEAR));
                assert_eq!(moved, Ok(NEAR));
            },
            |world| {
                world.space.activate();
                let request = Request::object(&world.object, 0, PAGE_SIZE, Prot::READ_WRITE);
                let request = request.expect("a request").at(At::Fixed(HERE)).shared();
                world.space.map_as(&request).expect("map");
                world.space.store(HERE, OURS).expect("store");
                // Release: CPU 0 moves what is mapped.
                world.seen.store(1, Ordering::Release);
                evict(world);
            },
        ],
        |world| assert_eq!(world.space.load(NEAR), Ok(OURS)),
    )();
}

/// While an eviction looks whether the page is mapped, the file shows none.
#[test]
fn a_sync_beside_an_eviction_writes_what_was_stored() {
    model(
        1,
        |world| {
            let request = Request::object(&world.file, 0, PAGE_SIZE, Prot::READ_WRITE);
            let request = request.expect("a request").at(At::Fixed(HERE)).shared();
            world.space.map_as(&request).expect("map");
            assert_eq!(world.space.load(HERE), Ok(0));
            // Where a task sleeps while another has the entry.
            Loomed::anchor().get_or_init(Hashed::<Loomed>::new);
        },
        [
            |world| evict_from(world, &world.file),
            |world| {
                world.space.activate();
                world.space.store(HERE, OURS).expect("store");
                world.space.sync(page(HERE)).expect("sync");
                assert_eq!(world.store.word(), OURS);
            },
        ],
        |world| assert_eq!(world.space.load(HERE), Ok(OURS)),
    )();
}
