//! The swap space from many sides: tasks swap out, share, fault, evict and drop at random.
//!
//! A small stand-in for address spaces: *entries* that are empty or hold the number of a
//! slot, each with its page's expected content. Pages are frames of the machine, so a
//! look-up that returns a stranger's page, a slot that is used anew while it is read, or a
//! page that is freed too early shows as a wrong word; one that is never freed, as a leak.

use crate::dice::Dice;
use crate::swapping::{Owner, Pages};
use crate::world::P;
use hosted::Hosted;
use machine::{Execute, Frame, Job, Memory, Ordering, Pager, PagerError, Topology};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Mutex, MutexGuard};
use vm::pager::MemoryPager;
use vm::swap::{CLUSTER, Eviction, SwapIn, SwapSpace};

const CPUS: usize = 4;
const ENTRIES: u64 = 24;
/// Few, so that they are used anew all the time.
const SLOTS: u32 = 40;
const FRAMES: usize = 64;

/// An entry's slot and its content.
type Entry = Option<(u32, u64)>;

struct World {
    machine: Hosted,
    space: SwapSpace<Hosted>,
    pages: Pages<Hosted>,
    free: Mutex<Vec<Frame>>,
    /// Pages that were not written, by frame: they are not evicted.
    dirty: Vec<AtomicBool>,
    entries: Vec<Mutex<Entry>>,
    /// Contents are never the same twice.
    contents: AtomicU64,
    loads: AtomicUsize,
    evictions: AtomicUsize,
}

/// Fails now and then.
struct Unreliable {
    pager: MemoryPager<Hosted>,
    calls: AtomicU64,
}

impl Unreliable {
    fn fails(&self) -> bool {
        self.calls.fetch_add(1, Ordering::Relaxed) % 16 == 15
    }
}

const FAILED: PagerError = PagerError { errno: 5 };

impl Pager<Hosted> for Unreliable {
    unsafe fn read(
        &self,
        machine: &Hosted,
        first: u64,
        frames: &[Frame],
    ) -> Result<(), PagerError> {
        // SAFETY: the frames are the test's.
        let read = unsafe { self.pager.read(machine, first, frames) };
        std::thread::yield_now();
        if self.fails() { Err(FAILED) } else { read }
    }

    unsafe fn write(
        &self,
        machine: &Hosted,
        first: u64,
        frames: &[Frame],
        bytes: usize,
    ) -> Result<(), PagerError> {
        std::thread::yield_now();
        if self.fails() {
            // Half of it.
            // SAFETY: the frames are the test's.
            unsafe { self.pager.write(machine, first, frames, bytes / 2) }?;
            return Err(FAILED);
        }
        // SAFETY: the frames are the test's.
        unsafe { self.pager.write(machine, first, frames, bytes) }
    }
}

impl Owner<Hosted> for World {
    fn pages(&self) -> &Pages<Hosted> {
        &self.pages
    }

    fn freed(&self, frame: Frame) {
        self.fill(frame, u64::MAX);
        self.free().push(frame);
    }
}

impl World {
    fn new() -> Arc<Self> {
        let machine = Hosted::with_memory(CPUS, FRAMES * P).expect("memory");
        let pager = Unreliable {
            pager: MemoryPager::new(),
            calls: AtomicU64::new(0),
        };
        let space = SwapSpace::new(machine.cpus(), Box::new(pager), SLOTS);
        Arc::new(World {
            space: space.expect("a table"),
            machine,
            pages: Pages::new(FRAMES),
            free: Mutex::new((0..FRAMES as u32).map(Frame).collect()),
            dirty: (0..FRAMES).map(|_| AtomicBool::new(false)).collect(),
            entries: (0..ENTRIES).map(|_| Mutex::new(None)).collect(),
            contents: AtomicU64::new(1),
            loads: AtomicUsize::new(0),
            evictions: AtomicUsize::new(0),
        })
    }

