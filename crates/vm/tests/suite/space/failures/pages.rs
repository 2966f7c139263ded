//! Operations that move pages.

use crate::failing::{Call, Mixed, Pages, all, pages};
use crate::world::P;
use vm::{Advice, Bring, Mappings, Prot, Request};

/// Tries each; pages may have come and gone when it fails.
fn moving(calls: &[&Call<'_, Mixed>]) {
    for call in calls {
        all(Pages::Move, call);
    }
}

#[test]
fn faults() {
    let failures = all(Pages::Move, |world: &Mixed| {
        // One by one; a page that cannot be read with others is read alone.
        let out = pages(world.private, 5, 3);
        world.space.advise(out, Advice::Random)?;
        let mut starts = (out.start..out.end).step_by(P);
        let loaded = starts.try_for_each(|at| world.space.load(at).map(drop));
        world.space.advise(out, Advice::Normal)?;
        loaded
    });
    assert_eq!(failures.swap, 3, "each is read");
    let failures = all(Pages::Stay, |world: &Mixed| {
        let at = world.copied + 3 * P;
        world.space.store(at, 203)
    });
    assert!(failures.frames > 0, "{failures:?}");
    let failures = all(Pages::Stay, |world: &Mixed| {
        world.space.store(world.memory + 2 * P, 502)
    });
    assert!(failures.frames > 0 && failures.swap > 0, "{failures:?}");
    let failures = all(Pages::Stay, |world: &Mixed| {
        world.space.store(world.private, 0)
    });
    assert!(failures.frames > 0, "{failures:?}");
    all(Pages::Stay, |world: &Mixed| {
        world.space.load(world.shared + 4 * P).map(drop)
    });
}

#[test]
fn the_kernels_copies() {
    moving(&[
        &|world| {
            let mut bytes = [0; 3 * P];
            let at = world.private + 4 * P;
            world.space.copy_in(at, &mut bytes)
        },
        &|world| {
            let at = world.private + 5 * P;
            world.space.copy_out(at, &105_u64.to_le_bytes())
        },
    ]);
}

#[test]
fn out_and_in() {
    let out = |at: usize, world: &Mixed| {
        world.space.advise(Mixed::whole(at), Advice::PageOut)?;
        world.space.advise(Mixed::whole(at), Advice::WillNeed)
    };
    moving(&[
        &|world| out(world.private, world),
        &|world| out(world.shared, world),
        &|world| out(world.memory, world),
        &|world| {
            let range = Mixed::whole(world.shared);
            world.space.advise(range, Advice::Cold)
        },
    ]);
}

#[test]
fn bringing() {
    let bring =
        |at: usize, world: &Mixed, access: Advice| world.space.advise(Mixed::whole(at), access);
    moving(&[
        &|world| bring(world.private, world, Advice::PopulateRead),
        &|world| bring(world.private, world, Advice::PopulateWrite),
        &|world| bring(world.memory, world, Advice::PopulateWrite),
        &|world| bring(world.shared, world, Advice::PopulateRead),
    ]);
}

/// A lock stays when a page cannot be brought, as on Linux; so it is taken back.
#[test]
fn locking() {
    let lock = |at: usize, world: &Mixed| {
        let range = Mixed::whole(at);
        let locked = world.space.lock(range, Bring::Now);
        locked.or_else(|error| world.space.unlock(range).and(Err(error)))
    };
    moving(&[
        &|world| lock(world.private, world),
        &|world| lock(world.memory, world),
        &|world| world.space.lock_all(Mappings::ALL, Bring::Now),
    ]);
}

/// The page in which the memory ends is in the swap space; it is brought back before the memory
/// grows.
#[test]
fn shared_memory_grows() {
    let failures = all(Pages::Move, |world: &Mixed| {
        let memory = world.vm.shared_memory(P as u64 + 8)?;
        let request = Request::object(&memory, 0, 2 * P, Prot::READ_WRITE)?;
        let at = world.space.map_as(&request.shared())?;
        let last = pages(at, 1, 1);
        let stored = world.space.store(last.start, 1);
        let out = stored.and_then(|()| world.space.advise(last, Advice::PageOut));
        let grown = out.and_then(|()| memory.set_size(4 * P as u64));
        let unmap = || world.space.unmap(pages(at, 0, 2));
        // The refused request may be the first one's.
        let unmapped = unmap().or_else(|_| unmap());
        grown.and(unmapped)
    });
    assert!(failures.frames > 0 && failures.swap > 0, "{failures:?}");
}

#[test]
fn dropping() {
    let advise =
        |at: usize, world: &Mixed, advice: Advice| world.space.advise(pages(at, 1, 6), advice);
    let calls: [&Call<'_, Mixed>; 5] = [
        &|world| advise(world.private, world, Advice::DontNeed),
        &|world| advise(world.private, world, Advice::Free),
        &|world| advise(world.copied, world, Advice::DontNeed),
        &|world| advise(world.memory, world, Advice::DontNeed),
        &|world| advise(world.memory, world, Advice::Remove),
    ];
    calls.into_iter().for_each(|call| {
        all(Pages::Stay, call);
    });
}

#[test]
fn looking() {
    let calls: [&Call<'_, Mixed>; 4] = [
        &|world| world.space.incore(Mixed::whole(world.private)).map(drop),
        &|world| world.space.incore(Mixed::whole(world.memory)).map(drop),
        &|world| {
            let whole = Mixed::whole(world.shared);
            world.space.page_places(whole).map(drop)
        },
        &|world| world.space.scan(0, usize::MAX).map(drop),
    ];
    for call in calls {
        let failures = all(Pages::Stay, call);
        assert!(failures.heap > 0, "{failures:?}");
    }
}

#[test]
fn files() {
    let bytes = Mixed::BYTES as u64;
    let sync = |world: &Mixed| world.space.sync(Mixed::whole(world.shared));
    let failures = all(Pages::Stay, sync);
    assert!(failures.file > 0, "{failures:?}");
    moving(&[
        &|world| world.file.set_size(3 * bytes),
        &|world| world.file.set_size(bytes + 5),
        &|world| world.file.read(P as u64, &mut [0; 8]).map(drop),
        &|world| {
            let word = 203_u64.to_le_bytes();
            world.file.write(3 * P as u64, &word).map(drop)
        },
        &|world| world.file.write(bytes + 5000, &[1]).map(drop),
    ]);
}
