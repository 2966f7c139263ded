//! Spaces of the real VM under all interleavings of two or three CPUs: the tree's descent and its
//! subdivision, activation beside an unmap, protection beside a fork, a private copy or a mapping of an
//! object's page beside a truncation, and beside an eviction; removal by the reverse map beside an unmap.

use checked::Checked;
use checked::flaw::{Flaw, Site, must_be_found};
use checked::loom::model::Builder;
use machine::{
    Atomic, Atomics, Cpus, Execute, Job, Memory, Mmu, Ordering, PAGE_SIZE, Tasks, VaRange,
};
use std::sync::{Arc, Mutex};
use sync::sleepq::{Hashed, SleepQueue};
use vm::object::{Advice, Object, ObjectRef};
use vm::{At, Best, Error, Hold, Move, Options, Prot, Request, Space, Vm};

const MIB: usize = 1 << 20;
/// A page of the slot of level 0 at 1 GiB.
const HERE: usize = 1 << 30;
/// A page of its neighbour: 2 MiB on.
const NEAR: usize = HERE + 2 * MIB;
/// A page of the slot behind that.
const BEYOND: usize = NEAR + 2 * MIB;
/// The content of the pages.
const OURS: u64 = 7;
/// The content of another owner's page.
const THEIRS: u64 = 99;

struct World {
    machine: Checked,
    vm: Arc<Vm<Checked, Best>>,
    space: Space<Checked, Best>,
    /// A page of a file's, as private mappings see it.
    object: ObjectRef<Checked, Best>,
    /// 1 when the page has gone from there.
    cut: <Checked as Atomics>::AtomicU64,
    /// A private page that is held.
    held: Mutex<Option<Hold<Checked, Best>>>,
    /// Its first word, as a look for stores left it.
    seen: <Checked as Atomics>::AtomicU64,
}

impl World {
    fn new(machine: &Checked) -> World {
        let options = Options {
            swap_pages: Some(1 << 20),
            ..Options::default()
        };
        let vm = Vm::with_options(machine.clone(), options).expect("memory for the VM");
        let space = Space::new(&vm).expect("a space");
        let object = Object::anonymous(&vm, None, PAGE_SIZE as u64).expect("an object");
        World {
            machine: machine.clone(),
            vm,
            space,
            object,
            cut: Atomic::new(0),
            held: Mutex::new(None),
            seen: Atomic::new(0),
        }
    }

    fn map(&self, at: usize) {
        let mapped = self.space.map_fixed(page(at), Prot::READ_WRITE);
        mapped.expect("map");
    }

    /// Maps a page at `at`, and writes it.
    fn fill(&self, at: usize) {
        self.map(at);
        self.space.store(at, OURS).expect("store");
    }

    /// As [`World::fill`], and holds the page.
    fn fill_held(&self, at: usize) {
        self.fill(at);
        let frame = self.space.pmap().lookup(at).expect("a page");
        *self.held.lock().unwrap() = self.vm.hold(frame);
    }

    fn has(&self, at: usize) {
        assert_eq!(self.space.load(at), Ok(OURS), "{at:#x}");
    }

    /// Maps the object's page privately at `at`.
    fn map_object(&self, at: usize) {
        let request = Request::object(&self.object, 0, PAGE_SIZE, Prot::READ_WRITE);
        let request = request.expect("a request").at(At::Fixed(at));
        self.space.map_as(&request).expect("map");
    }

    /// Takes a frame for something else: the one that was freed last.
    fn reuse(&self) {
        let other = self.vm.new_page().expect("a page");
        let word = self.machine.word(other.frame(), 0);
        word.store(THEIRS, Ordering::Relaxed);
    }
}

fn page(at: usize) -> VaRange {
    VaRange::sized(at, PAGE_SIZE)
}

