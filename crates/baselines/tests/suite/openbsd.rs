//! OpenBSD's map entries and amaps, its page queues, and a whole VM with them.

use baselines::Preset;
use baselines::openbsd::{AmapList, BigLock, GlobalQueues, MapEntries, Scheduler, Unlocked};
use baselines::selected::Selected;
use hosted::Hosted;
use ipc::{Entry, Kernel};
use machine::{Access, Execute, Frame, Job, PAGE_SIZE, Topology, VaRange};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;
use vm::system::{Extent, Mapping, PageQueues, Part};
use vm::{Prot, Space, Vm};

const START: usize = 1 << 30;
const PAGES: usize = 8;

type Entries = MapEntries<Hosted>;
type Common = AmapList<Hosted>;

/// A space with one anonymous region of [`PAGES`].
fn space() -> Entries {
    let entries = Entries::new();
    let mapping = Mapping {
        prot: Prot::READ_WRITE,
        shared: false,
        object: None,
    };
    entries.map(VaRange::sized(START, PAGES * PAGE_SIZE), mapping);
    entries
}

fn common() -> Common {
    Common::new()
}

fn page(number: usize) -> usize {
    START + number * PAGE_SIZE
}

/// Writes to a page as a fault does.
fn write(entries: &Entries, common: &Common, at: usize) {
    if entries.wants_copy(at, Access::Write) {
        entries.copy(common, at);
    }
    entries.fault(at).took();
}

/// Returns true if a fault at `at` waits while another task holds its locks.
fn waits(entries: &Entries, at: usize) -> bool {
    thread::scope(|scope| {
        let (tell, told) = channel();
        scope.spawn(move || {
            drop(entries.fault(at));
            // The receiver is gone if this comes late.
            let _ = tell.send(());
        });
        told.recv_timeout(Duration::from_millis(50)).is_err()
    })
}

#[test]
fn an_amap_comes_with_the_first_fault_and_is_copied_after_a_fork() {
    let common = common();
    let parent = space();
    assert!(parent.wants_copy(page(0), Access::Read));
    write(&parent, &common, page(0));
    assert!(!parent.wants_copy(page(0), Access::Write));
    let child = Entries::new();
    parent.fork(&child);
    for space in [&parent, &child] {
        assert!(space.wants_copy(page(1), Access::Write));
    }
    write(&child, &common, page(0));
    assert!(!child.wants_copy(page(1), Access::Write));
    assert!(parent.wants_copy(page(1), Access::Write));
    assert!(!parent.wants_copy(page(PAGES), Access::Write));
}

/// A copy shares the lock: a fault of the child delays one of the parent.
#[test]
fn a_family_has_one_lock() {
    let common = common();
    let parent = space();
    write(&parent, &common, page(0));
    let child = Entries::new();
    parent.fork(&child);
    write(&child, &common, page(0));
    write(&parent, &common, page(0));
    let held = child.fault(page(1));
    thread::scope(|scope| {
        let waiting = scope.spawn(|| waits(&parent, page(2)));
        thread::sleep(Duration::from_millis(150));
        drop(held);
        assert!(waiting.join().expect("it looks"), "the parent did not wait");
    });
    // A space that was not forked has a family of its own.
    let other = space();
    write(&other, &common, page(0));
    let held = child.fault(page(1));
    assert!(!waits(&other, page(2)));
    drop(held);
}

/// Two halves of a region refer to one amap, and a child to both: the rest is copied when it is
/// written.
#[test]
fn parts_of_a_region_come_and_go() {
    let common = common();
    let parent = space();
    (0..PAGES).for_each(|number| write(&parent, &common, page(number)));
    let half = VaRange::sized(page(0), PAGES / 2 * PAGE_SIZE);
    parent.protect(half, Prot::READ);
    let child = Entries::new();
    parent.fork(&child);
    parent.unmap(&common, half);
    assert!(!parent.wants_copy(page(0), Access::Write));
    write(&parent, &common, page(PAGES - 1));
    assert!(!child.wants_copy(page(0), Access::Write), "not writable");
    child.unmap(&common, VaRange::sized(page(1), PAGE_SIZE));
    write(&child, &common, page(PAGES - 1));
    let all = VaRange::sized(START, PAGES * PAGE_SIZE);
    parent.unmap(&common, all);
    child.unmap(&common, all);
    assert!(!child.wants_copy(page(0), Access::Read));
}

/// Pages are in the queue once, whatever happens to them, in any order.
#[test]
fn pages_queue_once() {
    const FRAMES: usize = 5;
    let machine = Hosted::new(1);
    machine.attach(0);
    let queues =
        GlobalQueues::<Hosted>::new(&(), Extent::new(machine.cpus(), FRAMES, 0)).expect("room");
    let mut queued = Vec::new();
    let mut dice = 1u64;
    for _ in 0..1000 {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let frame = Frame((dice >> 33) as u32 % FRAMES as u32);
        queued.retain(|&other| other != frame);
        if (dice >> 40).is_multiple_of(3) {
            queues.remove(frame);
        } else {
            queues.activate(frame);
            queued.push(frame);
        }
        assert_eq!(queues.active(), queued);
    }
}

