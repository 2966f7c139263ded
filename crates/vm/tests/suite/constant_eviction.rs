//! A fault ends however eagerly memory is reclaimed beside it.

use hosted::Hosted;
use machine::PAGE_SIZE;
use std::cell::RefCell;
use std::sync::Arc;
use vm::object::Object;
use vm::policy::MapLocking;
use vm::{Best, Options, Prot, Request, Space, System, Vm};

use crate::store;

/// The default, but that all that can be reclaimed is, before each change of a page table.
struct Eager;

impl System for Eager {
    type Machine = Hosted;
    type Invalidation = <Best<Hosted> as System>::Invalidation;
    type Swap = <Best<Hosted> as System>::Swap;
    type Locking = Reclaiming;
    type Regions = vm::policy::NoRegions;
    type Queues = vm::policy::NoQueues;
    type PvLocks = vm::policy::PvBytes;
    type PvChunks = vm::policy::PvInTables;
}

struct Reclaiming;

type EagerVm = Arc<Vm<Eager>>;

thread_local! {
    /// The system that is reclaimed from, and how often it still is.
    static SHORT: RefCell<Option<(EagerVm, usize)>> = const { RefCell::new(None) };
}

/// More than any fault takes.
const OFTEN: usize = 100;

fn reclaim() {
    let vm = SHORT.with_borrow_mut(|short| {
        let (vm, left) = short.as_mut()?;
        *left = left.checked_sub(1)?;
        Some(vm.clone())
    });
    if let Some(vm) = vm {
        vm.keep_free(usize::MAX);
    }
}

impl MapLocking<Hosted> for Reclaiming {
    type Read<'a> = ();
    type Write<'a> = ();
    type Pmap<'a> = ();

    type Config = ();

    fn new(_: &()) -> Self {
        Reclaiming
    }

    fn read(&self) {}

    fn write(&self) {}

    fn pmap(&self) {
        reclaim();
    }

    fn try_pmap(&self) -> Option<()> {
        Some(())
    }
}

#[test]
fn a_page_is_read_once_for_a_fault() {
    let machine = Hosted::with_memory(1, 8 << 20).expect("memory");
    machine.attach(0);
    let vm: EagerVm = Vm::with_options(machine, Options::default()).expect("memory for the VM");
    let file = Arc::new(store::TestStore::with(1, 7));
    let object = Object::file(&vm, file.clone(), PAGE_SIZE as u64).expect("a file");
    let space = Space::new(&vm).expect("a space");
    let request = Request::object(&object, 0, PAGE_SIZE, Prot::READ).expect("aligned");
    let at = space.map_as(&request).expect("room");
    space.activate();
    SHORT.set(Some((vm.clone(), OFTEN)));
    assert_eq!(space.load(at), Ok(7));
    let (_, left) = SHORT.take().expect("set above");
    assert!((1..OFTEN).contains(&left), "{left} left");
    assert_eq!(file.calls(), [store::Call::Read(0..1)]);
    drop((space, object));
}
