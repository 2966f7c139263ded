//! FreeBSD's map entries and objects, its page queues, and a whole VM with them.

use crate::page_queues::{frames, free, map, map_and_free};
use baselines::Preset;
use baselines::freebsd::{BatchedQueues, FileObject, VmEntries};
use baselines::selected::Selected;
use hosted::Hosted;
use machine::{Access, Execute, Frame, Job, PAGE_SIZE, Topology, VaRange};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;
use vm::system::{Extent, Mapping, Part};
use vm::{Prot, Space, Vm};

const START: usize = 1 << 30;
const PAGES: usize = 8;

type Entries = VmEntries<Hosted>;

fn region(first: usize, pages: usize) -> VaRange {
    VaRange::sized(page(first), pages * PAGE_SIZE)
}

fn page(number: usize) -> usize {
    START + number * PAGE_SIZE
}

fn anonymous() -> Mapping<'static, FileObject<Hosted>> {
    Mapping {
        prot: Prot::READ_WRITE,
        shared: false,
        object: None,
    }
}

/// A space with one anonymous region of [`PAGES`].
fn space() -> Entries {
    let entries = Entries::new();
    entries.map(region(0, PAGES), anonymous());
    entries
}

fn access(entries: &Entries, at: usize, access: Access) {
    if entries.wants_copy(at, access) {
        entries.copy(at);
    }
    drop(entries.fault(at, access));
}

fn write(entries: &Entries, at: usize) {
    access(entries, at, Access::Write);
}

/// Returns true if a fault at `at` waits while another task holds its objects.
fn waits(entries: &Entries, at: usize) -> bool {
    thread::scope(|scope| {
        let (tell, told) = channel();
        scope.spawn(move || {
            drop(entries.fault(at, Access::Write));
            // The receiver is gone if this comes late.
            let _ = tell.send(());
        });
        told.recv_timeout(Duration::from_millis(50)).is_err()
    })
}

/// Returns true if two faults of `entries` conflict: a resident page is mapped under the object's
/// lock for reading, and one that is absent needs the lock for writing.
fn meet(entries: &Entries, there: usize, other: (&Entries, usize)) -> bool {
    let held = entries.fault(there, Access::Read);
    let (entries, missing) = other;
    thread::scope(|scope| {
        let waiting = scope.spawn(|| waits(entries, missing));
        thread::sleep(Duration::from_millis(100));
        drop(held);
        waiting.join().expect("it looks")
    })
}

#[test]
fn an_object_comes_with_the_first_fault_and_a_shadow_after_a_fork() {
    let parent = space();
    assert!(parent.wants_copy(page(0), Access::Read));
    write(&parent, page(0));
    assert!(!parent.wants_copy(page(1), Access::Write));
    let child = Entries::new();
    parent.fork(&child);
    for space in [&parent, &child] {
        assert!(space.wants_copy(page(1), Access::Write));
        assert!(!space.wants_copy(page(1), Access::Read));
    }
    write(&child, page(1));
    assert!(!child.wants_copy(page(1), Access::Write));
    assert!(parent.wants_copy(page(1), Access::Write));
    // The last that refers to the object needs no shadow.
    child.unmap(region(0, PAGES));
    write(&parent, page(1));
    assert!(!parent.wants_copy(page(PAGES), Access::Write));
}

/// Parent and child look for their pages in the object behind both; a copy that the child has made
/// is only the child's.
#[test]
fn a_family_meets_in_the_object_behind() {
    let parent = space();
    write(&parent, page(0));
    let child = Entries::new();
    parent.fork(&child);
    write(&child, page(1));
    // The parent's region still has the first object, which the child's chain leads to.
    assert!(meet(&parent, page(0), (&child, page(2))));
    let stranger = space();
    write(&stranger, page(0));
    assert!(!meet(&parent, page(0), (&stranger, page(2))));
    // The child has the page now: its faults there conflict with none.
    assert!(!meet(&parent, page(0), (&child, page(1))));
}

/// What is left of a chain after the others have gone is one object.
#[test]
fn chains_collapse() {
    let mut parent = space();
    write(&parent, page(0));
    let mut forked = Vec::new();
    for round in 1..5 {
        let child = Entries::new();
        parent.fork(&child);
        write(&child, page(round));
        write(&parent, page(round));
        assert_eq!(child.depth(page(0)), 1 + round);
        forked.push(std::mem::replace(&mut parent, child));
    }
    for space in forked {
        space.unmap(region(0, PAGES));
    }
    assert_eq!(parent.depth(page(0)), 1);
    // All pages are in the one object that is left: a fault on each finds it under the lock for
    // reading.
    for number in 0..5 {
        assert!(!meet(&parent, page(0), (&parent, page(number))));
    }
    assert!(meet(&parent, page(0), (&parent, page(6))));
}