/// Runs `prepare`, then the jobs at once, then `end`, in each interleaving with at most so many
/// `preemptions`.
fn model<const CPUS: usize>(
    preemptions: usize,
    prepare: fn(&World),
    jobs: [fn(&World); CPUS],
    end: fn(&World),
) -> impl FnOnce() {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 100_000;
    move || {
        builder.check(move || {
            let machine = Checked::with_memory(jobs.len(), 32);
            let on_cpu = |job: Job| machine.execute(vec![job]);
            let made = Arc::new(Mutex::new(None));
            let (of, into) = (machine.clone(), made.clone());
            on_cpu(Box::new(move || {
                let world = World::new(&of);
                world.space.activate();
                prepare(&world);
                *into.lock().unwrap() = Some(Arc::new(world));
            }));
            let world = made.lock().unwrap().take().expect("made above");
            let start = |job: fn(&World)| {
                let world = world.clone();
                Box::new(move || job(&world)) as Job
            };
            machine.execute(jobs.map(start).into());
            on_cpu(Box::new(move || {
                end(&world);
                let world = Arc::into_inner(world).expect("all have ended");
                let vm = world.vm.clone();
                drop(world);
                assert_eq!(vm.frames().free_count(), vm.frames().total(), "leaked");
            }));
        });
    }
}

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
            |world| match world.space.load(NEAR) {
                Err(Error::Segv(_)) => {}
                other => panic!("nothing is mapped: {other:?}"),
            },
        ],
        |world| assert_eq!(world.space.load(HERE), Ok(0)),
    )
}

#[test]
fn a_descent_meets_a_subdivision() {
    a_look_meets_a_subdivision(2)();
}

const SLOT: &str = include_str!("../src/tree/slot.rs");

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
                Checked::relax(0);
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

/// A fork passes over empty slots, and another CPU maps two of them at once: the child has both or none.
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
                let seen = world.machine.load(HERE);
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
                Checked::relax(0);
                let protected = world.space.protect(page(HERE), Prot::READ);
                protected.expect("protect");
                let stored = world.machine.store(HERE, THEIRS);
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
    let copy = include_str!("../src/pmap/fork.rs");
    let looks = Site::after(
        "pmap/fork.rs",
        copy,
        "Acquire: pairs with the release of the fork that has flushed",
    );
    must_be_found(Flaw::Blind, looks, a_protect_meets_a_fork());
}

