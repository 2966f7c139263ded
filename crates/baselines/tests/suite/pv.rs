//! PV lists under shared locks, and entries from chunks, in a whole VM.

use baselines::Preset;
use baselines::freebsd::{Chunks, OneLock, Order, PmapState, Pvh};
use baselines::selected::Selected;
use hosted::Hosted;
use machine::{Asid, Execute, Frame, Job, PAGE_SIZE, VaRange};
use std::sync::{Arc, Mutex};
use vm::object::ObjectRef;
use vm::pv::Pv;
use vm::system::{Extent, Part, PvChunks, Victim};
use vm::{Advice, At, Best, Error, Options, Prot, Request, Space, System, Vm};

type TestVm = Arc<Vm<Selected<Hosted>>>;
type TestSpace = Space<Selected<Hosted>>;

const AT: usize = 1 << 42;
/// Entries in a chunk.
const ENTRIES: usize = 168;

fn with_chunks() -> impl Iterator<Item = Preset> {
    let chunked = |preset: &Preset| preset.pv_chunks.is_some();
    Preset::ALL.into_iter().filter(chunked)
}

/// Calls `act` for each preset on a thread of its own, with a machine of `mib` MiB, and a VM
/// without swap space.
fn each(cpus: usize, mib: usize, act: fn(Preset, &Hosted, TestVm)) {
    for preset in with_chunks() {
        let test = move || {
            let machine = Hosted::with_memory(cpus, mib << 20).expect("memory");
            if cpus == 1 {
                machine.attach(0);
            }
            let options = Options {
                swap_pages: Some(1 << 30),
                ..preset.options()
            };
            let vm = Vm::with_options(machine.clone(), options).expect("memory for the VM");
            act(preset, &machine, vm.clone());
            let frames = vm.frames();
            assert_eq!(frames.free_count(), frames.total(), "{preset}");
        };
        std::thread::spawn(test).join().expect("no failure");
    }
}

fn at(page: usize) -> usize {
    AT + page * PAGE_SIZE
}

fn mapped(vm: &TestVm, object: &ObjectRef<Selected<Hosted>>, pages: usize) -> TestSpace {
    let space = Space::new(vm).expect("a space");
    space.activate();
    let request = Request::object(object, 0, pages * PAGE_SIZE, Prot::READ_WRITE);
    let request = request.expect("a request").shared().at(At::Fixed(AT));
    assert_eq!(space.map_as(&request), Ok(AT));
    space
}

/// Chunks use frames, in addition to pages and tables.
#[test]
fn a_chunk_has_168_entries_and_goes_with_the_last() {
    each(1, 16, |preset, _, vm| {
        let pages = 2 * ENTRIES;
        let object = vm
            .shared_memory((pages * PAGE_SIZE) as u64)
            .expect("memory");
        let filler = mapped(&vm, &object, pages);
        for page in 0..pages {
            filler.store(at(page), 1).expect("store");
        }
        let space = mapped(&vm, &object, pages);
        let all = VaRange::sized(at(0), pages * PAGE_SIZE);
        space.advise(all, Advice::Random).expect("advise");
        space.load(at(0)).expect("load");
        let one = vm.frames().free_count();
        for page in 1..ENTRIES {
            space.load(at(page)).expect("load");
        }
        assert_eq!(vm.frames().free_count(), one, "{preset}");
        space.load(at(ENTRIES)).expect("load");
        assert_eq!(vm.frames().free_count(), one - 1, "{preset}");
        let second = VaRange::sized(at(ENTRIES), PAGE_SIZE);
        space.discard(second).expect("discard");
        assert_eq!(vm.frames().free_count(), one, "{preset}");
        drop((space, filler, object));
    });
}

/// The reverse map finds a page's mappings by their chunks, moved ones where they are.
#[test]
fn a_page_is_found_wherever_it_is_mapped() {
    each(1, 16, |preset, _, vm| {
        let object = vm.shared_memory(PAGE_SIZE as u64).expect("memory");
        let spaces: Vec<_> = (0..5).map(|_| mapped(&vm, &object, 1)).collect();
        for space in &spaces {
            space.activate();
            space.store(AT, 7).expect("store");
        }
        spaces[2].activate();
        let to = AT + (64 << 20);
        let moved = spaces[2].remap(VaRange::sized(AT, PAGE_SIZE), PAGE_SIZE, vm::Move::To(to));
        assert_eq!(moved, Ok(to), "{preset}");
        let frame = spaces[2].pmap().lookup(to).expect("a page");
        let hold = vm.hold(frame).expect("held");
        assert!(vm.test_referenced(&hold) && !vm.test_referenced(&hold));
        assert!(vm.test_modified(&hold) && !vm.test_modified(&hold));
        assert_eq!(vm.remove_all(&hold).mappings, 5, "{preset}");
        assert!(spaces.iter().all(|space| space.pmap().resident() == 0));
        assert_eq!(spaces[2].load(to), Ok(7), "{preset}");
        spaces[0].activate();
        drop((hold, spaces, object));
    });
}