/// Unlocked system calls do not take the kernel's lock; processes are made under it in all
/// versions, pipes never use it.
#[test]
fn who_locks_the_kernel() {
    let machine = Hosted::new(1);
    machine.attach(0);
    let kernel = &Scheduler::<Hosted>::of_machine().kernel;
    for unlocked in [Unlocked::Nothing, Unlocked::Faults, Unlocked::Mappings] {
        let big = BigLock::<Hosted>::new(unlocked);
        let takes = |why| {
            big.enter(why);
            let taken = kernel.is_mine();
            big.leave(why);
            assert!(!kernel.is_mine());
            taken
        };
        assert_eq!(takes(Entry::Fault), unlocked == Unlocked::Nothing);
        for call in [
            Entry::MapAnonymous,
            Entry::Unmap,
            Entry::Protect,
            Entry::Poll,
        ] {
            assert_eq!(takes(call), unlocked != Unlocked::Mappings, "{call:?}");
        }
        for call in [
            Entry::Fork,
            Entry::Exit,
            Entry::Wait,
            Entry::Break,
            Entry::MapFile,
        ] {
            assert!(takes(call), "{call:?}");
        }
        assert!(!takes(Entry::Write) && !takes(Entry::Futex));
        big.enter(Entry::Exec);
        big.enter(Entry::Fault);
        big.leave(Entry::Fault);
        assert!(kernel.is_mine(), "a fault in a call releases it");
        big.leave(Entry::Exec);
        assert!(!kernel.is_mine());
    }
}

/// A task that checks if it is to sleep, and one that tells pollers, hold the kernel's lock before
/// 7.6.
#[test]
fn who_sleeps_with_the_kernel_locked() {
    let machine = Hosted::new(1);
    machine.attach(0);
    let kernel = &Scheduler::<Hosted>::of_machine().kernel;
    for unlocked in [Unlocked::Faults, Unlocked::Mappings] {
        let big = BigLock::<Hosted>::new(unlocked);
        let (mut asked, mut told) = (None, None);
        let slept = big.sleep(std::ptr::from_ref(kernel).cast(), || {
            asked = Some(kernel.is_mine());
            false
        });
        big.select_wakeup(|| told = Some(kernel.is_mine()));
        let locked = Some(unlocked == Unlocked::Faults);
        assert_eq!((slept, asked, told), (false, locked, locked));
    }
}

/// CPUs that fork one space at the same time, and write the pages that parent and children share:
/// each sees its own writes, and all memory is freed.
#[test]
fn spaces_fork_side_by_side() {
    const CPUS: usize = 4;
    const ROUNDS: usize = 50;
    for preset in [
        Preset::OPENBSD_BIGLOCK,
        Preset::OPENBSD_UNLOCKED,
        Preset::OPENBSD_7_6,
    ] {
        let machine = Hosted::with_memory(CPUS, 32 << 20).expect("memory");
        let vm = Vm::<Selected<Hosted>>::with_options(machine.clone(), preset.options())
            .expect("memory for the VM");
        let shared = machine.on_cpu(0, || Arc::new(Space::new(&vm).expect("a space")));
        let at = machine.on_cpu(0, || {
            shared.map(CPUS * PAGE_SIZE, Prot::READ_WRITE).expect("map")
        });
        let jobs = (0..CPUS).map(|cpu| {
            let (vm, shared) = (vm.clone(), shared.clone());
            Box::new(move || {
                let kernel = BigLock::<Hosted>::new(preset.unlocked.expect("OpenBSD has one"));
                let mine = at + cpu * PAGE_SIZE;
                let fault = |space: &Space<Selected<Hosted>>, value: u64| {
                    kernel.enter(Entry::Fault);
                    space.store(mine, value).expect("store");
                    kernel.leave(Entry::Fault);
                };
                for round in 0..ROUNDS as u64 {
                    shared.activate();
                    fault(&shared, round);
                    kernel.enter(Entry::Fork);
                    let child = shared.fork().expect("fork");
                    kernel.leave(Entry::Fork);
                    child.activate();
                    fault(&child, round + 1000);
                    assert_eq!(child.load(mine), Ok(round + 1000));
                    kernel.enter(Entry::Exit);
                    drop(child);
                    kernel.leave(Entry::Exit);
                    shared.activate();
                    assert_eq!(shared.load(mine), Ok(round));
                }
                drop(vm);
            }) as Job
        });
        machine.execute(jobs.collect());
        machine.on_cpu(0, || drop(shared));
        let frames = vm.frames();
        assert_eq!(frames.free_count(), frames.total());
    }
}