/// Regions side by side share an object, and so do parts of one; apart they do not.
#[test]
fn neighbours_are_one_entry() {
    let entries = space();
    write(&entries, page(0));
    entries.map(region(PAGES, PAGES), anonymous());
    assert!(
        !entries.wants_copy(page(PAGES), Access::Write),
        "no entry of its own"
    );
    assert!(meet(&entries, page(0), (&entries, page(PAGES))));
    entries.map(region(3 * PAGES, PAGES), anonymous());
    assert!(entries.wants_copy(page(3 * PAGES), Access::Write));
    write(&entries, page(3 * PAGES));
    assert!(!meet(&entries, page(0), (&entries, page(3 * PAGES + 1))));
    // Split and joined again.
    entries.protect(region(2, 2), Prot::READ);
    entries.protect(region(2, 2), Prot::READ_WRITE);
    entries.unmap(region(0, 1));
    write(&entries, page(2));
    assert!(meet(&entries, page(2), (&entries, page(3))));
    entries.unmap(region(0, 4 * PAGES));
    assert!(!entries.wants_copy(page(3), Access::Write));
}

#[test]
fn pages_come_and_go_by_32() {
    let machine = Hosted::new(1);
    machine.attach(0);
    let queues =
        BatchedQueues::<Hosted>::new(&(), Extent::new(machine.cpus(), 100, 0)).expect("room");
    let map = |range| map(&queues, range);
    let free = |range| free(&queues, range);
    map(0..31);
    map(0..31);
    assert_eq!(queues.listed(), vec![]);
    // The page that does not fit any more is queued at once.
    map(31..40);
    assert_eq!(queues.listed(), frames(0..32));
    free(0..10);
    assert_eq!(queues.listed(), frames(0..32), "they leave by a batch, too");
    // One of the pages is used again before that, and leaves at once.
    map(5..6);
    let others: Vec<Frame> = frames(0..5).into_iter().chain(frames(6..32)).collect();
    assert_eq!(queues.listed(), others);
    map(40..60);
    let listed: HashSet<Frame> = queues.listed().into_iter().collect();
    let expected: HashSet<Frame> = [5].into_iter().chain(10..53).map(Frame).collect();
    assert_eq!(listed, expected);
    // Pages that were never mapped.
    free(90..100);
}

/// Many CPUs map and free the same pages; when their batches are worked off, those in use are in
/// the queue, and no others.
#[test]
fn each_page_is_in_the_queue_once() {
    const CPUS: usize = 4;
    const FRAMES: usize = 70;
    /// More than fit into a batch.
    const REST: usize = 32;
    let machine = Hosted::new(CPUS);
    let all = FRAMES + CPUS * REST;
    let queues =
        BatchedQueues::<Hosted>::new(&(), Extent::new(machine.cpus(), all, 0)).expect("room");
    let queues = Arc::new(queues);
    let used = map_and_free((&machine, CPUS), &queues, FRAMES, |queues, cpu| {
        let first = (FRAMES + cpu * REST) as u32;
        map(queues, first..first + REST as u32);
    });
    machine.on_cpu(0, || {
        let mut listed = queues.listed();
        listed.retain(|frame| frame.index() < FRAMES);
        listed.sort();
        let in_use = |frame: &usize| used[*frame];
        let expected: Vec<Frame> = (0..FRAMES)
            .filter(in_use)
            .map(|f| Frame(f as u32))
            .collect();
        assert_eq!(listed, expected);
    });
}

/// CPUs that fork one space at the same time, and write the pages that parent and children share:
/// each sees its own writes, and all memory is freed.
#[test]
fn spaces_fork_side_by_side() {
    const CPUS: usize = 4;
    const ROUNDS: usize = 50;
    let machine = Hosted::with_memory(CPUS, 32 << 20).expect("memory");
    let options = Preset::FREEBSD_14.options();
    let vm = Vm::<Selected<Hosted>>::with_options(machine.clone(), options).expect("memory");
    let shared = machine.on_cpu(0, || Arc::new(Space::new(&vm).expect("a space")));
    let at = machine.on_cpu(0, || {
        shared.map(CPUS * PAGE_SIZE, Prot::READ_WRITE).expect("map")
    });
    let jobs = (0..CPUS).map(|cpu| {
        let shared = shared.clone();
        Box::new(move || {
            let mine = at + cpu * PAGE_SIZE;
            for round in 0..ROUNDS as u64 {
                shared.activate();
                shared.store(mine, round).expect("store");
                let child = shared.fork().expect("fork");
                child.activate();
                child.store(mine, round + 1000).expect("store");
                let grandchild = child.fork().expect("fork");
                assert_eq!(child.load(mine), Ok(round + 1000));
                drop(child);
                grandchild.activate();
                assert_eq!(grandchild.load(mine), Ok(round + 1000));
                grandchild.store(mine, round + 2000).expect("store");
                drop(grandchild);
                shared.activate();
                assert_eq!(shared.load(mine), Ok(round));
            }
        }) as Job
    });
    machine.execute(jobs.collect());
    machine.on_cpu(0, || drop(shared));
    let frames = vm.frames();
    assert_eq!(frames.free_count(), frames.total());
}
