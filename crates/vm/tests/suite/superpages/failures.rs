//! Superpages in the making and being taken apart, with everything refused that it takes.

use crate::failing::{self, Call, Large, Pages, World, all};
use crate::world::P;
use machine::VaRange;
use vm::{Advice, Move, Prot};

fn stay(calls: &[&Call<'_, Large>]) {
    for call in calls {
        all(Pages::Stay, call);
    }
}

fn fill(world: &Large, range: VaRange) -> Result<(), vm::Error> {
    let mut pages = (range.start..range.end).step_by(P);
    pages.try_for_each(|at| world.space.load(at).map(drop))
}

#[test]
fn the_first_page() {
    let first = |world: &Large| world.space.store(Large::FRESH.start, 0);
    let failures = all(Pages::Stay, first);
    assert!(failures.frames > 2, "{failures:?}");
}

#[test]
fn the_last_page() {
    all(Pages::Move, |world: &Large| fill(world, Large::BEGUN));
    let world = Large::new();
    fill(&world, Large::BEGUN).expect("load");
    assert_eq!(world.space.pmap().superpages(), 2);
    world.tear_down("full");
}

#[test]
fn rights() {
    stay(&[
        &|world| world.space.protect(Large::WHOLE, Prot::READ),
        &|world| world.space.protect(Large::part(3, 4), Prot::READ),
        &|world| {
            world.space.protect(Large::part(3, 4), Prot::NONE)?;
            world.space.protect(Large::WHOLE, Prot::READ_WRITE)
        },
    ]);
}

#[test]
fn parts_go() {
    stay(&[
        &|world| world.space.unmap(Large::WHOLE),
        &|world| world.space.unmap(Large::part(500, 20)),
        &|world| world.space.advise(Large::part(1, 2), Advice::DontNeed),
        &|world| world.space.advise(Large::WHOLE, Advice::DontNeed),
        &|world| world.space.advise(Large::part(0, 1), Advice::NoHuge),
    ]);
}

#[test]
fn moves() {
    let far = failing::elsewhere(4);
    let remap = |world: &Large, old: VaRange, bytes: usize| {
        let place = Move::To(far.start);
        world.space.remap(old, bytes, place).map(drop)
    };
    stay(&[&|world| remap(world, Large::WHOLE, far.len()), &|world| {
        remap(world, Large::part(7, 600), 600 * P)
    }]);
}

#[test]
fn children() {
    stay(&[&|world| world.space.fork().map(drop)]);
    all(Pages::Move, |world: &Large| {
        let child = world.space.fork()?;
        let word = child.copy_out(Large::WHOLE.start, &[7]);
        word.and_then(|()| world.space.store(Large::WHOLE.start, 1))
    });
}

#[test]
fn out_and_in() {
    all(Pages::Move, |world: &Large| {
        let part = Large::part(8, 32);
        world.space.advise(part, Advice::PageOut)?;
        world.space.advise(part, Advice::WillNeed)
    });
}

#[test]
fn looking() {
    stay(&[&|world| world.space.incore(Large::WHOLE).map(drop)]);
}
