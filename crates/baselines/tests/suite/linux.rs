//! Linux's VMAs and anon_vma chains compared with the VM's own tree: the same ranges after the same
//! operations; the reverse map visits as many VMAs as it must, and finds those that map a page.

use baselines::linux::{
    Fixes, Linux, LinuxMutex, Mm, MmHeld, MmapLock, Mutexes, PageState, Rwsems, SpinLocks, Version,
};
use hosted::Hosted;
use machine::{Access, Execute, Frame, Job, PAGE_SIZE, Topology, VaRange};
use std::cell::RefCell;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;
use sync::{Mutex, RawLock};
use vm::object::Object;
use vm::pager::MemoryPager;
use vm::system::{
    Change, Extent, ForkTables, Gate, Mapping, NoQueues, ObjectPages, Op, Part, System,
};
use vm::{At, Best, Options, Prot, Region, Request, Space, Vm};

/// The observed part of a VMA: its range, its rights, and true if it maps a file.
type Seen = (VaRange, Prot, bool);

thread_local! {
    /// The VMAs of the space that changed last.
    static VMAS: RefCell<Vec<Seen>> = const { RefCell::new(Vec::new()) };
    /// The number of VMAs that the last reverse walk visited, and of those that may map the page.
    static LOOKED: RefCell<(usize, usize)> = const { RefCell::new((0, 0)) };
}

/// Linux's gate, which shows the tests its VMAs after each change.
struct Told<V: Version>(Linux<Hosted, V>);

impl<V: Version> Part<Hosted> for Told<V> {
    type Config = Fixes;

    fn new(fixes: &Fixes, extent: Extent) -> Result<Self, vm::Error> {
        Linux::new(fixes, extent).map(Told)
    }
}

impl<V: Version> Gate<Hosted> for Told<V> {
    type Space = Mm<Hosted, V>;
    type Page = PageState<Hosted>;
    type Object = <Linux<Hosted, V> as Gate<Hosted>>::Object;
    type Guard<'a> = MmHeld<'a, Hosted, V>;
    type Pmap<'a> = ();

    fn new_space(&self) -> Self::Space {
        self.0.new_space()
    }
    fn new_object(&self) -> Self::Object {
        self.0.new_object()
    }
    fn begin<'a>(&'a self, mm: &'a Self::Space, op: Op) -> Self::Guard<'a> {
        self.0.begin(mm, op)
    }
    fn report<'a>(
        &'a self,
        mm: &'a Self::Space,
        held: &mut Self::Guard<'a>,
        change: Change<'_, Hosted, Self>,
    ) {
        let of = match change {
            Change::Forked(child) => Some(child),
            Change::Mapped(..) | Change::Unmapped(_) | Change::Protected(..) => Some(mm),
            Change::Expected(_) | Change::Unmapping(_) | Change::Faulted(..) => None,
        };
        self.0.report(mm, held, change.of());
        if let Some(of) = of {
            VMAS.set(of.vmas());
        }
    }
    fn walk(&self, _frame: Frame, page: &Self::Page) {
        LOOKED.set(self.0.look(page));
    }
}

struct With<V>(PhantomData<V>);

impl<V: Version> System for With<V> {
    type Machine = Hosted;
    type Invalidation = <Best<Hosted> as System>::Invalidation;
    type Swap = <Best<Hosted> as System>::Swap;
    type Gate = Told<V>;
    type Queues = NoQueues;
    type PvLocks = vm::system::PvBytes;
    type PvChunks = vm::system::NoChunks;
}

fn system<V: Version>(cpus: usize, mib: usize, fixes: Fixes) -> Arc<Vm<With<V>>> {
    let machine = Hosted::with_memory(cpus, mib << 20).expect("memory");
    let options = Options {
        gate: fixes,
        swap_pages: Some(1 << 30),
        fork_tables: ForkTables::Copied,
        object_pages: ObjectPages::Listed,
        ..Options::default()
    };
    Vm::with_options(machine, options).expect("memory for the VM")
}

/// Runs `test` on CPU 0 of a system of each kind.
macro_rules! on_each {
    ($mib:expr, $test:ident) => {
        for batching in [false, true] {
            let fixes = Fixes::new(batching, false);
            let vm = system::<SpinLocks>(1, $mib, fixes);
            vm.machine().on_cpu(0, || $test(&vm));
            let vm = system::<Mutexes>(1, $mib, fixes);
            vm.machine().on_cpu(0, || $test(&vm));
            for vma_locks in [false, true] {
                let fixes = Fixes { vma_locks, ..fixes };
                let vm = system::<Rwsems>(1, $mib, fixes);
                vm.machine().on_cpu(0, || $test(&vm));
            }
        }
    };
}

/// The VM's own list of mappings.
fn regions<V: Version>(space: &Space<With<V>>) -> Vec<Seen> {
    let each = |region: &Region| (region.range, region.prot(), region.object.is_some());
    let all: Vec<_> = space.regions().expect("regions").iter().map(each).collect();
    merged(all)
}

