//! Whatever a space can be asked for, with each allocation of a frame and of the heap, and each
//! call of the file's and of the swap space's store failing in turn: a call that returns an
//! error has changed nothing, nothing that was written is lost, and everything can be
//! torn down.

mod refusing;

use hosted::Hosted;
use machine::{Frame, PAGE_SIZE, Pager, PagerError, Topology, VaRange};
use std::sync::Arc;
use std::thread;
use vm::object::{Object, ObjectRef};
use vm::pager::MemoryPager;
use vm::policy::Reservation;
use vm::swap::SwapSpace;
use vm::{
    Advice, At, Best, Error, Move, Options, Pmap, Prot, Region, Request, Resource, Space, Vm,
};

const MIB: usize = 1 << 20;
const PAGES: usize = 8;
const BYTES: usize = PAGES * PAGE_SIZE;

type System = Arc<Vm<Hosted, Best>>;
type TestSpace = Space<Hosted, Best>;
type File = ObjectRef<Hosted, Best>;

/// A store that the test keeps a hand on.
#[derive(Clone, Default)]
struct Disk(Arc<MemoryPager<Hosted>>);

impl Pager<Hosted> for Disk {
    fn read(&self, machine: &Hosted, first: u64, frames: &[Frame]) -> Result<(), PagerError> {
        self.0.read(machine, first, frames)
    }

    fn write(
        &self,
        machine: &Hosted,
        first: u64,
        frames: &[Frame],
        bytes: usize,
    ) -> Result<(), PagerError> {
        self.0.write(machine, first, frames, bytes)
    }
}

/// What fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Frames,
    Heap,
    File,
    Swap,
}

/// A space with a bit of everything. Dropped in this order.
struct World {
    space: TestSpace,
    /// Private memory: pages 5 to 7 are in the swap space, 0 was never touched.
    private: usize,
    /// The file, shared: page 1 is dirty.
    shared: usize,
    /// The file, private: page 2 is a copy.
    copied: usize,
    /// Shared memory.
    memory: usize,
    file: File,
    disk: Disk,
    swap: Disk,
    vm: System,
}

fn pages(at: usize, first: usize, count: usize) -> VaRange {
    VaRange::sized(at + first * PAGE_SIZE, count * PAGE_SIZE)
}

fn system(swap: &Disk) -> System {
    let machine = Hosted::with_memory(1, 8 * MIB).expect("memory");
    machine.attach(0);
    let swap = SwapSpace::new(machine.cpus(), Box::new(swap.clone()), 256);
    let options = Options {
        swap_space: Some(Arc::new(swap.expect("a swap space"))),
        ..Options::default()
    };
    Vm::with_options(machine, options)
}

fn file(vm: &System, disk: &Disk) -> File {
    let file = Object::file(vm, disk.0.clone(), 0).expect("an object");
    for page in 0..PAGES as u64 {
        let word = (200 + page).to_le_bytes();
        file.write(page * PAGE_SIZE as u64, &word).expect("write");
    }
    file.set_size(BYTES as u64).expect("set_size");
    let all = 0..PAGES as u64;
    file.write_back(all, |_| false).expect("write back");
    file
}

fn world() -> World {
    let (disk, swap) = (Disk::default(), Disk::default());
    let vm = system(&swap);
    let file = file(&vm, &disk);
    let space = Space::new(&vm).expect("a space");
    space.activate();
    let of_file = || Request::object(&file, 0, BYTES, Prot::READ_WRITE).expect("a request");
    let map = |request: Request<'_, Hosted, Best>| space.map_as(&request).expect("map");
    let private = map(Request::anonymous(BYTES, Prot::READ_WRITE));
    let shared = map(of_file().shared());
    let copied = map(of_file());
    let memory = map(Request::anonymous(BYTES, Prot::READ_WRITE).shared());
    let store = |at: usize, page: usize, value: u64| {
        let stored = space.store(at + page * PAGE_SIZE, value);
        stored.expect("store");
    };
    (1..PAGES).for_each(|page| store(private, page, 100 + page as u64));
    store(shared, 1, 301);
    store(copied, 2, 402);
    (0..4).for_each(|page| store(memory, page, 500 + page as u64));
    let out = space.advise(pages(private, 5, 3), Advice::PageOut);
    out.expect("advise");
    World {
        space,
        private,
        shared,
        copied,
        memory,
        file,
        disk,
        swap,
        vm,
    }
}

