//! Alan Cox's example from case study 000, step by step, on hosted memory.
//!
//! Two CPUs share a space; the second has a page in its TLB, writable. The first unmaps it and is
//! stopped where the page's PV list is empty and no TLB is flushed yet. The second still writes the
//! page. A third removes all mappings of the page, as a pageout would: it must not return before
//! the flush, or the page changes after it counts as unmapped.
//!
//! A page of an object is on no list: there the removal finds no entry, and must wait for the slot.

use crate::common;

use baselines::freebsd::{Di, EpochDi, LocklessDi, Pvh};
use common::NoDi;
use hosted::{Hosted, Probe};
use machine::{Mmu, PAGE_SIZE, Topology, VaRange};
use std::marker::PhantomData;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;
use vm::object::{Object, ObjectRef};
use vm::system::Invalidation;
use vm::{At, Best, Pmap, Prot, Removed, Request, Space, System, Vm};

/// The parts of `vm`, but for the invalidation under test.
struct With<I>(PhantomData<I>);

impl<I: Invalidation<Hosted>> System for With<I> {
    type Machine = Hosted;
    type Invalidation = I;
    type Swap = <Best<Hosted> as System>::Swap;
    type Gate = vm::system::NoGate;
    type Queues = vm::system::NoQueues;
    type PvLocks = vm::system::PvBytes;
    type PvChunks = vm::system::NoChunks;
}

type Shared<I> = Arc<Space<With<I>>>;

/// Long enough for a thread to run, however loaded the machine.
const LONG: Duration = Duration::from_secs(20);
/// The time in which a wrong pageout returns early.
const A_WHILE: Duration = Duration::from_millis(100);

/// Stops shootdowns of the CPUs below `stops` until they are released.
struct Window {
    opened: Receiver<usize>,
    let_go: Vec<Sender<()>>,
}

impl Window {
    fn of(machine: &Hosted, stops: usize) -> Self {
        let (open, opened) = channel();
        let (let_go, waits): (Vec<_>, Vec<_>) = (0..stops)
            .map(|_| {
                let (go, wait) = channel::<()>();
                (go, Mutex::new(wait))
            })
            .unzip();
        let open = Mutex::new(open);
        machine.set_probe(Some(Arc::new(move |probe| {
            if let Probe::BeforeShootdown { cpu } = probe
                && let Some(wait) = waits.get(cpu)
            {
                open.lock().unwrap().send(cpu).unwrap();
                wait.lock().unwrap().recv().unwrap();
            }
        })));
        Window { opened, let_go }
    }
}

/// The result.
#[derive(Debug, PartialEq)]
enum Verdict {
    /// The pageout returned while a TLB still had the page.
    TooEarly,
    /// It returned after the flush.
    InTime(Removed),
}

/// The roles of the example: the spaces that map the page, and the pageout.
struct Cast<I: Invalidation<Hosted>, O> {
    spaces: Vec<Shared<I>>,
    page_out: O,
}

/// Where each space maps the page.
const AT: VaRange = VaRange {
    start: 1 << 30,
    end: (1 << 30) + PAGE_SIZE,
};

/// Plays the example with `unmappers` spaces that map a page of private memory.
fn play<I: Invalidation<Hosted>>(unmappers: usize) -> Verdict {
    play_with::<I, _>(unmappers, |vm| {
        let page = vm.new_page().expect("a page");
        let space = |_| {
            let space = Space::new(vm).expect("a space");
            space.map_fixed(AT, Prot::READ_WRITE).expect("map");
            let entered = space.pmap().enter(AT.start, &page, Prot::READ_WRITE);
            assert_eq!(entered, Ok(true));
            Arc::new(space)
        };
        let spaces = (0..unmappers).map(space).collect();
        let vm = vm.clone();
        let page_out = move || vm.remove_all(&page);
        Cast { spaces, page_out }
    })
}

type Own = <Best<Hosted> as System>::Invalidation;
type File = ObjectRef<With<Own>>;

/// Plays the example with an object's page, which `page_out` removes from all tables.
fn play_object(unmappers: usize, page_out: impl Fn(&File) -> Removed + Send + Sync) -> Verdict {
    play_with::<Own, _>(unmappers, |vm| {
        let object = Object::anonymous(vm, PAGE_SIZE as u64).expect("an object");
        let space = |_| {
            let space = Space::new(vm).expect("a space");
            let request = Request::object(&object, 0, PAGE_SIZE, Prot::READ_WRITE);
            let request = request.expect("a request").shared();
            let mapped = space.map_as(&request.at(At::Fixed(AT.start)));
            assert_eq!(mapped, Ok(AT.start));
            Arc::new(space)
        };
        let spaces = (0..unmappers).map(space).collect();
        let page_out = move || page_out(&object);
        Cast { spaces, page_out }
    })
}

fn remove_all(object: &File) -> Removed {
    let frame = object.resident(0).expect("in memory");
    let vm = object.vm();
    vm.remove_all(&vm.hold(frame).expect("held"))
}