/// Joins neighbours with equal attributes: Linux keeps those with different anon_vmas apart, the VM
/// those that were charged differently.
fn merged(all: Vec<Seen>) -> Vec<Seen> {
    let mut merged: Vec<Seen> = Vec::new();
    for next in all {
        match merged.last_mut() {
            Some(last) if last.0.end == next.0.start && (last.1, last.2) == (next.1, next.2) => {
                last.0.end = next.0.end;
            }
            _ => merged.push(next),
        }
    }
    merged
}

/// A small generator.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) as usize % sides
    }

    fn prot(&mut self) -> Prot {
        [Prot::NONE, Prot::READ, Prot::READ_WRITE, Prot::READ_EXECUTE][self.roll(4)]
    }
}

const BASE: usize = 1 << 41;
const PAGES: usize = 24;

fn same_ranges<V: Version>(vm: &Arc<Vm<With<V>>>) {
    let file = Object::file(vm, Arc::new(MemoryPager::new()), (PAGES * PAGE_SIZE) as u64);
    let file = file.expect("a file");
    for seed in 1..20 {
        let mut dice = Dice(seed);
        let mut space = Space::new(vm).expect("a space");
        space.activate();
        let mut generations = Vec::new();
        for step in 0..200 {
            let first = dice.roll(PAGES);
            let count = 1 + dice.roll(PAGES - first);
            let range = VaRange::sized(BASE + first * PAGE_SIZE, count * PAGE_SIZE);
            let changed = match dice.roll(8) {
                0 | 1 => space.map_fixed(range, dice.prot()).is_ok(),
                2 => {
                    let offset = (first * PAGE_SIZE) as u64;
                    let request = Request::object(&file, offset, range.len(), dice.prot());
                    let request = request.expect("pages").at(At::Fixed(range.start));
                    space.map_as(&request).is_ok()
                }
                3 => space.unmap(range).is_ok(),
                4 => space.protect(range, dice.prot()).is_ok(),
                5 => {
                    let end = vm::HEAP_START + dice.roll(6) * PAGE_SIZE;
                    space.set_break(end).is_ok()
                }
                6 if step % 40 == 7 => {
                    let child = space.fork().expect("a fork");
                    generations.push(std::mem::replace(&mut space, child));
                    space.activate();
                    true
                }
                // Either may be refused.
                _ => {
                    let _ = match dice.roll(2) {
                        0 => space.load(range.start).map(drop),
                        _ => space.store(range.start, 1),
                    };
                    false
                }
            };
            if changed
                && let told = VMAS.take()
                && !told.is_empty()
            {
                assert_eq!(merged(told), regions(&space), "seed {seed}, step {step}");
            }
        }
    }
}

#[test]
fn vmas_are_where_the_tree_has_regions() {
    on_each!(16, same_ranges);
}

/// A look-up of a parent's page visits the parent and all children, one of a page that a child has
/// made only that child.
fn families<V: Version>(vm: &Arc<Vm<With<V>>>) {
    let parent = Space::new(vm).expect("a space");
    parent.activate();
    parent
        .map_fixed(VaRange::sized(BASE, 4 * PAGE_SIZE), Prot::READ_WRITE)
        .expect("map");
    (0..4).for_each(|page| parent.store(BASE + page * PAGE_SIZE, 1).expect("store"));
    let children: Vec<_> = (0..3).map(|_| parent.fork().expect("a fork")).collect();
    let look = |space: &Space<With<V>>, page: usize| {
        let frame = space.pmap().lookup(BASE + page * PAGE_SIZE);
        let hold = vm.hold(frame.expect("it is mapped")).expect("it is there");
        let removed = vm.remove_all(&hold);
        (removed.mappings, LOOKED.take())
    };
    assert_eq!(look(&parent, 0), (4, (4, 4)));
    children[1].activate();
    children[1].store(BASE + PAGE_SIZE, 2).expect("store");
    assert_eq!(look(&children[1], 1), (1, (1, 1)));
    let grandchild = children[2].fork().expect("a fork");
    assert_eq!(look(&parent, 2), (5, (5, 5)));
    drop(children);
    assert_eq!(look(&grandchild, 3), (2, (2, 2)));
    drop(grandchild);
    drop(parent);
}

#[test]
fn a_page_is_looked_for_in_its_family() {
    on_each!(16, families);
}

/// Case study 004: holes of 4 pages in every 8 put one more VMA each on one list.
fn fragments<V: Version>(vm: &Arc<Vm<With<V>>>) {
    const HOLES: usize = 300;
    let space = Space::new(vm).expect("a space");
    space.activate();
    let whole = VaRange::sized(BASE, (8 * HOLES + 4) * PAGE_SIZE);
    space.map_fixed(whole, Prot::READ_WRITE).expect("map");
    space.store(BASE, 1).expect("store");
    for hole in 0..HOLES {
        let at = BASE + (8 * hole + 4) * PAGE_SIZE;
        space
            .unmap(VaRange::sized(at, 4 * PAGE_SIZE))
            .expect("unmap");
    }
    assert_eq!(VMAS.take().len(), HOLES + 1);
    let frame = space.pmap().lookup(BASE).expect("it is mapped");
    let hold = vm.hold(frame).expect("it is there");
    assert_eq!(vm.remove_all(&hold).mappings, 1);
    assert_eq!(LOOKED.take(), (1, HOLES + 1));
}

