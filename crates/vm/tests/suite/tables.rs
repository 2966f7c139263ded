//! Memory that is full of page tables which could be made again.

use crate::system::{self, System, TestSpace};
use hosted::Hosted;
use machine::{PAGE_SIZE, VaRange};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use vm::object::{Object, ObjectRef};
use vm::pager::MemoryPager;
use vm::system::Reservation;
use vm::{
    Advice, At, Best, Bring, Error, Move, Options, Prot, Request, Resource, Space, Superpages,
};

const MIB: usize = 1 << 20;
/// Bytes that a leaf table covers.
const TABLE: usize = 2 * MIB;
/// Tables of a mapping of the tests.
const TABLES: usize = 16;
/// Where it is, in every space.
const AT: usize = 1 << 42;
/// Tables that a space gives up at a time.
const SHARE: usize = 8;

type Memory = ObjectRef<Best<Hosted>>;

/// A machine with memory and no swap space, this thread its first CPU.
fn system(cpus: usize, mib: usize, options: Options<Best<Hosted>>) -> System {
    let options = Options {
        swap_pages: Some(1 << 30),
        ..options
    };
    system::with_options(cpus, mib, options)
}

/// As [`system`], of one CPU and with swap space.
fn swapping(mib: usize) -> System {
    system::swapping(1, mib, (MemoryPager::new(), 64), Superpages::Advised)
}

fn shared_memory(vm: &System) -> Memory {
    let bytes = (TABLES * TABLE) as u64;
    vm.shared_memory(bytes).expect("shared memory")
}

/// A space that has mapped `object` and not touched it.
fn mapper(vm: &System, object: &Memory) -> TestSpace {
    let space = Space::new(vm).expect("a space");
    space.activate();
    let request = Request::object(object, 0, TABLES * TABLE, Prot::READ_WRITE);
    let request = request.expect("a request").shared();
    let at = space.map_as(&request.at(At::Fixed(AT))).expect("map");
    assert_eq!(at, AT);
    space
}

/// The page of the object that table `index` maps.
fn page(index: usize) -> usize {
    AT + index * TABLE + index * PAGE_SIZE
}

fn content(index: usize) -> u64 {
    7_000 + index as u64
}

fn touch_all(space: &TestSpace) {
    space.activate();
    for index in 0..TABLES {
        assert_eq!(space.load(page(index)), Ok(content(index)), "page {index}");
    }
}

fn fill(vm: &System) -> (Memory, TestSpace) {
    let object = shared_memory(vm);
    let first = mapper(vm, &object);
    for index in 0..TABLES {
        first.store(page(index), content(index)).expect("store");
    }
    (object, first)
}

/// Pages that each space has mapped.
fn resident<'a>(spaces: impl IntoIterator<Item = &'a TestSpace>) -> Vec<usize> {
    let spaces = spaces.into_iter();
    spaces.map(|space| space.pmap().resident()).collect()
}

fn assert_unused(vm: &System) {
    assert_eq!(vm.frames().free_count(), vm.frames().total());
    assert_eq!(vm.swap().reserved(), 0);
}

#[test]
fn tables_of_shared_memory_make_room_for_others() {
    let vm = system(2, 4, Options::default());
    let (object, first) = fill(&vm);
    // Four times as many tables as there is memory.
    let mut spaces = vec![first];
    while spaces.len() * TABLES < 4 * vm.frames().total() {
        let space = mapper(&vm, &object);
        touch_all(&space);
        spaces.push(space);
    }
    spaces.iter().for_each(touch_all);
    drop((spaces, object));
    assert_unused(&vm);
}

#[test]
fn pmaps_take_turns() {
    let vm = system(2, 8, Options::default());
    let (object, first) = fill(&vm);
    let mut spaces = vec![first];
    while spaces.len() < 4 {
        spaces.push(mapper(&vm, &object));
        touch_all(&spaces[spaces.len() - 1]);
    }
    for round in 1..=TABLES / SHARE {
        for turn in 0..spaces.len() {
            let free = vm.frames().free_count();
            assert_eq!(vm.reclaim_tables(SHARE), SHARE);
            assert!(vm.frames().free_count() >= free + SHARE);
            let given = |which| SHARE * if which <= turn { round } else { round - 1 };
            let left: Vec<_> = (0..spaces.len())
                .map(|which| TABLES - given(which))
                .collect();
            assert_eq!(resident(&spaces), left);
        }
    }
    assert_eq!(vm.reclaim_tables(SHARE), 0);
    spaces.iter().for_each(touch_all);
    // A space that has gone is left out, and more than a turn is for all.
    drop(spaces.remove(1));
    assert_eq!(vm.reclaim_tables(usize::MAX), SHARE * spaces.len());
    assert_eq!(resident(&spaces), [TABLES - SHARE; 3]);
    drop((spaces, object));
    assert_unused(&vm);
}

#[test]
fn locked_memory_keeps_its_tables() {
    let vm = system(2, 4, Options::default());
    let (object, first) = fill(&vm);
    let locker = mapper(&vm, &object);
    let range = VaRange::sized(AT, TABLES * TABLE);
    locker.lock(range, Bring::OnFault).expect("lock");
    touch_all(&locker);
    let frames = || (0..TABLES).map(|index| locker.pmap().lookup(page(index)));
    let before: Vec<_> = frames().collect();
    let mut spaces = vec![first];
    while spaces.len() * TABLES < 2 * vm.frames().total() {
        spaces.push(mapper(&vm, &object));
        touch_all(&spaces[spaces.len() - 1]);
    }
    while vm.reclaim_tables(usize::MAX) > 0 {}
    assert_eq!(resident(&spaces), vec![0; spaces.len()]);
    assert!(frames().eq(before), "locked memory was touched");
    locker.unlock(range).expect("unlock");
    assert_eq!(vm.reclaim_tables(usize::MAX), SHARE);
    touch_all(&locker);
}