/// What must not change when a call fails: what is mapped, and what is reserved for it.
type State = (Vec<Region>, u64);

impl World {
    fn state(&self) -> State {
        (self.space.regions(), self.vm.swap().reserved())
    }

    /// Frames that are used, but for tables: those stay where they were made.
    fn fail_after(&self, kind: Kind, nth: u64) {
        match kind {
            Kind::Frames => self.vm.frames().fail_after(nth),
            Kind::Heap => refusing::refuse_after(nth),
            Kind::File => self.disk.0.fail_after(nth),
            Kind::Swap => self.swap.0.fail_after(nth),
        }
    }

    fn check_content(&self, what: &str) {
        let check = |at: usize, page: usize, expected: u64| {
            let mut bytes = [0; 8];
            let read = self.space.copy_in(at + page * PAGE_SIZE, &mut bytes);
            assert_eq!(read, Ok(()), "{what}");
            assert_eq!(u64::from_le_bytes(bytes), expected, "{what}: page {page}");
        };
        for page in 0..PAGES {
            let number = page as u64;
            let written = if page == 1 { 301 } else { 200 + number };
            check(self.private, page, if page == 0 { 0 } else { 100 + number });
            check(self.shared, page, written);
            check(self.copied, page, if page == 2 { 402 } else { written });
            check(self.memory, page, if page < 4 { 500 + number } else { 0 });
        }
    }

    /// Drops all but the VM and the disk; nothing may be left.
    fn tear_down(self, what: &str) {
        let World {
            space,
            file,
            disk,
            vm,
            ..
        } = self;
        drop(space);
        drop(file);
        assert_eq!(vm.swap().reserved(), 0, "{what}: reserved");
        let swap = vm.swap_space().expect("a swap space");
        assert_eq!(swap.used(), 0, "{what}: slots");
        let (free, total) = (vm.frames().free_count(), vm.frames().total());
        assert_eq!(free, total, "{what}: frames");
        let again = Object::<Hosted, Best>::file(&vm, disk.0.clone(), BYTES as u64);
        let mut bytes = [0; 8];
        let read = again.expect("an object").read(PAGE_SIZE as u64, &mut bytes);
        assert_eq!(
            (read, u64::from_le_bytes(bytes)),
            (Ok(8), 301),
            "{what}: disk"
        );
    }
}

type Call<'a> = dyn Fn(&World) -> Result<(), Error> + Sync + 'a;

/// Does `call` in a world of its own, with its `nth` step of `kind` failing (0: none); what it
/// returned, and how many bytes of the heap are left then.
fn attempt(kind: Kind, nth: u64, call: &Call<'_>) -> (Result<(), Error>, isize) {
    let what = format!("{kind:?} {nth}");
    let live = refusing::live();
    refusing::spare_arc::<Pmap<Hosted, Best>>();
    let world = world();
    let before = world.state();
    world.fail_after(kind, nth);
    let result = call(&world);
    world.fail_after(kind, 0);
    if let Err(error) = result {
        let expected = match error {
            Error::OutOfMemory(Resource::Frames) => kind == Kind::Frames,
            Error::OutOfMemory(Resource::Heap) => kind == Kind::Heap,
            // What the stores say that have no heap left.
            Error::Io(PagerError { errno: 12 }) => kind == Kind::Heap,
            Error::Io(_) => matches!(kind, Kind::File | Kind::Swap),
            _ => false,
        };
        assert!(expected, "{what}: {error}");
        assert_eq!(world.state(), before, "{what}");
        world.check_content(&what);
    }
    drop(before);
    world.tear_down(&what);
    (result, refusing::live() - live)
}