/// Spaces whose tables must stay, since each has a page of its own there, and that map more than
/// there are chunks for: they take each other's chunks.
#[test]
fn without_a_frame_for_a_chunk_another_is_emptied() {
    const PAGES: usize = 511;
    const SPACES: usize = 6;
    each(1, 4, |preset, _, vm| {
        let object = vm
            .shared_memory((PAGES * PAGE_SIZE) as u64)
            .expect("memory");
        let mut spaces = vec![mapped(&vm, &object, PAGES)];
        for page in 0..PAGES {
            spaces[0].store(at(page), page as u64).expect("store");
        }
        let mut held = Vec::new();
        while let Ok(page) = vm.new_page() {
            held.push(page);
        }
        // Four tables and a page for each space, and six chunks of the 20 that they would need.
        drop(held.split_off(held.len() - (SPACES - 1) * 5 - 6));
        let own = VaRange::sized(at(PAGES), PAGE_SIZE);
        for number in 1..SPACES {
            let space = mapped(&vm, &object, PAGES);
            space.map_fixed(own, Prot::READ_WRITE).expect("map");
            space.store(own.start, number as u64).expect("store");
            spaces.push(space);
        }
        for (number, space) in spaces.iter().enumerate().skip(1) {
            space.activate();
            for page in 0..PAGES {
                assert_eq!(space.load(at(page)), Ok(page as u64), "{preset}");
            }
            assert_eq!(space.load(own.start), Ok(number as u64), "{preset}");
        }
        let lost = spaces
            .iter()
            .filter(|space| space.pmap().resident() < PAGES);
        assert!(lost.count() > 0, "{preset}: no mapping was lost");
        drop((spaces, held, object));
    });
}

/// Direct reclaim of chunks: private pages stay.
#[test]
fn only_mappings_that_can_be_made_again_go() {
    each(1, 8, |preset, _, vm| {
        let object = vm.shared_memory((40 * PAGE_SIZE) as u64).expect("memory");
        let space = mapped(&vm, &object, 40);
        let own = VaRange::sized(AT + (4 << 20), 40 * PAGE_SIZE);
        space.map_fixed(own, Prot::READ_WRITE).expect("map");
        for page in 0..40 {
            space.store(at(page), 1).expect("store");
            space.store(own.start + page * PAGE_SIZE, 2).expect("store");
        }
        let gone = vm.reclaim_chunks(1000);
        assert_eq!(gone, 40, "{preset}");
        assert_eq!(space.pmap().resident(), 40, "{preset}");
        assert_eq!(vm.reclaim_chunks(1000), 0, "{preset}");
        assert_eq!(space.load(own.start), Ok(2));
        drop((space, object));
    });
}

/// Forks, copies, and reverse removals of several CPUs at once.
#[test]
fn processes_come_and_go_beside_reclaim() {
    each(4, 64, |_, machine, vm| {
        let memory = || vm.shared_memory((64 * PAGE_SIZE) as u64).expect("memory");
        let object = machine.on_cpu(0, memory);
        let job = |cpu: usize| -> Job {
            let (vm, object) = (vm.clone(), object.clone());
            Box::new(move || {
                for round in 0..40 {
                    let parent = mapped(&vm, &object, 64);
                    let own = VaRange::sized(AT + (4 << 20), 64 * PAGE_SIZE);
                    parent.map_fixed(own, Prot::READ_WRITE).expect("map");
                    for page in 0..64 {
                        parent
                            .store(own.start + page * PAGE_SIZE, cpu as u64)
                            .expect("store");
                        parent.load(at(page)).expect("load");
                    }
                    let child = parent.fork().expect("fork");
                    child.activate();
                    for page in 0..64 {
                        let address = own.start + page * PAGE_SIZE;
                        assert_eq!(child.load(address), Ok(cpu as u64));
                        child.store(address, 99).expect("store");
                    }
                    parent.activate();
                    assert_eq!(parent.load(own.start), Ok(cpu as u64));
                    if cpu == 0 {
                        let frame = parent.pmap().lookup(at(round)).map(|frame| vm.hold(frame));
                        if let Some(Some(hold)) = frame {
                            vm.remove_all(&hold);
                        }
                        vm.reclaim_chunks(50);
                    }
                }
            })
        };
        machine.execute((0..4).map(job).collect());
        machine.on_cpu(0, || drop(object));
    });
}

