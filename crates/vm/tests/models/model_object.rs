//! One entry of an object under all interleavings: lookups and faults against evictions
//! and truncations, on the real VM.

use loomed::Loomed;
use loomed::flaw::{Flaw, Site, must_be_found};
use loomed::loom::model::Builder;
use machine::{Atomic, Cpus, Execute, Frame, Job, Memory, Ordering, PAGE_SIZE, PagerError};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use sync::spin::TestAndSet;
use vm::object::{Object, ObjectRef, Pattern, Slots};
use vm::{Best, Vm};

/// The content of the object's page, in memory and in the swap space.
const OURS: u64 = 7;
/// The content of another owner's page.
const THEIRS: u64 = 99;
const SLOT: u32 = 3;

/// A swap space of one slot.
#[derive(Default)]
struct OneSlot {
    /// How often it was read, and freed. No part of the model.
    reads: AtomicUsize,
    frees: AtomicUsize,
}

impl Slots<Loomed> for OneSlot {
    unsafe fn read(&self, machine: &Loomed, slot: u32, frame: Frame) -> Result<(), PagerError> {
        assert_eq!(slot, SLOT);
        // SAFETY: the frame is the test's.
        unsafe { machine.word(frame, 0) }.store(OURS, Ordering::Relaxed);
        self.reads.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    unsafe fn free(&self, slot: u32) {
        assert_eq!(slot, SLOT);
        self.frees.fetch_add(1, Ordering::Relaxed);
    }
}

type TestVm = Arc<Vm<Best<Loomed>>>;

struct World {
    machine: Loomed,
    vm: TestVm,
    object: ObjectRef<Best<Loomed>>,
    slots: Arc<OneSlot>,
    /// True if the page is mapped: stands for its PV list and the lock of that.
    mapped: sync::Mutex<Loomed, TestAndSet<Loomed>, bool>,
}

impl World {
    /// Called on a CPU: an object of one page, not in memory yet.
    fn new(machine: &Loomed) -> Arc<Self> {
        let vm = Vm::new(machine.clone()).expect("memory for the VM");
        let slots = Arc::new(OneSlot::default());
        // SAFETY: no other object has these slots.
        let object = unsafe { Object::with_slots(&vm, slots.clone(), PAGE_SIZE as u64) };
        Arc::new(World {
            machine: machine.clone(),
            object: object.expect("an object"),
            vm,
            slots,
            mapped: sync::Mutex::new(false),
        })
    }

    fn word(&self, frame: Frame) -> u64 {
        // SAFETY: the frame is the test's.
        unsafe { self.machine.word(frame, 0) }.load(Ordering::Relaxed)
    }

    /// Brings the page in and writes it, as if it were on its slot, too.
    fn fill(&self) {
        let page = self.object.page(0, Pattern::Random).expect("a page");
        let word = page.word(0);
        word.store(OURS, Ordering::Relaxed);
    }

    /// Swaps the page out if it is not held, and uses the frame for something else.
    fn reclaim(&self) {
        let frame = self.object.resident(0).expect("filled before");
        let hold = self.vm.page_ref(frame).expect("in the object");
        let home = self.vm.home(&hold).expect("no other task is busy");
        // SAFETY: the slot is the object's alone, and has the page's content.
        if unsafe { home.swap_out(SLOT) } {
            drop(hold);
            let other = self.vm.new_page().expect("a page");
            // The same frame, if no task still has it: the frame freed last is used first.
            let word = other.word(0);
            word.store(THEIRS, Ordering::Relaxed);
        }
    }

    fn truncate(&self) {
        let remove = |_: &_| *self.mapped.lock() = false;
        self.object.truncate(0, remove).expect("truncate");
    }
}

/// Runs `prepare` and then the jobs at once, then `end`, in each interleaving.
fn model<const N: usize>(
    preemptions: usize,
    prepare: fn(&World),
    jobs: [fn(&World); N],
    end: fn(&World),
) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 100_000;
    let body = move || {
        let machine = Loomed::with_memory(N, 8);
        let made = Arc::new(std::sync::Mutex::new(None));
        let on_cpu = |job: Job| machine.execute(vec![job]);
        {
            let (machine, made) = (machine.clone(), made.clone());
            on_cpu(Box::new(move || {
                let world = World::new(&machine);
                prepare(&world);
                *made.lock().unwrap() = Some(world);
            }));
        }
        let world = made.lock().unwrap().take().expect("made above");
        let start = |job: fn(&World)| {
            let world = world.clone();
            Box::new(move || job(&world)) as Job
        };
        machine.execute(jobs.map(start).into());
        on_cpu(Box::new(move || {
            end(&world);
            let world = Arc::into_inner(world).expect("all jobs have ended");
            let vm = world.vm.clone();
            drop(world);
            assert_eq!(vm.frames().free_count(), vm.frames().total(), "leaked");
        }));
    };
    builder.check(move || loomed::with_stack(body));
}