    fn free(&self) -> MutexGuard<'_, Vec<Frame>> {
        self.free.lock().expect("no CPU panics")
    }

    fn entry(&self, dice: &mut Dice) -> MutexGuard<'_, Entry> {
        let entry = &self.entries[dice.below(ENTRIES) as usize];
        entry.lock().expect("no CPU panics")
    }

    fn fill(&self, frame: Frame, content: u64) {
        for index in [0, 255, 511] {
            // SAFETY: the frame is the test's.
            let word = unsafe { self.machine.word(frame, index) };
            word.store(content, Ordering::Relaxed);
        }
    }

    fn is_filled(&self, frame: Frame, content: u64) {
        for index in [0, 255, 511] {
            // SAFETY: the frame is the test's.
            let word = unsafe { self.machine.word(frame, index) }.load(Ordering::Relaxed);
            assert_eq!(word, content, "word {index} of {frame:?}");
        }
    }

    /// A new page with one reference.
    fn new_page(&self, content: u64) -> Option<Frame> {
        let frame = self.free().pop()?;
        self.dirty[frame.index()].store(false, Ordering::Release);
        self.fill(frame, content);
        self.pages.begin(frame, 1);
        Some(frame)
    }

    fn release(&self, slot: u32) {
        if let Some(frame) = self.space.release(slot) {
            self.drop_page(frame);
        }
    }

    /// Writes some new pages to the store and gives their slots to entries that are empty.
    fn swap_out(&self, dice: &mut Dice) {
        let count = 1 + dice.below(4);
        let content = self.contents.fetch_add(count, Ordering::Relaxed);
        let new = (0..count).map_while(|n| self.new_page(content + n));
        let frames: Vec<Frame> = new.collect();
        for &frame in &frames {
            self.dirty[frame.index()].store(true, Ordering::Release);
            self.pages.retain(frame);
        }
        let slots = self.space.allocate(&frames).unwrap_or(0..0);
        assert!(slots.len() <= CLUSTER.min(frames.len()));
        let (ours, refused) = frames.split_at(slots.len());
        refused.iter().for_each(|&frame| self.drop_page(frame));
        // Others find the numbers before the pages are written.
        for (n, slot) in slots.clone().enumerate() {
            let mut entry = self.entry(dice);
            if entry.is_none() {
                self.space.retain(slot);
                *entry = Some((slot, content + n as u64));
            }
        }
        // SAFETY: the frames are the test's.
        let written = unsafe { self.space.write(&self.machine, slots.start, ours) };
        for (slot, &frame) in slots.zip(ours) {
            self.dirty[frame.index()].store(written.is_err(), Ordering::Release);
            self.release(slot);
            self.drop_page(frame);
        }
        refused.iter().for_each(|&frame| self.drop_page(frame));
    }

    /// An entry shares another's slot, as after a fork.
    fn share(&self, dice: &mut Dice) {
        let Some((slot, content)) = ({
            let from = self.entry(dice);
            from.inspect(|&(slot, _)| self.space.retain(slot))
        }) else {
            return;
        };
        let mut to = self.entry(dice);
        if to.is_none() {
            *to = Some((slot, content));
        } else {
            drop(to);
            self.release(slot);
        }
    }

    fn drop_entry(&self, dice: &mut Dice) {
        let dropped = self.entry(dice).take();
        if let Some((slot, _)) = dropped {
            self.release(slot);
        }
    }

    /// Brings an entry's page in without a reference of its slot, and looks at the entry again.
    fn fault(&self, dice: &mut Dice) {
        let place = &self.entries[dice.below(ENTRIES) as usize];
        let Some((slot, _)) = *place.lock().expect("no CPU panics") else {
            return;
        };
        let hold = match self.space.begin_in(slot, |frame| self.hold(frame)) {
            SwapIn::Gone => return,
            SwapIn::Cached(hold) => hold,
            SwapIn::Load(loading) => {
                let Some(frame) = self.new_page(0) else {
                    return;
                };
                self.loads.fetch_add(1, Ordering::Relaxed);
                // SAFETY: the frames are the test's.
                if unsafe { loading.read(&self.machine, frame) }.is_err() {
                    return self.drop_page(frame);
                }
                let hold = self.hold(frame).expect("a new page");
                if !loading.finish(frame) {
                    self.drop_page(frame);
                }
                hold
            }
        };
        if let Some((now, content)) = *place.lock().expect("no CPU panics")
            && now == slot
            && self.space.holds(slot, hold.frame)
        {
            self.is_filled(hold.frame, content);
        }
    }

    fn evict(&self, dice: &mut Dice) {
        let slot = dice.below(SLOTS.into()) as u32;
        let frame = Frame(dice.below(FRAMES as u64) as u32);
        let found = (0..FRAMES as u32).map(|n| Frame((frame.0 + n) % FRAMES as u32));
        let Some(frame) = found.into_iter().find(|&f| self.space.holds(slot, f)) else {
            return;
        };
        let Some(hold) = self.hold(frame) else {
            return;
        };
        let dirty = || self.dirty[frame.index()].load(Ordering::Acquire);
        let freeze = || !dirty() && self.pages.freeze(frame, 2);
        match self.space.uncache(slot, frame, freeze) {
            Eviction::Evicted => {
                std::mem::forget(hold);
                self.evictions.fetch_add(1, Ordering::Relaxed);
                self.freed(frame);
            }
            Eviction::Kept => {}
            Eviction::Released => self.drop_page(frame),
        }
    }

    fn step(&self, dice: &mut Dice) {
        match dice.below(8) {
            0 => self.swap_out(dice),
            1 => self.share(dice),
            2 => self.drop_entry(dice),
            3 | 4 => self.evict(dice),
            _ => self.fault(dice),
        }
    }

    /// All entries go; nothing is left.
    fn end(&self) {
        self.machine.on_cpu(0, || {
            for entry in &self.entries {
                let left = entry.lock().expect("no CPU panics").take();
                left.into_iter().for_each(|(slot, _)| self.release(slot));
            }
            assert_eq!(self.space.used(), 0, "slots leaked");
            assert_eq!(self.space.cached(), 0, "the cache keeps pages");
        });
        assert_eq!(self.free().len(), FRAMES, "pages leaked");
        assert!(self.loads.load(Ordering::Relaxed) > 100, "nothing was read");
        assert!(self.evictions.load(Ordering::Relaxed) > 100, "no evictions");
    }
}

