//! Kin under all interleavings: a parent and its child that change pages which they share, each in
//! a table of its own. Whatever comes first, each finds its own words, and no frame is lost.

use crate::spaces;

use machine::{PAGE_SIZE, VaRange};
use spaces::{HERE, NEAR, OURS, World, model, page};
use vm::{Advice, Move, Prot};

/// Pages of a slot whose forks are kin.
const PAGES: usize = 4;
const PARENTS: u64 = 8;
const CHILDS: u64 = 9;

/// Pages that a child shares, and a place where one may go.
fn shared(world: &World) {
    world.map(NEAR);
    let range = VaRange::sized(HERE, PAGES * PAGE_SIZE);
    world.space.map_fixed(range, Prot::READ_WRITE).expect("map");
    for at in (range.start..range.end).step_by(PAGE_SIZE) {
        world.space.store(at, OURS).expect("store");
    }
    world.put_child(world.space.fork().expect("fork"));
}

fn child_stores(world: &World) {
    let child = world.take_child();
    child.activate();
    child.store(HERE, CHILDS).expect("store");
    world.put_child(child);
}

fn child_exits(world: &World) {
    drop(world.take_child());
}

fn parent_stores(world: &World) {
    world.space.store(HERE, PARENTS).expect("store");
}

/// The child has its words, and the pages that it did not write.
fn child_looks(world: &World, first: u64) {
    let child = world.take_child();
    child.activate();
    assert_eq!(child.load(HERE), Ok(first), "the child's");
    assert_eq!(child.load(HERE + PAGE_SIZE), Ok(OURS), "the child's");
    world.put_child(child);
}

/// As [`child_looks`], at the end.
fn child_has(world: &World, first: u64) {
    child_looks(world, first);
    child_exits(world);
}

fn parent_has(world: &World, at: usize, word: u64) {
    world.space.activate();
    assert_eq!(world.space.load(at), Ok(word), "the parent's");
    assert_eq!(world.space.load(HERE + PAGE_SIZE), Ok(OURS), "the parent's");
}

#[test]
fn both_store() {
    model(1, shared, [parent_stores, child_stores], |world| {
        parent_has(world, HERE, PARENTS);
        child_has(world, CHILDS);
    })();
}

/// The page that moves is its mapping's own first.
#[test]
fn one_moves_what_the_other_writes() {
    model(
        1,
        shared,
        [
            |world| {
                let moved = world.space.remap(page(HERE), PAGE_SIZE, Move::To(NEAR));
                assert_eq!(moved, Ok(NEAR));
            },
            child_stores,
        ],
        |world| {
            parent_has(world, NEAR, OURS);
            child_has(world, CHILDS);
        },
    )();
}

#[test]
fn one_takes_and_gives_rights_while_the_other_looks() {
    model(
        1,
        shared,
        [
            |world| {
                for prot in [Prot::READ, Prot::READ_WRITE] {
                    world.space.protect(page(HERE), prot).expect("protect");
                }
                parent_stores(world);
            },
            |world| child_looks(world, OURS),
        ],
        |world| {
            parent_has(world, HERE, PARENTS);
            child_has(world, OURS);
        },
    )();
}

#[test]
fn one_goes_while_the_other_writes() {
    model(1, shared, [parent_stores, child_exits], |world| {
        parent_has(world, HERE, PARENTS)
    })();
}

#[test]
fn one_forks_while_the_other_writes() {
    model(
        1,
        shared,
        [parent_stores, |world| {
            let child = world.take_child();
            let grandchild = child.fork().expect("fork");
            grandchild.activate();
            grandchild.store(HERE, PARENTS + CHILDS).expect("store");
            world.put_child(child);
        }],
        |world| {
            parent_has(world, HERE, PARENTS);
            child_has(world, OURS);
        },
    )();
}

#[test]
fn one_gives_a_page_up_while_the_other_writes() {
    model(
        1,
        shared,
        [
            |world| {
                world
                    .space
                    .advise(page(HERE), Advice::DontNeed)
                    .expect("advise")
            },
            child_stores,
        ],
        |world| {
            parent_has(world, HERE, 0);
            child_has(world, CHILDS);
        },
    )();
}