/// Lets each step of `kind` of `call` fail in turn, each time in a new world; how often the
/// call failed. A call that copes with a failure is asked for the next; after several in a row
/// there are none left.
fn each(kind: Kind, call: &Call<'_>) -> u64 {
    // A thread can be a CPU of one machine only.
    let attempt = |nth| {
        let run = || attempt(kind, nth, call);
        thread::scope(|scope| scope.spawn(run).join().expect("an attempt"))
    };
    let (without, left) = attempt(0);
    assert_eq!(without, Ok(()));
    let (mut failures, mut good) = (0, 0);
    for nth in 1.. {
        let (result, now) = attempt(nth);
        assert_eq!(now, left, "{kind:?} {nth}: bytes of the heap");
        match result {
            Ok(()) => good += 1,
            Err(_) => (failures, good) = (failures + 1, 0),
        }
        if good == 6 {
            return failures;
        }
    }
    unreachable!()
}

/// As [`each`], for all kinds; how often the call failed for want of frames, of heap, and by
/// the two stores.
fn all(call: impl Fn(&World) -> Result<(), Error> + Sync) -> [u64; 4] {
    [Kind::Frames, Kind::Heap, Kind::File, Kind::Swap].map(|kind| each(kind, &call))
}

#[test]
fn fork() {
    let [_, heap, file, swap] = all(|world| world.space.fork().map(drop));
    assert!(heap > 5, "{heap}");
    assert_eq!((file, swap), (0, 0));
}

