//! Shared parts of the models of spaces: a VM with one space, in which two or three CPUs run jobs
//! at once.
#![allow(dead_code)] // each model uses a part

use loomed::Loomed;
use loomed::loom::model::Builder;
use machine::{
    Atomic, Atomics, Execute, Frame, Job, Memory, Ordering, PAGE_SIZE, Pager, PagerError, Topology,
    Truncate, VaRange,
};
use std::sync::{Arc, Mutex};
use sync::turnstile::Turnstiles;
use vm::object::{Object, ObjectRef};
use vm::swap::SwapSpace;
use vm::{At, Best, HEAP_START, Hold, Options, Prot, Request, Space, Vm};

pub const MIB: usize = 1 << 20;
/// A page of the slot of level 0 at 1 GiB.
pub const HERE: usize = 1 << 30;
/// A page of its neighbour: 2 MiB on.
pub const NEAR: usize = HERE + 2 * MIB;
/// A page of the slot behind that.
pub const BEYOND: usize = NEAR + 2 * MIB;
/// Where the second slot of the heap begins, and a page of the slot behind that.
pub const HEAP_SLOT: usize = HEAP_START + 2 * MIB;
pub const BEYOND_HEAP: usize = HEAP_SLOT + 2 * MIB;
/// The content of the pages.
pub const OURS: u64 = 7;
/// The content of another owner's page.
pub const THEIRS: u64 = 99;

/// A store that keeps the first word of the page that was written last.
#[derive(Default)]
pub struct OneWord(Mutex<u64>);

impl OneWord {
    pub fn word(&self) -> u64 {
        *self.0.lock().unwrap()
    }
}

impl Truncate<Loomed> for OneWord {
    fn truncate(&self, _: &Loomed, _: u64) -> Result<(), PagerError> {
        Ok(())
    }
}

impl Pager<Loomed> for OneWord {
    unsafe fn read(&self, machine: &Loomed, _: u64, frames: &[Frame]) -> Result<(), PagerError> {
        // SAFETY: the frame is the test's.
        let word = unsafe { machine.word(frames[0], 0) };
        word.store(*self.0.lock().unwrap(), Ordering::Relaxed);
        Ok(())
    }

    unsafe fn write(
        &self,
        machine: &Loomed,
        _: u64,
        frames: &[Frame],
        _: usize,
    ) -> Result<(), PagerError> {
        // SAFETY: the frame is the test's.
        let word = unsafe { machine.word(frames[0], 0) };
        *self.0.lock().unwrap() = word.load(Ordering::Relaxed);
        Ok(())
    }
}

/// A swap space of one page, so that its slot is used anew at once.
fn swap_space(machine: &Loomed) -> SwapSpace<Loomed> {
    let space = SwapSpace::new(machine.cpus(), Box::new(OneWord::default()), 1);
    space.expect("a table")
}

pub struct World {
    pub machine: Loomed,
    pub vm: Arc<Vm<Best<Loomed>>>,
    pub space: Space<Best<Loomed>>,
    /// A page of a file's, as private mappings see it.
    pub object: ObjectRef<Best<Loomed>>,
    /// A file of one page, and its store.
    pub file: ObjectRef<Best<Loomed>>,
    pub store: Arc<OneWord>,
    /// 1 when the page has gone from there.
    pub cut: <Loomed as Atomics>::AtomicU64,
    /// A private page that is held.
    held: Mutex<Option<Hold<Best<Loomed>>>>,
    /// A child of the space.
    child: Mutex<Option<Space<Best<Loomed>>>>,
    /// Its first word, as a look for stores left it; or the number of a frame.
    pub seen: <Loomed as Atomics>::AtomicU64,
}

impl World {
    fn new(machine: &Loomed) -> World {
        let options = Options {
            swap_pages: Some(1 << 20),
            swap_space: Some(swap_space(machine)),
            ..Options::default()
        };
        let vm = Vm::with_options(machine.clone(), options).expect("memory for the VM");
        let space = Space::new(&vm).expect("a space");
        let object = Object::anonymous(&vm, PAGE_SIZE as u64).expect("an object");
        let store = Arc::new(OneWord::default());
        let file = Object::file(&vm, store.clone(), PAGE_SIZE as u64).expect("an object");
        World {
            file,
            store,
            machine: machine.clone(),
            vm,
            space,
            object,
            cut: Atomic::new(0),
            held: Mutex::new(None),
            child: Mutex::new(None),
            seen: Atomic::new(0),
        }
    }

