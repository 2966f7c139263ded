//! A first attachment concurrent with a walk that has changed the object, under all interleavings.

extern crate std;

use super::{Reach, Walk};
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;
use loomed::Loomed;
use loomed::flaw::{Flaw, Site, must_be_found};
use loomed::loom::model::Builder;
use machine::{Atomic, Atomics, Execute, Ordering};

struct World {
    reach: Reach<Loomed>,
    /// 1 while the object shows its page.
    shows: <Loomed as Atomics>::AtomicU64,
    /// 1 if the page was mapped, and if a walk found the attachment.
    mapped: <Loomed as Atomics>::AtomicU64,
    found: <Loomed as Atomics>::AtomicU64,
}

/// One CPU attaches a mapping and maps the page if it is shown; another hides the page and walks.
fn model() {
    Builder::new().check(|| {
        let machine = Loomed::new(2);
        let world = Arc::new(World {
            reach: Reach::nowhere(),
            shows: Atomic::new(1),
            mapped: Atomic::new(0),
            found: Atomic::new(0),
        });
        let (mapper, walker) = (world.clone(), world.clone());
        let maps = move || {
            mapper.reach.widen(3..4);
            let shown = mapper.shows.load(Ordering::Relaxed);
            mapper.mapped.store(shown, Ordering::Relaxed);
        };
        let walks = move || {
            walker.shows.store(0, Ordering::Relaxed);
            Walk::begin::<Loomed>();
            let found = walker.reach.meets(&(3..4));
            walker.found.store(found.into(), Ordering::Relaxed);
        };
        machine.execute(vec![Box::new(maps), Box::new(walks)]);
        let [mapped, found] = [&world.mapped, &world.found].map(|it| it.load(Ordering::Relaxed));
        assert!(mapped <= found, "a mapping that the walk does not find");
    });
}

#[test]
fn a_walk_sees_an_attachment_or_that_sees_the_change() {
    model();
}

#[test]
fn a_missing_fence_is_found() {
    for comment in [
        "// Pairs with the fence in `Walk::begin`: a walk sees this",
        "// Pairs with the fence in `Reach::widen`.",
    ] {
        let site = Site::after("object/life.rs", include_str!("../life.rs"), comment);
        must_be_found(Flaw::Relaxed, site, model);
    }
}