/// Frees a chunk that has entries on lists.
struct Early(Chunks<Hosted>, Mutex<Option<Frame>>);

impl Part<Hosted> for Early {
    type Config = ();

    fn new(_: &(), extent: Extent) -> Result<Self, Error> {
        let chunks = Chunks::new(&Order::Pmaps, extent)?;
        Ok(Early(chunks, Mutex::new(None)))
    }
}

// SAFETY: none; it breaks the contract, and the tests must notice.
unsafe impl PvChunks<Hosted> for Early {
    type Pmap = PmapState<Hosted>;

    fn new_pmap(&self, tag: Asid) -> Self::Pmap {
        self.0.new_pmap(tag)
    }
    fn has_room(&self, machine: &Hosted, pmap: &Self::Pmap) -> bool {
        self.0.has_room(machine, pmap)
    }
    fn add(&self, machine: &Hosted, pmap: &Self::Pmap, frame: Frame, owner: *const (), tag: Asid) {
        *self.1.lock().unwrap() = Some(frame);
        self.0.add(machine, pmap, frame, owner, tag);
    }
    fn take(&self, machine: &Hosted, pmap: &Self::Pmap, address: usize) -> Pv {
        self.0.take(machine, pmap, address)
    }
    unsafe fn give(&self, machine: &Hosted, pmap: &Self::Pmap, pv: Pv) {
        // SAFETY: the caller keeps the trait's contract, which is that of `Chunks`.
        unsafe { self.0.give(machine, pmap, pv) };
    }
    fn trim(&self, machine: &Hosted, pmap: &Self::Pmap, mut free: impl FnMut(Frame)) {
        self.1.lock().unwrap().take().map(&mut free);
        self.0.trim(machine, pmap, free);
    }
    unsafe fn address(&self, machine: &Hosted, pv: Pv) -> usize {
        // SAFETY: the caller keeps the trait's contract, which is that of `Chunks`.
        unsafe { self.0.address(machine, pv) }
    }
    unsafe fn set_address(&self, machine: &Hosted, pv: Pv, address: usize) {
        // SAFETY: the caller keeps the trait's contract, which is that of `Chunks`.
        unsafe { self.0.set_address(machine, pv, address) };
    }
    unsafe fn owner(&self, machine: &Hosted, pv: Pv) -> *const () {
        // SAFETY: the caller keeps the trait's contract, which is that of `Chunks`.
        unsafe { self.0.owner(machine, pv) }
    }
    fn next_victim(&self, machine: &Hosted) -> Option<Victim> {
        self.0.next_victim(machine)
    }
    fn mappings_of(
        &self,
        machine: &Hosted,
        pmap: &Self::Pmap,
        victim: Victim,
        see: impl FnMut(usize),
    ) {
        self.0.mappings_of(machine, pmap, victim, see);
    }
}

struct Careless;

impl System for Careless {
    type Machine = Hosted;
    type Invalidation = Pvh<Hosted>;
    type Swap = <Best<Hosted> as System>::Swap;
    type Gate = OneLock<Hosted>;
    type Queues = vm::system::NoQueues;
    type PvLocks = vm::system::PvBytes;
    type PvChunks = Early;
}

/// Every test here ends with a check for a frame that is free twice.
#[test]
fn a_chunk_that_goes_too_early_is_found() {
    // A machine that watches its frames would find it first.
    let machine = Hosted::with_options(hosted::Options {
        watched: false,
        ..hosted::Options::new(1, 4 << 20)
    });
    let machine = machine.expect("memory");
    machine.attach(0);
    let options = Options {
        pv_chunks: Some(()),
        ..Options::default()
    };
    let vm = Vm::<Careless>::with_options(machine, options).expect("memory for the VM");
    let space = Space::new(&vm).expect("a space");
    space.activate();
    let range = VaRange::sized(AT, 40 * PAGE_SIZE);
    space.map_fixed(range, Prot::READ_WRITE).expect("map");
    for page in 0..40 {
        space.store(at(page), 1).expect("store");
    }
    let one = VaRange::sized(AT, PAGE_SIZE);
    space
        .unmap(one)
        .expect("the chunk has gone, with 39 entries");
    drop(space);
    let frames = vm.frames();
    assert_ne!(frames.free_count(), frames.total());
}
