//! Page tables that go with what they led to, or that could be made again when memory is full.

use crate::world::{
    File, MIB, P, SLOT as TABLE, System, TestSpace, active, nothing_left, page, world,
};
use hosted::Hosted;
use machine::VaRange;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use vm::object::Object;
use vm::pager::MemoryPager;
use vm::{Advice, At, Best, Bring, Error, Move, Prot, Request, Resource};

/// Tables of a mapping of the tests.
const TABLES: usize = 16;
/// Where it is, in every space.
const AT: usize = 1 << 42;
/// Tables that a space gives up at a time.
const SHARE: usize = 8;

/// More can be committed than any test commits, but there is no swap space.
fn vm(cpus: usize, mib: usize) -> System {
    world(mib).cpus(cpus).commits(1 << 30).vm()
}

/// All of a mapping.
fn all() -> VaRange {
    VaRange::sized(AT, TABLES * TABLE)
}

/// A space that has mapped `object` and not touched it.
fn mapper(vm: &System, object: &File) -> TestSpace {
    let space = active(vm);
    let request = Request::object(object, 0, TABLES * TABLE, Prot::READ_WRITE);
    let request = request.expect("a request").shared();
    let at = space.map_as(&request.at(At::Fixed(AT))).expect("map");
    assert_eq!(at, AT);
    space
}

/// The page of the object that table `index` maps.
fn place(index: usize) -> usize {
    AT + index * TABLE + index * P
}

fn content(index: usize) -> u64 {
    7_000 + index as u64
}

fn touch_all(space: &TestSpace) {
    space.activate();
    for index in 0..TABLES {
        assert_eq!(space.load(place(index)), Ok(content(index)), "page {index}");
    }
}

fn fill(vm: &System) -> (File, TestSpace) {
    let bytes = (TABLES * TABLE) as u64;
    let object = vm.shared_memory(bytes).expect("shared memory");
    let first = mapper(vm, &object);
    for index in 0..TABLES {
        first.store(place(index), content(index)).expect("store");
    }
    (object, first)
}

/// Pages that each space has mapped.
fn resident<'a>(spaces: impl IntoIterator<Item = &'a TestSpace>) -> Vec<usize> {
    let spaces = spaces.into_iter();
    spaces.map(|space| space.pmap().resident()).collect()
}

#[test]
fn tables_go_with_what_they_led_to() {
    let space = world(64).space();
    let vm = space.vm();
    // The tables above, which stay.
    let at = space.map(64 * MIB, Prot::READ_WRITE).expect("map");
    space.store(at, 1).expect("store");
    space.unmap(VaRange::sized(at, 64 * MIB)).expect("unmap");
    let free = vm.frames().free_count();
    let all = space.map(64 * MIB, Prot::READ_WRITE).expect("map");
    for slot in 0..32 {
        space.store(all + slot * TABLE, 1).expect("store");
    }
    assert!(vm.frames().free_count() + 3 * 32 <= free);
    space.unmap(VaRange::sized(all, 64 * MIB)).expect("unmap");
    assert_eq!(vm.frames().free_count(), free);
    // One by one, a few are kept, a leaf and a PV table each.
    let all = space.map(64 * MIB, Prot::READ_WRITE).expect("map");
    for slot in 0..32 {
        space.store(all + slot * TABLE, 1).expect("store");
        let one = VaRange::sized(all + slot * TABLE, TABLE);
        space.unmap(one).expect("unmap");
    }
    assert!(vm.frames().free_count() + 18 > free);
}

#[test]
fn tables_of_shared_memory_make_room_for_others() {
    let vm = vm(2, 4);
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
    nothing_left(&vm);
}

#[test]
fn pmaps_take_turns() {
    let vm = vm(2, 8);
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
    nothing_left(&vm);
}