#[test]
fn holes_lengthen_the_list_that_is_walked() {
    on_each!(16, fragments);
}

/// Many CPUs fork, touch, split and end children of one family.
fn at_once<V: Version>(fixes: Fixes) {
    const CPUS: usize = 4;
    let vm = system::<V>(CPUS, 32, fixes);
    let parent = vm.machine().on_cpu(0, || {
        let parent = Space::new(&vm).expect("a space");
        parent.activate();
        parent
            .map_fixed(VaRange::sized(BASE, 8 * PAGE_SIZE), Prot::READ_WRITE)
            .expect("map");
        (0..8).for_each(|page| parent.store(BASE + page * PAGE_SIZE, 1).expect("store"));
        Arc::new(parent)
    });
    let job = |cpu: usize| {
        let (vm, parent) = (vm.clone(), parent.clone());
        Box::new(move || {
            for round in 0..60 {
                let child = parent.fork().expect("a fork");
                child.activate();
                let at = BASE + round % 8 * PAGE_SIZE;
                child.store(at, cpu as u64).expect("store");
                assert_eq!(child.load(at), Ok(cpu as u64));
                let hole = VaRange::sized(BASE + 3 * PAGE_SIZE, PAGE_SIZE);
                child.unmap(hole).expect("unmap");
                if let Some(hold) = child.pmap().lookup(BASE).and_then(|frame| vm.hold(frame)) {
                    vm.remove_all(&hold);
                }
            }
        }) as Job
    };
    vm.machine().execute((0..CPUS).map(job).collect());
    vm.machine().on_cpu(0, || drop(parent));
}

#[test]
fn families_grow_and_shrink_at_once() {
    for batching in [false, true] {
        let fixes = Fixes::new(batching, false);
        at_once::<SpinLocks>(fixes);
        at_once::<Mutexes>(fixes);
        at_once::<Rwsems>(fixes);
        at_once::<Rwsems>(Fixes {
            vma_locks: true,
            ..fixes
        });
    }
}

#[test]
fn readers_come_in_when_the_map_is_locked_for_writing_no_more() {
    let lock = MmapLock::<Hosted>::new();
    let mut write = lock.write();
    write.downgrade();
    std::thread::scope(|scope| scope.spawn(|| drop(lock.read())).join()).expect("a reader");
    drop(write);
    drop(lock.write());
}

/// A change that is announced twice keeps faults out to its end.
#[test]
fn faults_stay_out_of_a_change_that_is_expected_twice() {
    let machine = Hosted::new(2);
    let gate = Linux::<Hosted, Rwsems>::new(&Fixes::ALL, Extent::new(machine.cpus(), 1, 0));
    let gate = Arc::new(gate.expect("room"));
    let mm = Arc::new(gate.new_space());
    let range = VaRange::sized(BASE, 4 * PAGE_SIZE);
    let fault = Op::Fault {
        address: BASE,
        access: Access::Write,
    };
    let (begin, begun) = channel();
    let (tell, told) = channel();
    let changes = {
        let (gate, mm) = (gate.clone(), mm.clone());
        move || {
            let mut op = gate.begin(&mm, Op::Change);
            let mapping = Mapping {
                prot: Prot::READ_WRITE,
                shared: false,
                object: None,
            };
            gate.report(&mm, &mut op, Change::Mapped(range, mapping));
            drop(op);
            // From now on a fault does not take the map's lock.
            drop(gate.begin(&mm, fault));
            let mut op = gate.begin(&mm, Op::Change);
            gate.report(&mm, &mut op, Change::Expected(range));
            gate.report(&mm, &mut op, Change::Expected(range));
            begin.send(()).expect("the other waits");
            let waits = told.recv_timeout(Duration::from_millis(50)).is_err();
            assert!(waits, "a fault during the change");
            drop(op);
            told.recv().expect("the fault, after the change");
        }
    };
    let faults = move || {
        begun.recv().expect("a change");
        drop(gate.begin(&mm, fault));
        tell.send(()).expect("the other waits");
    };
    machine.execute(vec![Box::new(changes) as Job, Box::new(faults)]);
}

#[test]
fn the_mutex_excludes() {
    let count = Mutex::<Hosted, LinuxMutex<Hosted>, u64>::new(0);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| (0..20_000).for_each(|_| *count.lock() += 1));
        }
    });
    let raw = LinuxMutex::<Hosted>::new();
    raw.lock();
    assert!(raw.is_locked() && raw.try_lock().is_none());
    // SAFETY: locked above, by this call.
    unsafe { raw.unlock(()) };
    assert!(!raw.is_locked());
    assert_eq!(count.into_inner(), 160_000);
}
