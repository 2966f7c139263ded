//! Operations that change mappings.

use crate::failing::{Call, Kind, Mixed, Pages, World, all, all_of, by_accounts, on_a_cpu, pages};
use crate::refusing;
use crate::world::{MIB, P};
use machine::VaRange;
use vm::{Advice, At, Bring, Error, Flags, HEAP_START, Limit, Move, Prot, Request, Resource};

type Change<'a> = &'a Call<'a, Mixed>;

/// Tries each; none needs the stores.
fn stay(changes: &[Change<'_>]) {
    for change in changes {
        let failures = all(Pages::Stay, change);
        assert_eq!((failures.file, failures.swap), (0, 0));
        by_accounts(change);
    }
}

/// Memory that becomes writable is charged and counted.
#[test]
fn rights_that_are_charged() {
    let failures = by_accounts::<Mixed>(&|world| {
        let at = world.space.map(Mixed::BYTES, Prot::READ)?;
        let whole = Mixed::whole(at);
        let given = world.space.protect(whole, Prot::READ_WRITE);
        given.or_else(|error| world.space.unmap(whole).and(Err(error)))
    });
    assert!(failures > 2, "{failures}");
}

#[test]
fn fork() {
    let fork = |world: &Mixed| world.space.fork().map(drop);
    let failures = all(Pages::Stay, fork);
    assert!(failures.heap > 5 && failures.frames > 5, "{failures:?}");
    assert_eq!((failures.file, failures.swap), (0, 0));
    assert!(by_accounts::<Mixed>(&fork) > 5, "each mapping is charged");
}

#[test]
fn map() {
    let anonymous = || Request::anonymous(Mixed::BYTES, Prot::READ_WRITE);
    let of_file = |world: &Mixed, at: At| {
        let request = Request::object(&world.file, 0, Mixed::BYTES, Prot::READ_WRITE)?;
        world.space.map_as(&request.shared().at(at)).map(drop)
    };
    stay(&[
        &|world| of_file(world, At::Free(world.far())),
        &|world| of_file(world, At::Fixed(world.private)),
        &|world| of_file(world, At::Fixed(world.copied + 3 * P)),
        &|world| world.space.map_as(&anonymous()).map(drop),
        &|world| world.space.map_as(&anonymous().shared()).map(drop),
        &|world| {
            let at = At::Hint(world.far());
            world.space.map_as(&anonymous().at(at)).map(drop)
        },
        &|world| {
            let at = At::Fixed(world.memory);
            world.space.map_as(&anonymous().at(at)).map(drop)
        },
    ]);
}

/// A page that cannot be brought is not, and the mapping is made.
#[test]
fn map_and_bring() {
    let request = || Request::anonymous(Mixed::BYTES, Prot::READ_WRITE);
    stay(&[
        &|world| world.space.map_as(&request().populated()).map(drop),
        &|world| {
            let locked = request().with(Flags::LOCKED).shared();
            world.space.map_as(&locked).map(drop)
        },
    ]);
}

#[test]
fn remap() {
    let remap = |world: &Mixed, at: usize, bytes: usize, place: Move| {
        let old = Mixed::whole(at);
        world.space.remap(old, bytes, place).map(drop)
    };
    stay(&[
        &|world| remap(world, world.private, 4 * MIB, Move::IfNeeded),
        &|world| remap(world, world.private, Mixed::BYTES, Move::To(world.far())),
        &|world| remap(world, world.private, Mixed::BYTES, Move::Leaving),
        &|world| remap(world, world.private, P, Move::Never),
        &|world| remap(world, world.shared, Mixed::BYTES, Move::To(world.far())),
        &|world| remap(world, world.shared, 3 * P, Move::Never),
        &|world| remap(world, world.copied, 4 * MIB, Move::IfNeeded),
        &|world| remap(world, world.memory, Mixed::BYTES, Move::Leaving),
        &|world| {
            let last = Mixed::whole(world.memory);
            let grown = Mixed::BYTES + 3 * P;
            world.space.remap(last, grown, Move::Never).map(drop)
        },
    ]);
}

/// Parts of private memory, a file twice and shared memory, and what is between them.
#[test]
fn remap_of_several() {
    stay(&[&|world| {
        let old = across(world);
        let to = Move::To(world.far());
        world.space.remap(old, old.len(), to).map(drop)
    }]);
}

/// A range that becomes shorter when it moves does so first, as on Linux; the rest stays.
#[test]
fn a_move_that_shortens() {
    let shorten = |world: &Mixed, old: VaRange| {
        let place = Move::To(world.far());
        world.space.remap(old, 3 * P, place).map(drop)
    };
    let attempt = |nth| {
        let world = Mixed::new();
        world.refuse(Kind::Heap, nth);
        let refused = shorten(&world, Mixed::whole(world.shared));
        world.refuse(Kind::Heap, 0);
        if refused.is_err() {
            let is_cut = world.space.load(world.shared + 3 * P).is_err();
            let left = pages(world.shared, 0, if is_cut { 3 } else { 8 });
            assert_eq!(shorten(&world, left), Ok(()));
        }
        for (page, word) in [200, 301, 202].into_iter().enumerate() {
            assert_eq!(world.space.load(world.far() + page * P), Ok(word));
        }
        assert!(world.space.load(world.shared).is_err());
        world.tear_down("shortened");
        refused
    };
    let failures = (1..).take_while(|&nth| on_a_cpu(|| attempt(nth)).is_err());
    let failures = failures.count();
    assert!(failures > 2, "{failures}");
}

/// From private memory to shared memory.
fn across(world: &Mixed) -> VaRange {
    VaRange {
        start: world.private + 6 * P,
        end: world.memory + 3 * P,
    }
}

#[test]
fn changes_of_a_part() {
    let part = |world: &Mixed| pages(world.shared, 3, 1);
    stay(&[
        &|world| world.space.unmap(part(world)),
        &|world| world.space.unmap(across(world)),
        &|world| world.space.protect(part(world), Prot::READ),
        &|world| world.space.protect(across(world), Prot::NONE),
        &|world| world.space.lock(pages(world.private, 2, 1), Bring::OnFault),
        &|world| world.space.unlock(pages(world.private, 2, 1)),
        &|world| world.space.advise(part(world), Advice::DontFork),
        &|world| world.space.advise(part(world), Advice::Random),
        &|world| {
            let part = pages(world.private, 1, 2);
            world.space.advise(part, Advice::WipeOnFork)
        },
        &|world| world.space.advise(across(world), Advice::Huge),
    ]);
}

#[test]
fn the_heaps_end() {
    let to = |world: &Mixed, pages: usize| world.space.set_break(HEAP_START + pages * P);
    for pages in [700, 1, 0] {
        stay(&[&|world| to(world, pages)]);
    }
}

/// A stack that has grown stays so when there is no page for it.
#[test]
fn stacks_grow() {
    let grow_by = |world: &Mixed, pages| world.space.store(world.stack - pages * P, 1);
    // In a slot, and over several.
    for pages in [40, 2 * 512 + 3] {
        for kind in [Kind::Frame, Kind::Heap, Kind::Swap] {
            all_of(kind, Pages::Stay, |world| grow_by(world, pages));
        }
    }
    let grow = |world: &Mixed| grow_by(world, 40);
    let world = Mixed::new();
    world.refuse(Kind::Frames, 1);
    let refused = grow(&world);
    world.refuse(Kind::Frames, 0);
    assert_eq!(refused, Err(Error::OutOfMemory(Resource::Frames)));
    world.check_content("refused");
    assert_eq!(grow(&world), Ok(()));
    world.tear_down("grown");
}

#[test]
fn limits() {
    for limit in [Limit::AddressSpace, Limit::Data, Limit::Locked] {
        let set = |world: &Mixed| world.space.set_limit(limit, Some(64 * MIB));
        let failures = all(Pages::Stay, set);
        assert!(failures.heap > 0, "{failures:?}");
    }
}

#[test]
fn what_is_out_is_found_where_it_moved() {
    let world = Mixed::new();
    let old = pages(world.private, 5, 3);
    let moved = world.space.remap(old, old.len(), Move::To(world.far()));
    assert_eq!(moved, Ok(world.far()));
    for page in 0..3 {
        let word = world.space.load(world.far() + page * P);
        assert_eq!(word, Ok(105 + page as u64));
    }
    world.tear_down("moved");
}

/// A mapping that moves without a page needs no PV entry, and leaves no empty chunk behind.
#[test]
fn what_is_out_moves_and_goes() {
    let world = Mixed::new();
    let old = pages(world.private, 5, 3);
    let moved = world.space.remap(old, old.len(), Move::To(world.far()));
    assert_eq!(moved, Ok(world.far()));
    world.tear_down("moved");
}

/// A space can go without any heap.
fn exit_needs_no_memory(exec: fn(&Mixed)) {
    let world = Mixed::new();
    refusing::refuse_all(true);
    exec(&world);
    refusing::refuse_all(false);
    assert!(world.space.regions().expect("regions").is_empty());
    world.tear_down("exec");
}

#[test]
fn exit_at_once_needs_no_memory() {
    exit_needs_no_memory(|world| world.space.exec());
}

#[test]
fn exit_slot_by_slot_needs_no_memory() {
    // SAFETY: no other task has the space.
    exit_needs_no_memory(|world| unsafe { world.space.exec_alone() });
}
