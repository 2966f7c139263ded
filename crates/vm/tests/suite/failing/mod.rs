//! Failures, one after the other: an operation is tried in a new world with its first allocation
//! or call of a store refused, then with its second, and so on until nothing is left to refuse.
//!
//! After each failure the space must be as it was ([`Told`]), hold what it held, take no frame
//! and no slot of the swap space more than before, and do the operation when nothing is
//! refused any more; and all can be torn down.

mod accounts;
mod large;
mod mixed;
mod told;

pub use accounts::by_accounts;
pub use large::{Large, elsewhere};
pub use mixed::Mixed;
pub use told::Told;

use crate::refusing;
use crate::world::{P, System, TestSpace, in_use};
use hosted::Hosted;
use machine::{PagerError, VaRange};
use std::sync::Arc;
use std::thread;
use vm::pager::MemoryPager;
use vm::{Best, Error, Pmap, Resource};

/// A store that the test controls.
pub type Disk = Arc<MemoryPager<Hosted>>;

/// The kind of request that is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A frame. There are others, so reclaiming helps.
    Frame,
    /// A frame, and all requested after it.
    Frames,
    /// The kernel's heap.
    Heap,
    /// A call of the file's store.
    File,
    /// A call of the swap space's store.
    Swap,
}

impl Kind {
    pub const ALL: [Kind; 5] = [
        Kind::Frame,
        Kind::Frames,
        Kind::Heap,
        Kind::File,
        Kind::Swap,
    ];

    /// Returns true if a call fails so when this is refused.
    fn explains(self, error: Error) -> bool {
        match error {
            Error::OutOfMemory(Resource::Frames) => self == Kind::Frames,
            Error::OutOfMemory(Resource::Heap) => self == Kind::Heap,
            // The error of a store that has no heap left.
            Error::Io(PagerError { errno: 12 }) => self == Kind::Heap,
            Error::Io(_) => matches!(self, Kind::File | Kind::Swap),
            _ => false,
        }
    }
}

/// Where operations are tried: a space with something in it.
pub trait World {
    fn new() -> Self;
    fn vm(&self) -> &System;
    fn space(&self) -> &TestSpace;
    /// The file's store, if there is one.
    fn disk(&self) -> Option<&Disk>;
    fn swap(&self) -> &Disk;
    /// Looks at all there is; so all of it is in memory then.
    fn check_content(&self, what: &str);
    /// Drops all but the VM; nothing may be left.
    fn tear_down(self, what: &str);

    /// Refuses the `nth` from now on (0: nothing).
    fn refuse(&self, kind: Kind, nth: u64) {
        let store = |store: Option<&Disk>| store.into_iter().for_each(|it| it.fail_after(nth));
        match kind {
            Kind::Frame => self.vm().frames().fail_after(nth),
            Kind::Frames if nth > 0 => self.vm().frames().fail_from(nth),
            Kind::Frames => self.vm().frames().fail_after(0),
            Kind::Heap => refusing::refuse_after(nth),
            Kind::File => store(self.disk()),
            Kind::Swap => store(Some(self.swap())),
        }
    }
}

/// True if pages may have come or gone when an operation fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pages {
    /// They are where they were, unless reclaiming has taken them.
    Stay,
    /// The operation moves them one by one, and that is no change.
    Move,
}

pub type Call<'a, W> = dyn Fn(&W) -> Result<(), Error> + Sync + 'a;

/// How often an operation failed, by the kind of request that was refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Failures {
    pub frames: u64,
    pub heap: u64,
    pub file: u64,
    pub swap: u64,
}

/// Lets all that `call` asks for be refused in turn.
pub fn all<W: World>(pages: Pages, call: impl Fn(&W) -> Result<(), Error> + Sync) -> Failures {
    let good = on_a_cpu(|| Told::of_success(&call));
    let [frame, frames, heap, file, swap] = Kind::ALL.map(|kind| each(kind, pages, &call, &good));
    assert_eq!(frame, 0, "reclaiming frees a frame");
    Failures {
        frames,
        heap,
        file,
        swap,
    }
}