fn is_found(model: impl FnOnce(), message: &str) {
    let found = catch_unwind(AssertUnwindSafe(model));
    let panic = found.expect_err("a fault is found");
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    let text = text.expect("a message");
    assert!(text.contains(message), "{text}");
}

fn look_up(world: &World) {
    let page = world.object.page(0, Pattern::Random).expect("a page");
    assert_eq!(world.word(page.frame()), OURS, "somebody else's page");
    // An eviction hides the page for a moment, and shows it again when it finds that a task has it.
    while !world.object.still_has(0, page.frame()) {
        Loomed::relax(0);
    }
    assert_eq!(
        world.word(page.frame()),
        OURS,
        "evicted while somebody has it"
    );
}

/// Either the page stays, or it is brought back, once.
fn is_consistent(world: &World) {
    let reads = world.slots.reads.load(Ordering::Relaxed);
    assert_eq!(reads, world.slots.frees.load(Ordering::Relaxed));
    look_up(world);
}

#[test]
fn a_lookup_meets_an_eviction() {
    model(3, World::fill, [look_up, World::reclaim], is_consistent);
}

/// The page comes back to the frame that it left, while the other CPU looks there.
#[test]
fn a_lookup_meets_an_eviction_and_a_return() {
    let evict_and_look = |world: &World| {
        world.reclaim();
        look_up(world);
    };
    model(2, World::fill, [look_up, evict_and_look], is_consistent);
}

#[test]
fn two_lookups_of_an_evicted_page_read_it_once() {
    let evicted = |world: &World| {
        world.fill();
        world.reclaim();
    };
    model(3, evicted, [look_up, look_up], is_consistent);
}

/// The lookup by hand, with or without its second look.
fn look_twice<const AGAIN: bool>(world: &World) {
    let Some(frame) = world.object.resident(0) else {
        return;
    };
    let Some(hold) = world.vm.hold(frame) else {
        return;
    };
    if !AGAIN || world.object.still_has(0, frame) {
        assert_eq!(world.word(hold.frame()), OURS, "somebody else's page");
    }
}

#[test]
fn a_lookup_that_does_not_look_again_is_found() {
    let model_of = |look| model(3, World::fill, [look, World::reclaim], |_| {});
    model_of(look_twice::<true>);
    is_found(|| model_of(look_twice::<false>), "somebody else's page");
}

/// Maps the page: asks whether it is still the object's after it listed the mapping, or, if
/// it is wrong, before.
fn fault<const AFTER: bool>(world: &World) {
    let Ok(page) = world.object.page(0, Pattern::Random) else {
        return;
    };
    let still = || world.object.still_has(0, page.frame());
    if AFTER {
        *world.mapped.lock() = true;
        if !still() {
            *world.mapped.lock() = false;
        }
    } else if still() {
        *world.mapped.lock() = true;
    }
}

fn is_empty(world: &World) {
    assert!(!*world.mapped.lock(), "a page behind the end is mapped");
    assert_eq!(world.object.resident(0), None, "a page behind the end");
}

/// The page is made while the object shrinks.
fn a_first_fault_meets_a_truncation() {
    model(2, |_| {}, [fault::<true>, World::truncate], is_empty);
}

#[test]
fn a_fault_meets_a_truncation() {
    model(2, World::fill, [fault::<true>, World::truncate], is_empty);
    a_first_fault_meets_a_truncation();
}

#[test]
fn a_size_without_its_fences_is_found() {
    for (file, text, comment) in [
        (
            "object/truncate.rs",
            include_str!("../../src/object/truncate.rs"),
            "// Then a fence: a task that owns an entry from here on sees the size",
        ),
        (
            "object/fill.rs",
            include_str!("../../src/object/fill.rs"),
            "// Pairs with the fence in `truncate`.",
        ),
    ] {
        let site = Site::after(file, text, comment);
        must_be_found(Flaw::Relaxed, site, a_first_fault_meets_a_truncation);
    }
}

#[test]
fn a_fault_that_asks_too_early_is_found() {
    let model = || model(2, World::fill, [fault::<false>, World::truncate], is_empty);
    is_found(model, "a page behind the end is mapped");
}

#[test]
fn a_truncation_meets_an_eviction() {
    let end = |world: &World| {
        is_empty(world);
        let frees = world.slots.frees.load(Ordering::Relaxed);
        assert!(frees <= 1, "the slot was freed {frees} times");
    };
    let reclaim = |world: &World| {
        let frame = world.object.resident(0);
        let Some(hold) = frame.and_then(|frame| world.vm.page_ref(frame)) else {
            return;
        };
        // SAFETY: the slot is the object's alone, and has the page's content.
        let swapped = world
            .vm
            .home(&hold)
            .is_some_and(|home| unsafe { home.swap_out(SLOT) });
        // The truncation finds the slot if it was left there.
        assert!(!swapped || world.slots.frees.load(Ordering::Relaxed) <= 1);
    };
    model(2, World::fill, [reclaim, World::truncate], end);
}
