//! A frame is freed behind the flush. Between the change of the tables and the shootdown another
//! CPU still uses its TLB's entries; the machine panics if a frame that it reaches is free by then.

use crate::store::TestStore;
use crate::world::{P, SLOT, System, TestSpace, active, nothing_left, pages, world};
use machine::{Mmu, VaRange};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use vm::object::Object;
use vm::{Advice, At, Move, Prot, Request};

const AT: usize = 1 << 42;

fn vm() -> System {
    world(32).superpages().swap(4_096).vm()
}

/// A CPU that reads when it is told to, by its TLB: it takes no fault.
struct Reader {
    /// Addresses, and where to say that they were read.
    ask: Sender<(Vec<usize>, Sender<()>)>,
    thread: thread::JoinHandle<()>,
}

impl Reader {
    /// CPU 1, in `space`.
    fn new(vm: &System, space: &Arc<TestSpace>) -> Self {
        let (ask, asked) = channel::<(Vec<usize>, Sender<()>)>();
        let (vm, space) = (vm.clone(), space.clone());
        let thread = thread::spawn(move || {
            vm.machine().attach(1);
            space.activate();
            for (addresses, done) in asked {
                for address in addresses {
                    // SAFETY: the CPU translates by tables that stay during the call.
                    let _seen_or_fault = unsafe { vm.machine().load(address) };
                }
                let _caller_waits = done.send(());
            }
        });
        Reader { ask, thread }
    }
}

/// Reads at `addresses`. Returns true if the CPU has lived to tell.
fn read(ask: &Sender<(Vec<usize>, Sender<()>)>, addresses: &[usize]) -> bool {
    let (done, told) = channel();
    ask.send((addresses.to_vec(), done)).is_ok() && told.recv().is_ok()
}

/// Does `operation` to `space`, with another CPU that has read the pages at `addresses` and reads
/// them again before each shootdown.
fn beside(vm: &System, space: TestSpace, addresses: &[usize], operation: impl FnOnce(&TestSpace)) {
    let space = Arc::new(space);
    let reader = Reader::new(vm, &space);
    assert!(read(&reader.ask, addresses));
    let (ask, addresses) = (Mutex::new(reader.ask.clone()), addresses.to_vec());
    let windows = Arc::new(AtomicUsize::new(0));
    let hook = {
        let windows = windows.clone();
        move |_| {
            if read(&ask.lock().expect("one at a time"), &addresses) {
                windows.fetch_add(1, Ordering::Relaxed);
            }
        }
    };
    vm.machine().set_probe(Some(Arc::new(hook)));
    operation(&space);
    vm.machine().set_probe(None);
    drop(reader.ask);
    let ended = reader.thread.join();
    let text = ended.map_err(|panic| panic.downcast::<String>().ok());
    assert_eq!(text, Ok(()), "the other CPU has used a freed frame");
    assert_ne!(windows.load(Ordering::Relaxed), 0, "nothing was shot down");
}

/// A space with some written pages at [`AT`], and their addresses.
fn written(vm: &System, bytes: usize) -> (TestSpace, Vec<usize>) {
    let space = active(vm);
    let range = VaRange::sized(AT, bytes);
    space.map_fixed(range, Prot::READ_WRITE).expect("map");
    let addresses: Vec<_> = (AT..AT + bytes).step_by(P).collect();
    (addresses.iter()).for_each(|&at| space.store(at, 1).expect("store"));
    (space, addresses)
}

const PAGES: usize = 40;

fn all() -> VaRange {
    pages(AT, PAGES)
}

/// Does `operation` to pages of private memory.
fn to_pages(operation: impl FnOnce(&TestSpace)) {
    let vm = vm();
    let (space, addresses) = written(&vm, PAGES * P);
    beside(&vm, space, &addresses, operation);
    nothing_left(&vm);
}

#[test]
fn unmapped_pages() {
    to_pages(|space| space.unmap(all()).expect("unmap"));
}

#[test]
fn discarded_pages() {
    to_pages(|space| space.discard(all()).expect("discard"));
}

#[test]
fn pages_mapped_over() {
    to_pages(|space| space.map_fixed(all(), Prot::READ).expect("map"));
}

#[test]
fn pages_cut_off() {
    to_pages(|space| {
        let kept = space.remap(all(), P, Move::Never);
        assert_eq!(kept, Ok(AT));
    });
}

#[test]
fn pages_sent_out() {
    to_pages(|space| space.advise(all(), Advice::PageOut).expect("advise"));
}

#[test]
fn pages_of_a_program_that_is_replaced() {
    to_pages(TestSpace::exec);
}

/// The page that a store leaves without an owner: the child that shared it has gone.
#[test]
fn pages_copied_on_write() {
    to_pages(|space| {
        let child = space.fork().expect("fork");
        child.activate();
        (0..PAGES).for_each(|page| child.store(AT + page * P, 2).expect("store"));
        drop(child);
        space.activate();
        space.unmap(all()).expect("unmap");
    });
}

#[test]
fn superpages() {
    for part in [SLOT, SLOT / 2] {
        thread::spawn(move || {
            let vm = vm();
            let (space, addresses) = written(&vm, SLOT);
            assert_eq!(space.pmap().superpages(), 1);
            let range = VaRange::sized(AT, part);
            beside(&vm, space, &addresses, |space| {
                space.unmap(range).expect("unmap");
            });
        })
        .join()
        .expect("freed behind the flush");
    }
}

#[test]
fn pages_of_a_file_that_shrinks() {
    let vm = vm();
    let file = Object::file(&vm, Arc::new(TestStore::default()), 0).expect("an object");
    file.set_size((PAGES * P) as u64).expect("grow");
    let space = active(&vm);
    let request = Request::object(&file, 0, PAGES * P, Prot::READ_WRITE);
    let request = request.expect("an offset").shared().at(At::Fixed(AT));
    space.map_as(&request).expect("map");
    let addresses: Vec<_> = (0..PAGES).map(|page| AT + page * P).collect();
    (addresses.iter()).for_each(|&at| space.store(at, 1).expect("store"));
    beside(&vm, space, &addresses, |_| {
        file.set_size(0).expect("shrink")
    });
}
