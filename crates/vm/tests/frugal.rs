//! Counts of the locks, nodes and tables that operations do without.

use hosted::Hosted;
use machine::{PAGE_SIZE, VaRange};
use sim::profile::MachineProfile;
use sim::{Options, Sim};
use std::sync::Arc;
use vm::{Best, Error, Prot, Space, Vm};

#[global_allocator]
static ALLOCATOR: sim::Allocator = sim::Allocator;

/// Bytes that a leaf table covers, and a slot of level 0.
const TABLE: usize = 2 << 20;
/// Neighbouring leaf tables, under one table above.
const AT: usize = 1 << 42;

/// How often a CPU writes slots of the tree while it does `act`.
fn slot_writes(prepare: fn(&Space<Best<Sim>>), act: fn(&Space<Best<Sim>>)) -> u64 {
    let profile = MachineProfile::named("pc-16c32t").expect("built in");
    let options = Options {
        memory: 16 << 20,
        ..Options::new(profile)
    };
    let sim = Sim::new(options).expect("address space");
    let machine = sim.clone();
    let space = sim.on_cpu(0, move || {
        let vm = Vm::new(machine).expect("memory for the VM");
        let space = Space::<Best<Sim>>::new(&vm).expect("a space");
        space.activate();
        prepare(&space);
        space
    });
    sim.trace();
    let space = sim.on_cpu(0, move || {
        act(&space);
        space
    });
    let traced = sim.traced().swap_remove(0);
    sim.on_cpu(0, move || drop(space));
    let slots = traced
        .iter()
        .filter(|access| access.what.starts_with("Slot"));
    slots.map(|access| access.writes).sum()
}

fn page(number: usize) -> VaRange {
    VaRange::sized(AT + number * PAGE_SIZE, PAGE_SIZE)
}

#[test]
fn a_first_touch_locks_its_slot_once() {
    let map = |space: &Space<Best<Sim>>| {
        let range = VaRange::sized(AT, TABLE);
        space.map_fixed(range, Prot::READ_WRITE).expect("map");
        space.store(page(0).start, 1).expect("store");
    };
    let touch = |space: &Space<Best<Sim>>| space.store(page(1).start, 1).expect("store");
    // A second look locks it again, and writes it more often.
    assert_eq!(slot_writes(map, touch), 3);
}

#[test]
fn a_look_into_a_hole_locks_nothing() {
    let look = |space: &Space<Best<Sim>>| {
        let hole = Error::NotMapped {
            address: page(1).start,
        };
        assert_eq!(space.incore(page(1)), Err(hole));
    };
    assert_eq!(slot_writes(|_| (), look), 0);
}

/// An unmap leaves a table where the next mapping probably is. It keeps eight of them.
#[test]
fn a_cpu_keeps_tables_of_the_slots_it_emptied_last() {
    const KEPT: usize = 8;
    let machine = Hosted::with_memory(1, 16 << 20).expect("memory");
    machine.attach(0);
    let vm: Arc<Vm<Best<Hosted>>> = Vm::new(machine).expect("memory for the VM");
    let space = Space::new(&vm).expect("a space");
    space.activate();
    // Makes the CPU's arena.
    space.map(PAGE_SIZE, Prot::READ).expect("room");
    let free_after = |slot: usize| {
        let range = VaRange::sized(AT + slot * TABLE, PAGE_SIZE);
        space.map_fixed(range, Prot::READ_WRITE).expect("map");
        space.store(range.start, 1).expect("store");
        space.unmap(range).expect("mapped");
        vm.frames().free_count()
    };
    let free: Vec<_> = (0..2 * KEPT).map(free_after).collect();
    let taken: Vec<_> = free.iter().map(|&now| free[0] - now).collect();
    // A leaf table and its PV table for each, in addition to those of the first.
    let expected = (0..2 * KEPT).map(|slot| 2 * slot.min(KEPT - 1));
    assert_eq!(taken, expected.collect::<Vec<_>>());
}
