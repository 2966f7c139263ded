//! A fault ends however eagerly memory is reclaimed concurrently.

use hosted::Hosted;
use machine::PAGE_SIZE;
use std::cell::RefCell;
use std::sync::Arc;
use vm::object::Object;
use vm::system::{Extent, Gate, Part};
use vm::{Best, Error, Options, Prot, Request, Space, System, Vm};

use crate::store::{Call, TestStore};

/// The default, but that all that can be reclaimed is, before each change of a page table.
struct Eager;

impl System for Eager {
    type Machine = Hosted;
    type Invalidation = <Best<Hosted> as System>::Invalidation;
    type Swap = <Best<Hosted> as System>::Swap;
    type Gate = Reclaiming;
    type Queues = vm::system::NoQueues;
    type PvLocks = vm::system::PvBytes;
    type PvChunks = vm::system::NoChunks;
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

impl Part<Hosted> for Reclaiming {
    type Config = ();

    fn new(_: &(), _: Extent) -> Result<Self, Error> {
        Ok(Reclaiming)
    }
}

impl Gate<Hosted> for Reclaiming {
    type Space = ();
    type Page = ();
    type Object = ();
    type Guard<'a> = ();
    type Pmap<'a> = ();

    fn new_space(&self) {}

    fn new_object(&self) {}

    fn lock_pmap(&self, (): &()) {
        reclaim();
    }
}

#[test]
fn a_page_is_read_once_for_a_fault() {
    let machine = Hosted::with_memory(1, 8 << 20).expect("memory");
    machine.attach(0);
    let vm: EagerVm = Vm::with_options(machine, Options::default()).expect("memory for the VM");
    let file = Arc::new(TestStore::with(1, 7));
    let object = Object::file(&vm, file.clone(), PAGE_SIZE as u64).expect("a file");
    let space = Space::new(&vm).expect("a space");
    let request = Request::object(&object, 0, PAGE_SIZE, Prot::READ).expect("aligned");
    let at = space.map_as(&request).expect("room");
    space.activate();
    SHORT.set(Some((vm.clone(), OFTEN)));
    assert_eq!(space.load(at), Ok(7));
    let (_, left) = SHORT.take().expect("set above");
    assert!((1..OFTEN).contains(&left), "{left} left");
    assert_eq!(file.calls(), [Call::Read(0..1)]);
    drop((space, object));
}