/// A private copy is made while its page goes from the object: it goes, too.
fn a_copy_meets_a_truncation(prepare: fn(&World)) {
    model(
        1,
        prepare,
        [
            |world| {
                Checked::relax(0);
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
        drop(world.object.page(0, Advice::Random).expect("a page"));
    });
}

/// The slot that the mapping covers has no page and no node yet: the fault subdivides it.
#[test]
fn a_copy_that_subdivides_does_not_stay_behind_the_end() {
    a_copy_meets_a_truncation(|world| {
        let request = Request::object(&world.object, 0, 128 * MIB, Prot::READ_WRITE);
        let request = request.expect("a request").at(At::Fixed(HERE));
        world.space.map_as(&request).expect("map");
        drop(world.object.page(0, Advice::Random).expect("a page"));
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
                Checked::relax(0);
                world.object.set_size(0).expect("set_size");
                world.cut.store(1, Ordering::Release);
            },
            |world| {
                let child = world.space.fork().expect("fork");
                child.activate();
                Checked::spin_until(|| world.cut.load(Ordering::Acquire) == 1);
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
                Checked::relax(0);
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

/// A task never finds the frame's next content, by a translation of its own or by a fault.
fn not_theirs(seen: Result<u64, impl std::fmt::Debug>) {
    assert!(!matches!(seen, Ok(THEIRS)), "somebody else's");
}

/// An object's page is mapped, by an entry that no list has, while it goes from the object.
#[test]
fn a_mapping_does_not_outlive_its_page() {
    model(
        2,
        |world| {
            world.map_object(HERE);
            drop(world.object.page(0, Advice::Random).expect("a page"));
        },
        [
            |world| {
                world.object.set_size(0).expect("set_size");
                world.reuse();
            },
            |world| {
                world.space.activate();
                not_theirs(world.space.load(HERE));
                not_theirs(world.machine.load(HERE));
            },
        ],
        |world| {
            let seen = world.space.load(HERE);
            assert!(matches!(seen, Err(Error::Bus { .. })), "{seen:?}");
        },
    )();
}

/// Evicts the object's page if it is not mapped.
fn evict(world: &World) {
    let frame = world.object.resident(0).expect("no other task takes it");
    let held = world.vm.page_ref(frame).expect("the object has it");
    let home = world.vm.home(&held).expect("no other task is busy");
    if home.evict() {
        drop(held);
        world.reuse();
    }
}

#[test]
fn an_eviction_sees_a_mapping_or_a_fault_sees_the_eviction() {
    model(
        2,
        |world| {
            // Where the fault sleeps while the eviction has the entry: made here, since the checker does not
            // see how two CPUs make it at once.
            Checked::anchor().get_or_init(Hashed::<Checked>::new);
            world.map_object(HERE);
            drop(world.object.page(0, Advice::Random).expect("a page"));
        },
        [evict, |world| {
            world.space.activate();
            assert_eq!(world.space.load(HERE), Ok(0));
            assert_eq!(world.machine.load(HERE), Ok(0), "it is mapped");
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
            not_theirs(world.machine.load(HERE));
            world.space.unmap(page(HERE)).expect("unmap");
        }],
        |world| assert!(matches!(world.space.load(HERE), Err(Error::Segv(_)))),
    )();
}

/// A private page is found on no list while a third CPU may still use its translation.
#[test]
fn a_removal_waits_for_the_flush_of_an_unmap() {
    model(
        2,
        |world| world.fill_held(HERE),
        [
            |world| {
                let hold = world.held.lock().unwrap().take().expect("held");
                Checked::relax(0);
                world.vm.remove_all(&hold);
                let word = world.machine.word(hold.frame(), 0);
                word.store(THEIRS, Ordering::Relaxed);
            },
            |world| {
                Checked::relax(0);
                world.space.unmap(page(HERE)).expect("unmap");
            },
            |world| {
                world.space.activate();
                let _ = world.machine.load(HERE);
                Checked::relax(0);
                not_theirs(world.machine.load(HERE));
            },
        ],
        |world| assert!(matches!(world.space.load(HERE), Err(Error::Segv(_)))),
    )();
}

/// The same for stores: one by a translation on its way out marks nothing, so it must come before the look ends.
#[test]
fn a_look_for_stores_waits_for_the_flush_of_an_unmap() {
    model(
        1,
        |world| world.fill_held(HERE),
        [
            |world| {
                let hold = world.held.lock().unwrap().take().expect("held");
                Checked::relax(0);
                world.vm.test_modified(&hold);
                let found = world.machine.word(hold.frame(), 0);
                world
                    .seen
                    .store(found.load(Ordering::Relaxed), Ordering::Relaxed);
                *world.held.lock().unwrap() = Some(hold);
            },
            |world| {
                Checked::relax(0);
                world.space.unmap(page(HERE)).expect("unmap");
            },
            |world| {
                world.space.activate();
                let _ = world.machine.store(HERE, OURS + 1);
                Checked::relax(0);
                let _ = world.machine.store(HERE, OURS + 2);
            },
        ],
        |world| {
            let hold = world.held.lock().unwrap().take().expect("held");
            let found = world.machine.word(hold.frame(), 0);
            let is_seen = found.load(Ordering::Relaxed) == world.seen.load(Ordering::Relaxed);
            assert!(
                is_seen || world.vm.test_modified(&hold),
                "a store is missed"
            );
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
                Checked::relax(0);
                world.object.set_size(0).expect("set_size");
                world.reuse();
            },
            |world| {
                let to = Move::To(NEAR);
                let moved = world.space.remap(page(HERE), PAGE_SIZE, to);
                assert_eq!(moved, Ok(NEAR));
                world.space.activate();
                not_theirs(world.machine.load(NEAR));
            },
        ],
        |world| {
            let seen = world.space.load(NEAR);
            assert!(matches!(seen, Err(Error::Bus { .. })), "{seen:?}");
        },
    )();
}