/// All spaces of the cast unmap the page at once; each is released in turn, and the pageout has to
/// wait for the last.
fn play_with<I: Invalidation<Hosted>, O: Fn() -> Removed + Send + Sync>(
    unmappers: usize,
    cast: impl FnOnce(&Arc<Vm<With<I>>>) -> Cast<I, O> + Send,
) -> Verdict {
    // The CPUs with the stale entries: each stays in its space, since a CPU that has left flushes
    // when it comes back.
    let writers = unmappers..2 * unmappers;
    let pageout = writers.end;
    let machine = Hosted::with_memory(pageout + 1, 16 << 20).expect("memory");
    let vm = Vm::<With<I>>::new(machine.clone()).expect("memory for the VM");
    let at = AT;
    let Cast { spaces, page_out } = machine.on_cpu(pageout, || cast(&vm));
    for (space, cpu) in spaces.iter().zip(writers.clone()) {
        machine.on_cpu(cpu, || {
            // An object's pages come with the first access.
            space.activate();
            space.store(at.start, 1).expect("mapped");
        });
    }
    let write = |value: u64| {
        let results = spaces.iter().zip(writers.clone()).map(|(space, cpu)| {
            machine.on_cpu(cpu, || {
                space.activate();
                // SAFETY: the CPU translates by tables that stay during the call.
                unsafe { machine.store(at.start, value) }
            })
        });
        results.collect::<Vec<_>>()
    };
    write(1).into_iter().for_each(|r| r.expect("mapped"));

    let window = Window::of(&machine, unmappers);
    let (done, returned) = channel();
    let verdict = thread::scope(|scope| {
        let mut tasks = Vec::new();
        for (cpu, space) in spaces.iter().enumerate() {
            let machine = &machine;
            tasks.push(scope.spawn(move || {
                machine.attach(cpu);
                space.unmap(at).expect("unmap");
            }));
        }
        for _ in 0..unmappers {
            window.opened.recv_timeout(LONG).expect("the window opens");
        }
        // The stale entries still let the page be written.
        write(2).into_iter().for_each(|r| r.expect("a stale entry"));
        tasks.push(scope.spawn(|| {
            machine.attach(pageout);
            done.send(page_out()).unwrap();
        }));
        let mut verdict = None;
        for (index, go) in window.let_go.iter().enumerate() {
            // Gives a wrong pageout time to return; before the last, less time is enough.
            match returned.recv_timeout(A_WHILE) {
                Ok(_) => verdict = Some(Verdict::TooEarly),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => panic!("the pageout died at {index}"),
            }
            go.send(()).unwrap();
        }
        let verdict = verdict.unwrap_or_else(|| {
            let removed = returned.recv_timeout(LONG).expect("the pageout ends");
            Verdict::InTime(removed)
        });
        // A scope may end before its threads have given back their CPUs; a join does not.
        for task in tasks {
            task.join().expect("no task panics");
        }
        verdict
    });
    machine.set_probe(None);
    // Once the pageout has returned, no CPU can write the page.
    assert!(
        write(3).iter().all(Result::is_err),
        "still mapped somewhere"
    );
    machine.on_cpu(pageout, || drop((spaces, page_out)));
    assert_eq!(machine.cpus().len(), pageout + 1);
    verdict
}

/// The page was dirty, and the pageout had nothing left to unmap.
fn in_time() -> Verdict {
    Verdict::InTime(Removed {
        dirty: true,
        referenced: true,
        mappings: 0,
        retries: 0,
        is_locked: false,
    })
}

#[test]
fn without_delayed_invalidation_the_page_changes_behind_the_pageout() {
    assert_eq!(play::<NoDi>(1), Verdict::TooEarly);
}

#[test]
fn the_global_lock_is_in_time() {
    assert_eq!(play::<Pvh<Hosted>>(1), in_time());
}

#[test]
fn delayed_invalidation_is_in_time() {
    assert_eq!(play::<Di<Hosted>>(1), in_time());
    assert_eq!(play::<Di<Hosted>>(2), in_time());
}

#[test]
fn lockless_delayed_invalidation_is_in_time() {
    assert_eq!(play::<LocklessDi<Hosted>>(1), in_time());
    assert_eq!(play::<LocklessDi<Hosted>>(2), in_time());
}

#[test]
fn epochs_are_in_time() {
    assert_eq!(play::<EpochDi<Hosted>>(1), in_time());
    assert_eq!(play::<EpochDi<Hosted>>(2), in_time());
}

#[test]
fn section_ids_are_in_time() {
    assert_eq!(play::<Own>(1), in_time());
    assert_eq!(play::<Own>(2), in_time());
    assert_eq!(play::<Own>(3), in_time());
}

#[test]
fn pages_of_objects_are_in_time() {
    for unmappers in 1..=3 {
        assert_eq!(play_object(unmappers, remove_all), in_time());
    }
}

/// The careless walk relies on the counts of a space, which drop before the flush.
#[test]
fn a_walk_that_passes_over_vacant_slots_is_too_early() {
    let careless = |object: &File| {
        let mut is_mapped = false;
        object.for_each_attachment(|at| {
            let pmap = at.owner().cast::<Pmap<With<Own>>>();
            // SAFETY: the attachment's owner, and the test keeps its space.
            is_mapped |= unsafe { &*pmap }.resident() != 0;
        });
        assert!(!is_mapped, "they unmap it");
        Removed::default()
    };
    assert_eq!(play_object(1, careless), Verdict::TooEarly);
}