    pub fn map(&self, at: usize) {
        let mapped = self.space.map_fixed(page(at), Prot::READ_WRITE);
        mapped.expect("map");
    }

    /// Maps a page at `at`, and writes it.
    pub fn fill(&self, at: usize) {
        self.map(at);
        self.space.store(at, OURS).expect("store");
    }

    /// As [`World::fill`], and holds the page.
    pub fn fill_held(&self, at: usize) {
        self.fill(at);
        let frame = self.space.pmap().lookup(at).expect("a page");
        self.put_held(self.vm.hold(frame).expect("it is mapped"));
    }

    /// Notes the frame of the page at `at`, which nobody holds, for [`World::noted_frame`].
    pub fn note_frame(&self, at: usize) {
        let frame = self.space.pmap().lookup(at).expect("a page");
        self.seen.store(frame.0.into(), Ordering::Relaxed);
    }

    pub fn noted_frame(&self) -> Frame {
        Frame(self.seen.load(Ordering::Relaxed) as u32)
    }

    pub fn take_held(&self) -> Hold<Best<Loomed>> {
        self.held.lock().unwrap().take().expect("held")
    }

    pub fn put_held(&self, hold: Hold<Best<Loomed>>) {
        *self.held.lock().unwrap() = Some(hold);
    }

    pub fn take_child(&self) -> Space<Best<Loomed>> {
        self.child.lock().unwrap().take().expect("forked")
    }

    pub fn put_child(&self, child: Space<Best<Loomed>>) {
        *self.child.lock().unwrap() = Some(child);
    }

    pub fn set_break(&self, end: usize) {
        self.space.set_break(end).expect("set_break");
    }

    /// The pages of `space` around its heap's end are mapped as that says.
    pub fn has_heap(space: &Space<Best<Loomed>>) {
        let end = space.current_break();
        let pages = [HEAP_START, HEAP_SLOT - PAGE_SIZE, HEAP_SLOT];
        for at in pages {
            let mapped = space.region_at(at).is_some();
            assert_eq!(mapped, at < end, "{at:#x} with the end at {end:#x}");
        }
    }

    pub fn has(&self, at: usize) {
        assert_eq!(self.space.load(at), Ok(OURS), "{at:#x}");
    }

    /// Maps the object's page privately at `at`.
    pub fn map_object(&self, at: usize) {
        let request = Request::object(&self.object, 0, PAGE_SIZE, Prot::READ_WRITE);
        let request = request.expect("a request").at(At::Fixed(at));
        self.space.map_as(&request).expect("map");
    }

    /// Takes a frame for something else: the one that was freed last.
    pub fn reuse(&self) {
        let other = self.vm.new_page().expect("a page");
        let word = other.word(0);
        word.store(THEIRS, Ordering::Relaxed);
    }
}

pub fn page(at: usize) -> VaRange {
    VaRange::sized(at, PAGE_SIZE)
}

/// Runs `prepare`, then the jobs at once, then `end`, in each interleaving with at most
/// `preemptions` preemptions.
pub fn model<const CPUS: usize>(
    preemptions: usize,
    prepare: fn(&World),
    jobs: [fn(&World); CPUS],
    end: fn(&World),
) -> impl FnOnce() {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 100_000;
    move || {
        builder.check(move || {
            let machine = Loomed::with_memory(jobs.len(), 32);
            // The anchor orders by atomics that the checker does not see: a table that one CPU made
            // would race with its use on another.
            Turnstiles::<Loomed>::global();
            let on_cpu = |job: Job| machine.execute(vec![job]);
            let made = Arc::new(Mutex::new(None));
            let (of, into) = (machine.clone(), made.clone());
            on_cpu(Box::new(move || {
                let world = World::new(&of);
                world.space.activate();
                prepare(&world);
                *into.lock().unwrap() = Some(Arc::new(world));
            }));
            let world = made.lock().unwrap().take().expect("made above");
            let start = |job: fn(&World)| {
                let world = world.clone();
                Box::new(move || job(&world)) as Job
            };
            machine.execute(jobs.map(start).into());
            on_cpu(Box::new(move || {
                end(&world);
                let world = Arc::into_inner(world).expect("all have ended");
                let vm = world.vm.clone();
                drop(world);
                assert_eq!(vm.frames().free_count(), vm.frames().total(), "leaked");
            }));
        });
    }
}

/// A task never finds the frame's next content, by a translation of its own or by a fault.
pub fn not_theirs(seen: Result<u64, impl std::fmt::Debug>) {
    assert!(!matches!(seen, Ok(THEIRS)), "somebody else's");
}
