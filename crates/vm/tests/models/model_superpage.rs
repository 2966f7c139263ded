//! A superpage that comes or goes while another CPU walks the tables, under all interleavings.

use loomed::Loomed;
use loomed::flaw::{Flaw, Site, must_be_found};
use loomed::loom::model::Builder;
use machine::{Atomic, Execute, Frame, Job, Memory, Mmu, Ordering, PAGE_SIZE, VaRange, pte};
use std::sync::{Arc, Mutex};
use vm::{Best, Options, Prot, Space, Superpages, Vm};

const RANGE: VaRange = VaRange {
    start: 1 << 42,
    end: (1 << 42) + pte::ENTRIES * PAGE_SIZE,
};
const LAST: usize = RANGE.end - PAGE_SIZE;
/// The content of frames before.
const THEIRS: u64 = 99;

type TestSpace = Space<Best<Loomed>>;

/// A space that maps memory for a superpage, with all pages written but the last.
fn nearly_full(machine: &Loomed) -> TestSpace {
    for block in 1..3 {
        let last = Frame((block * pte::ENTRIES - 1) as u32);
        // SAFETY: the frame is the test's.
        unsafe { machine.word(last, 0) }.store(THEIRS, Ordering::Relaxed);
    }
    let options = Options {
        superpages: Superpages::Always,
        ..Options::default()
    };
    let vm = Vm::with_options(machine.clone(), options).expect("memory for the VM");
    let space = Space::new(&vm).expect("a space");
    space.activate();
    space.map_fixed(RANGE, Prot::READ_WRITE).expect("map");
    for address in (RANGE.start..LAST).step_by(PAGE_SIZE) {
        space.store(address, 1).expect("store");
    }
    assert_eq!(space.pmap().superpages(), 0);
    space
}

/// A space with a superpage, which was written when it was 512 pages, and is read-only now.
fn with_superpage(machine: &Loomed) -> TestSpace {
    let space = nearly_full(machine);
    space.store(LAST, 1).expect("store");
    assert_eq!(space.pmap().superpages(), 1);
    space.protect(RANGE, Prot::READ).expect("protect");
    space
}

/// Both CPUs run in the space that `make` makes, and do the jobs at once.
fn model(make: fn(&Loomed) -> TestSpace, jobs: [fn(&Loomed, &TestSpace); 2]) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(1);
    builder.max_branches = 10_000_000;
    let body = move || {
        let machine = Loomed::with_memory(2, 2 * pte::ENTRIES);
        let made = Arc::new(Mutex::new(None));
        let (of, into) = (machine.clone(), made.clone());
        let make = move || *into.lock().unwrap() = Some(Arc::new(make(&of)));
        machine.execute(vec![Box::new(make)]);
        let space = made.lock().unwrap().take().expect("made above");
        let (active, nothing) = (space.clone(), Box::new(|| ()));
        machine.execute(vec![nothing, Box::new(move || active.activate())]);
        let start = |job: fn(&Loomed, &TestSpace)| {
            let (machine, space) = (machine.clone(), space.clone());
            Box::new(move || job(&machine, &space)) as Job
        };
        machine.execute(jobs.map(start).into());
        machine.execute(vec![Box::new(move || drop(space))]);
    };
    builder.check(move || loomed::with_stack(body));
}

/// CPU 1 touches the last page, which makes all of them a superpage. CPU 0 reads there: nothing
/// that the frame held before.
fn a_walk_meets_a_promotion() {
    let look = |machine: &Loomed, _: &TestSpace| {
        // SAFETY: the CPU translates by tables that stay during the call.
        assert_ne!(unsafe { machine.load(LAST) }, Ok(THEIRS), "somebody else's");
    };
    let touch = |_: &Loomed, space: &TestSpace| {
        space.store(LAST, 1).expect("store");
        assert_eq!(space.pmap().superpages(), 1);
    };
    model(nearly_full, [look, touch]);
}

/// CPU 0 unmaps the superpage, whose slot gets its table back, with no entries. CPU 1 stores there:
/// whatever it finds does not allow that.
fn a_store_meets_an_unmap() {
    let unmap = |_: &Loomed, space: &TestSpace| space.unmap(RANGE).expect("unmap");
    let store = |machine: &Loomed, space: &TestSpace| {
        // The checker lets this come between any two changes of the count.
        space.pmap().resident();
        // SAFETY: the CPU translates by tables that stay during the call.
        let stored = unsafe { machine.store(RANGE.start, 2) };
        assert!(stored.is_err(), "with the rights of a former entry");
    };
    model(with_superpage, [unmap, store]);
}

#[test]
fn a_walker_finds_what_a_superpage_holds() {
    a_walk_meets_a_promotion();
}

#[test]
fn a_superpage_that_is_not_released_is_found() {
    let site = Site::after(
        "superpage/promote.rs",
        include_str!("../../src/pmap/superpage/promote.rs"),
        "// Release: a walker that finds the superpage",
    );
    must_be_found(Flaw::Relaxed, site, a_walk_meets_a_promotion);
}

#[test]
fn a_read_only_superpage_goes_without_a_store() {
    a_store_meets_an_unmap();
}

#[test]
fn a_table_that_is_not_released_is_found() {
    let site = Site::after(
        "superpage/whole.rs",
        include_str!("../../src/pmap/superpage/whole.rs"),
        "// No walker reaches the table yet.",
    );
    must_be_found(Flaw::Relaxed, site, a_store_meets_an_unmap);
}