#[test]
fn what_only_an_entry_knows_stays() {
    let vm = swapping(8);
    let (object, shared) = fill(&vm);
    // A copy, a page in the swap space, and neither: each with a page of the object.
    let space = Space::new(&vm).expect("a space");
    space.activate();
    let request = Request::object(&object, 0, TABLES * TABLE, Prot::READ_WRITE);
    let request = request.expect("a request").at(At::Fixed(AT));
    space.map_as(&request).expect("map");
    touch_all(&space);
    let (copy, out) = (AT + 8 * PAGE_SIZE, AT + TABLE + 8 * PAGE_SIZE);
    space.store(copy, 1).expect("store");
    space.store(out, 2).expect("store");
    let paged_out = space.advise(VaRange::sized(out, PAGE_SIZE), Advice::PageOut);
    paged_out.expect("advise");
    while vm.reclaim_tables(usize::MAX) > 0 {}
    assert_eq!(resident([&shared, &space]), [0, 3]);
    assert_eq!(space.load(copy), Ok(1));
    assert_eq!(space.load(out), Ok(2));
    touch_all(&space);
    drop((shared, space, object));
    assert_unused(&vm);
}

#[test]
fn tables_without_entries_go_wherever_they_are() {
    let vm = system(1, 8, Options::default());
    let space = Space::new(&vm).expect("a space");
    space.activate();
    let at = space.map(TABLES * TABLE, Prot::READ_WRITE).expect("map");
    let pages = || (0..TABLES).map(|index| at + index * TABLE);
    pages().for_each(|page| space.store(page, 1).expect("store"));
    let range = VaRange::sized(at, TABLES * TABLE);
    space.discard(range).expect("discard");
    let free = vm.frames().free_count();
    assert_eq!(vm.reclaim_tables(usize::MAX), SHARE);
    assert_eq!(vm.reclaim_tables(usize::MAX), SHARE);
    assert_eq!(vm.reclaim_tables(usize::MAX), 0);
    assert!(vm.frames().free_count() >= free + TABLES);
    for page in pages() {
        assert_eq!(space.load(page), Ok(0));
        space.store(page, 2).expect("store");
        assert_eq!(space.load(page), Ok(2));
    }
}

#[test]
fn what_was_written_is_written_back() {
    let vm = system(1, 8, Options::default());
    let disk = Arc::new(MemoryPager::<Hosted>::new());
    let bytes = (TABLES * TABLE) as u64;
    let file = Object::file(&vm, disk.clone(), bytes).expect("an object");
    let space = mapper(&vm, &file);
    for index in 0..TABLES {
        space.store(page(index), content(index)).expect("store");
    }
    while vm.reclaim_tables(usize::MAX) > 0 {}
    assert_eq!(resident([&space]), [0]);
    space
        .sync(VaRange::sized(AT, TABLES * TABLE))
        .expect("sync");
    let again = Object::<Best<Hosted>>::file(&vm, disk, bytes).expect("an object");
    for index in 0..TABLES {
        let mut word = [0; 8];
        let read = again.read((page(index) - AT) as u64, &mut word);
        assert_eq!((read, u64::from_le_bytes(word)), (Ok(8), content(index)));
    }
}

#[test]
fn tables_that_are_no_help_are_no_reason_to_try_for_ever() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let options = Options {
        out_of_memory: Some(Box::new(move || {
            count.fetch_add(1, Ordering::Relaxed);
            false
        })),
        ..Options::default()
    };
    let vm = system(1, 4, options);
    let space = Space::new(&vm).expect("a space");
    space.activate();
    // To move this takes more tables than there are frames.
    let sparse = 64 * TABLE;
    space
        .map_fixed(VaRange::sized(AT, sparse), Prot::READ_WRITE)
        .expect("map");
    for table in 0..64 {
        space
            .store(AT + table * TABLE, table as u64)
            .expect("store");
    }
    let at = space.map(8 * MIB, Prot::READ_WRITE).expect("map");
    let mut pages = (0..8 * MIB / PAGE_SIZE).map(|page| at + page * PAGE_SIZE);
    let full = pages.find_map(|page| space.store(page, 1).err());
    assert_eq!(full, Some(Error::OutOfMemory(Resource::Frames)));
    assert_eq!(asked.load(Ordering::Relaxed), 1);
    let some = VaRange::sized(at, 16 * PAGE_SIZE);
    space.discard(some).expect("discard");
    let to = Move::To(AT + 2 * sparse + TABLE);
    let moved = space.remap(VaRange::sized(AT, sparse), sparse, to);
    assert_eq!(moved, Err(Error::OutOfMemory(Resource::Frames)));
    assert_eq!(asked.load(Ordering::Relaxed), 2);
    for table in 0..64 {
        assert_eq!(space.load(AT + table * TABLE), Ok(table as u64));
    }
}

#[test]
fn tables_go_while_others_use_them() {
    let vm = system(3, 8, Options::default());
    let (object, first) = fill(&vm);
    let worker = |cpu: usize| {
        let (vm, object) = (&vm, &object);
        move || {
            vm.machine().attach(cpu);
            let space = mapper(vm, object);
            for round in 0..200 {
                touch_all(&space);
                if round % 16 == cpu {
                    let child = space.fork().expect("fork");
                    touch_all(&child);
                }
                space.activate();
            }
        }
    };
    thread::scope(|scope| {
        let workers = [1, 2].map(|cpu| scope.spawn(worker(cpu)));
        while workers.iter().any(|worker| !worker.is_finished()) {
            vm.reclaim_tables(3);
            thread::yield_now();
        }
    });
    drop((first, object));
    assert_unused(&vm);
}