fn on_all(machine: &Hosted, job: impl Fn(u64) + Send + Sync + 'static) {
    let job = Arc::new(job);
    let jobs = (0..CPUS as u64).map(|cpu| {
        let job = job.clone();
        Box::new(move || job(cpu)) as Job
    });
    machine.execute(jobs.collect());
}

#[test]
fn contents_stay_whatever_happens() {
    for seed in 1..=4 {
        let world = World::new();
        let shared = world.clone();
        on_all(&world.machine, move |cpu| {
            let mut dice = Dice((seed << 32) + cpu + 1);
            (0..20_000).for_each(|_| shared.step(&mut dice));
        });
        world.end();
    }
}

/// Each CPU uses no more than its share of the slots, and all shares fit: a slot is always free.
#[test]
fn no_slot_is_refused_while_one_is_free() {
    const EACH: usize = 3;
    let machine = Hosted::new(CPUS);
    let pager = Box::new(MemoryPager::<Hosted>::new());
    let slots = (CPUS * EACH) as u32;
    let space = SwapSpace::new(machine.cpus(), pager, slots).expect("a table");
    let space = Arc::new(space);
    let shared = space.clone();
    on_all(&machine, move |cpu| {
        let mut dice = Dice(cpu + 1);
        let mut mine = Vec::new();
        for _ in 0..100_000 {
            if mine.len() < EACH && dice.below(2) == 0 {
                let slot = shared.allocate(&[Frame(cpu as u32)]);
                mine.push(slot.expect("a slot is free").start);
            } else if !mine.is_empty() {
                let slot = mine.swap_remove(dice.below(mine.len() as u64) as usize);
                assert_eq!(shared.release(slot), Some(Frame(cpu as u32)));
            }
        }
        for slot in mine {
            assert_eq!(shared.release(slot), Some(Frame(cpu as u32)));
        }
    });
    assert_eq!((space.used(), space.cached()), (0, 0));
}