/// As [`all`] for one kind; how often the call failed.
pub fn all_of<W: World>(
    kind: Kind,
    pages: Pages,
    call: impl Fn(&W) -> Result<(), Error> + Sync,
) -> u64 {
    each(kind, pages, &call, &on_a_cpu(|| Told::of_success(&call)))
}

/// The state when nothing fails.
struct Good {
    /// Of the world as it is.
    before: Told,
    /// After the call.
    after: Told,
    /// Bytes of the heap that a world and the call leave behind.
    left: isize,
}

impl Told {
    fn of_success<W: World>(call: &Call<'_, W>) -> Good {
        let live = refusing::live();
        let world = W::new();
        free_tables(world.vm());
        world.check_content("at first");
        let before = Told::by(&world);
        assert_eq!(call(&world), Ok(()));
        let after = Told::settled(&world);
        world.tear_down("without failures");
        Good {
            left: refusing::live() - live - before.bytes() - after.bytes(),
            before,
            after,
        }
    }
}

/// Lets the first, the second, … of `kind` that `call` asks for be refused, each time in a new
/// world; how often it failed. A call that copes is asked for the next; after several in a row
/// there are none left.
fn each<W: World>(kind: Kind, pages: Pages, call: &Call<'_, W>, good: &Good) -> u64 {
    let (mut failures, mut copes) = (0, 0);
    for nth in 1.. {
        match on_a_cpu(|| attempt(kind, nth, pages, call, good)) {
            Ok(()) => copes += 1,
            Err(_) => (failures, copes) = (failures + 1, 0),
        }
        if copes == 6 {
            break;
        }
    }
    failures
}

/// A thread can be a CPU of one machine only.
pub fn on_a_cpu<R: Send>(act: impl FnOnce() -> R + Send) -> R {
    thread::scope(|scope| scope.spawn(act).join().expect("an attempt"))
}

/// Does `call` in a world of its own with the `nth` of `kind` refused.
fn attempt<W: World>(
    kind: Kind,
    nth: u64,
    pages: Pages,
    call: &Call<'_, W>,
    good: &Good,
) -> Result<(), Error> {
    let live = refusing::live();
    refusing::spare_arc::<Pmap<Best<Hosted>>>();
    let result = {
        let what = format!("{kind:?} {nth}");
        let world = W::new();
        let before = Told::by(&world);
        world.refuse(kind, nth);
        let result = call(&world);
        world.refuse(kind, 0);
        if result.is_ok() {
            let (now, then) = (Told::by(&world), &good.after);
            assert_eq!(now.commitments(), then.commitments(), "{what}: copes");
        }
        if let Err(error) = result {
            assert!(kind.explains(error), "{what}: {error}");
            let after = Told::by(&world);
            if pages == Pages::Stay && kind != Kind::Frames {
                assert_eq!(after, before, "{what}")
            } else {
                assert_eq!(after.promised(), before.promised(), "{what}")
            }
            check_use(&world, call, good, &what);
        }
        world.tear_down(&what);
        result
    };
    assert_eq!(refusing::live() - live, good.left, "bytes of the heap");
    result
}

/// Sees that a world in which `call` has failed is as good as new.
fn check_use<W: World>(world: &W, call: &Call<'_, W>, good: &Good, what: &str) {
    free_tables(world.vm());
    world.check_content(what);
    assert_eq!(Told::by(world), good.before, "{what}: with all in memory");
    assert_eq!(call(world), Ok(()), "{what}: again");
    let again = Told::settled(world);
    assert_eq!(again.amounts(), good.after.amounts(), "{what}: again");
}

/// Frees the unneeded tables, as an operation short of memory does, too.
fn free_tables(vm: &System) {
    while vm.reclaim_tables(usize::MAX) > 0 {}
}

/// `count` pages of the memory at `at`, from page `first` on.
pub fn pages(at: usize, first: usize, count: usize) -> VaRange {
    VaRange::sized(at + first * P, count * P)
}

/// Sees that nothing is left of a world.
fn check_empty(vm: &System, what: &str) {
    assert_eq!(in_use(vm), (0, 0, 0, 0), "{what}");
}