#[test]
fn remap() {
    let far = |world: &World| world.private + 256 * MIB;
    let old = |world: &World| VaRange::sized(world.private, BYTES);
    let elsewhere = |world: &World| world.space.remap(old(world), 4 * MIB, Move::IfNeeded);
    let away = |world: &World| world.space.remap(old(world), BYTES, Move::To(far(world)));
    let leaving = |world: &World| world.space.remap(old(world), BYTES, Move::Leaving);
    let of_file = |world: &World| {
        let old = VaRange::sized(world.shared, BYTES);
        world.space.remap(old, BYTES, Move::To(far(world)))
    };
    let shrinking = |world: &World| world.space.remap(old(world), PAGE_SIZE, Move::Never);
    type Form<'a> = &'a (dyn Fn(&World) -> Result<usize, Error> + Sync);
    let forms: [Form<'_>; 5] = [&elsewhere, &away, &leaving, &of_file, &shrinking];
    for form in forms {
        let [_, heap, file, swap] = all(|world| form(world).map(drop));
        assert_eq!((file, swap), (0, 0));
        assert!(heap <= 20, "{heap}");
    }
}

#[test]
fn what_is_out_is_found_where_it_moved() {
    let world = world();
    let old = pages(world.private, 5, 3);
    let to = world.private + 256 * MIB;
    let moved = world.space.remap(old, old.len(), Move::To(to));
    assert_eq!(moved, Ok(to));
    for page in 0..3 {
        let word = world.space.load(to + page * PAGE_SIZE);
        assert_eq!(word, Ok(105 + page as u64));
    }
    world.tear_down("moved");
}

/// What moves without a page needs no PV entry.
#[test]
fn what_is_out_moves_and_goes() {
    let world = world();
    let old = pages(world.private, 5, 3);
    let to = world.private + 256 * MIB;
    let moved = world.space.remap(old, old.len(), Move::To(to));
    assert_eq!(moved, Ok(to));
    world.tear_down("moved");
}

#[test]
fn map() {
    let [_, heap, ..] = all(|world| {
        let request = Request::object(&world.file, 0, BYTES, Prot::READ_WRITE)?;
        let far = world.private + 256 * MIB;
        world
            .space
            .map_as(&request.shared().at(At::Free(far)))
            .map(drop)
    });
    assert!(heap > 0);
    let [_, heap, ..] = all(|world| {
        let request = Request::anonymous(BYTES, Prot::READ_WRITE).shared();
        world.space.map_as(&request).map(drop)
    });
    assert!(heap > 0);
}

#[test]
fn changes_of_a_part() {
    let part = |world: &World| pages(world.shared, 3, 1);
    let changes: [&Call<'_>; 6] = [
        &|world| world.space.unmap(part(world)),
        &|world| world.space.protect(part(world), Prot::READ),
        &|world| world.space.lock(part(world), false),
        &|world| world.space.advise(part(world), Advice::DontFork),
        &|world| world.space.advise(part(world), Advice::Cold),
        &|world| world.space.sync(VaRange::sized(world.shared, BYTES)),
    ];
    changes.into_iter().for_each(|change| {
        all(change);
    });
}

#[test]
fn faults() {
    let load = |world: &World| {
        (5..PAGES).try_for_each(|page| world.space.load(world.private + page * PAGE_SIZE).map(drop))
    };
    let [_, _, _, swap] = all(load);
    assert_eq!(swap, 0, "what can not be read with others is read alone");
    let [_, _, _, swap] = all(|world| {
        let out = pages(world.private, 5, 3);
        world.space.advise(out, Advice::Random)?;
        let loaded = load(world);
        world.space.advise(out, Advice::Normal)?;
        loaded
    });
    assert_eq!(swap, 3, "each is read");
    all(|world| {
        let at = world.copied + 3 * PAGE_SIZE;
        world.space.store(at, 203)?;
        world.space.load(world.shared + 4 * PAGE_SIZE).map(drop)
    });
}

#[test]
fn out_and_in() {
    let out = |at: usize, world: &World| {
        let range = VaRange::sized(at, BYTES);
        world.space.advise(range, Advice::PageOut)?;
        world.space.advise(range, Advice::WillNeed)
    };
    all(|world| out(world.private, world));
    all(|world| out(world.shared, world));
    all(|world| out(world.memory, world));
}

#[test]
fn a_new_size() {
    all(|world| world.file.set_size(3 * BYTES as u64));
}

/// Whoever has no heap at all can still go.
#[test]
fn exit_needs_no_memory() {
    let world = world();
    refusing::refuse_all(true);
    world.space.exec();
    refusing::refuse_all(false);
    assert!(world.space.regions().is_empty());
    world.tear_down("exec");
}

/// Without a swap space private memory stays, and a frame that is refused is an error.
#[test]
fn frames_that_are_not_to_be_had() {
    let machine = Hosted::with_memory(1, 8 * MIB).expect("memory");
    machine.attach(0);
    let vm = Vm::new(machine);
    let space: TestSpace = Space::new(&vm).expect("a space");
    space.activate();
    let at = space.map(4 * MIB, Prot::READ_WRITE).expect("map");
    let shared = Request::anonymous(BYTES, Prot::READ_WRITE).shared();
    let shared = space.map_as(&shared).expect("map");
    // Or its table could be had in a frame's place.
    let locked = space.lock(VaRange::sized(shared, BYTES), true);
    locked.expect("lock");
    space.store(at, 1).expect("store");
    space.store(at + 3 * MIB, 2).expect("store");
    let child = space.fork().expect("fork");
    let whole = VaRange::sized(at, 4 * MIB);
    let far = at + (16 << 30);
    let calls: [&dyn Fn() -> Result<(), Error>; 5] = [
        &|| space.store(at, 3),
        &|| space.store(shared, 4),
        &|| space.remap(whole, 4 * MIB, Move::To(far)).map(drop),
        &|| space.set_break(vm::HEAP_START + MIB),
        &|| space.store(vm::HEAP_START, 5),
    ];
    let failures = calls.map(|call| {
        for nth in 1.. {
            // Nor is there a table that nobody needs.
            while vm.reclaim_tables(usize::MAX) > 0 {}
            let before = (space.regions(), vm.swap().reserved());
            vm.frames().fail_after(nth);
            let result = call();
            vm.frames().fail_after(0);
            match result {
                Ok(()) => return nth - 1,
                Err(error) => assert_eq!(error, Error::OutOfMemory(Resource::Frames)),
            }
            assert_eq!((space.regions(), vm.swap().reserved()), before);
        }
        unreachable!()
    });
    // A copy; nothing, since a failed guess does no harm; tables, which stay for the next try.
    // (Those that are not used yet can be had back, and then all goes well.)
    assert_eq!(failures[..2], [1, 0]);
    assert!(failures[2] >= 2 && failures[4] >= 3, "{failures:?}");
    assert_eq!(space.load(far), Ok(3));
    assert_eq!(space.load(far + 3 * MIB), Ok(2));
    child.activate();
    assert_eq!(child.load(at), Ok(1));
    drop((space, child));
    assert_eq!(vm.swap().reserved(), 0);
    assert_eq!(vm.frames().free_count(), vm.frames().total());
}