#[test]
fn locked_memory_keeps_its_tables() {
    let vm = vm(2, 4);
    let (object, first) = fill(&vm);
    let locker = mapper(&vm, &object);
    locker.lock(all(), Bring::OnFault).expect("lock");
    touch_all(&locker);
    let frames = || (0..TABLES).map(|index| locker.pmap().lookup(place(index)));
    let before: Vec<_> = frames().collect();
    let mut spaces = vec![first];
    while spaces.len() * TABLES < 2 * vm.frames().total() {
        spaces.push(mapper(&vm, &object));
        touch_all(&spaces[spaces.len() - 1]);
    }
    while vm.reclaim_tables(usize::MAX) > 0 {}
    assert_eq!(resident(&spaces), vec![0; spaces.len()]);
    assert!(frames().eq(before), "locked memory was touched");
    locker.unlock(all()).expect("unlock");
    assert_eq!(vm.reclaim_tables(usize::MAX), SHARE);
    touch_all(&locker);
}

#[test]
fn what_only_an_entry_knows_stays() {
    let vm = world(8).cpus(1).swap(64).vm();
    let (object, shared) = fill(&vm);
    // A copy, a page in the swap space, and neither: each with a page of the object.
    let space = active(&vm);
    let request = Request::object(&object, 0, TABLES * TABLE, Prot::READ_WRITE);
    let request = request.expect("a request").at(At::Fixed(AT));
    space.map_as(&request).expect("map");
    touch_all(&space);
    let (copy, out) = (AT + 8 * P, AT + TABLE + 8 * P);
    space.store(copy, 1).expect("store");
    space.store(out, 2).expect("store");
    let paged_out = space.advise(page(out), Advice::PageOut);
    paged_out.expect("advise");
    while vm.reclaim_tables(usize::MAX) > 0 {}
    assert_eq!(resident([&shared, &space]), [0, 3]);
    assert_eq!(space.load(copy), Ok(1));
    assert_eq!(space.load(out), Ok(2));
    touch_all(&space);
    drop((shared, space, object));
    nothing_left(&vm);
}

#[test]
fn tables_without_entries_go_wherever_they_are() {
    let vm = vm(1, 8);
    let space = active(&vm);
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
    let vm = vm(1, 8);
    let disk = Arc::new(MemoryPager::<Hosted>::new());
    let bytes = (TABLES * TABLE) as u64;
    let file = Object::file(&vm, disk.clone(), bytes).expect("an object");
    let space = mapper(&vm, &file);
    for index in 0..TABLES {
        space.store(place(index), content(index)).expect("store");
    }
    while vm.reclaim_tables(usize::MAX) > 0 {}
    assert_eq!(resident([&space]), [0]);
    space.sync(all()).expect("sync");
    let again = Object::<Best<Hosted>>::file(&vm, disk, bytes).expect("an object");
    for index in 0..TABLES {
        let mut word = [0; 8];
        let read = again.read((place(index) - AT) as u64, &mut word);
        assert_eq!((read, u64::from_le_bytes(word)), (Ok(8), content(index)));
    }
}

#[test]
fn tables_that_are_no_help_are_no_reason_to_try_for_ever() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let out_of_memory = move || {
        count.fetch_add(1, Ordering::Relaxed);
        false
    };
    let little = world(4).cpus(1).commits(1 << 30);
    let little = little.with(|options| options.out_of_memory = Some(Box::new(out_of_memory)));
    let space = little.space();
    // To move this takes more tables than there are frames.
    let sparse = 64 * TABLE;
    let mapped = space.map_fixed(VaRange::sized(AT, sparse), Prot::READ_WRITE);
    mapped.expect("map");
    for table in 0..64 {
        let stored = space.store(AT + table * TABLE, table as u64);
        stored.expect("store");
    }
    let at = space.map(8 * MIB, Prot::READ_WRITE).expect("map");
    let mut pages = (at..at + 8 * MIB).step_by(P);
    let full = pages.find_map(|page| space.store(page, 1).err());
    assert_eq!(full, Some(Error::OutOfMemory(Resource::Frames)));
    assert_eq!(asked.load(Ordering::Relaxed), 1);
    space.discard(VaRange::sized(at, 16 * P)).expect("discard");
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
    let vm = vm(3, 8);
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
    nothing_left(&vm);
}
