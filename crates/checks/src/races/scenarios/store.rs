//! A store of pages that delays its calls and checks how it is used.

use super::pause;
use crate::races::play::{Play, Scenario, Stage};
use baselines::Preset;
use baselines::selected::Selected;
use machine::{
    Atomic, Atomics, Frame, Ordering, PAGE_SIZE, Pager, PagerError, Platform, Topology, Truncate,
};
use sim::Sim;
use std::ops::Range;
use std::sync::Arc;
use vm::pager::{MemoryPager, PagerCounts};
use vm::swap::SwapSpace;
use vm::system::ForkTables;
use vm::{Options, System, Vm};

/// Slots of a swap space.
const SLOTS: u32 = 512;
/// The bound of a call's time, in nanoseconds.
const CALL: u64 = 8_000;

/// A store that keeps pages in memory. A call takes a random time, and no two calls may concern one
/// page at the same time.
pub struct Store<M: Platform> {
    pages: MemoryPager<M>,
    /// 1 for a page that a call concerns.
    busy: Box<[M::AtomicU32]>,
}

impl<M: Platform> Store<M> {
    /// A store for at most `pages` pages.
    pub fn new(pages: usize) -> Self {
        Store {
            pages: MemoryPager::new(),
            busy: (0..pages).map(|_| M::AtomicU32::new(0)).collect(),
        }
    }

    /// Counts of the calls so far.
    pub fn counts(&self) -> PagerCounts {
        self.pages.counts()
    }

    /// Makes `word` the first word of a page and all others zero, without counting as a call.
    pub fn put<S: System<Machine = M>>(&self, vm: &Arc<Vm<S>>, page: u64, word: u64) {
        let scratch = vm.new_page().expect("a page");
        let machine = vm.machine();
        scratch.word(0).store(word, Ordering::Relaxed);
        // SAFETY: the page is held.
        let written = unsafe {
            self.pages
                .write(machine, page, &[scratch.frame()], PAGE_SIZE)
        };
        written.expect("written");
    }

    /// A page's word as the store now has it, without counting as a call.
    pub fn word<S: System<Machine = M>>(&self, vm: &Arc<Vm<S>>, page: u64, index: usize) -> u64 {
        let scratch = vm.new_page().expect("a page");
        let machine = vm.machine();
        // SAFETY: the page is held.
        let read = unsafe { self.pages.read(machine, page, &[scratch.frame()]) };
        read.expect("read");
        scratch.word(index).load(Ordering::Relaxed)
    }

    /// Makes a call for `pages`.
    fn call<R>(&self, pages: Range<u64>, call: impl FnOnce() -> R) -> R {
        let of = |page: u64| &self.busy[page as usize];
        for page in pages.clone() {
            let busy = of(page).swap(1, Ordering::AcqRel);
            assert_eq!(busy, 0, "two calls for page {page} of a store at once");
        }
        pause(CALL / 8);
        let result = call();
        pause(CALL);
        pages.for_each(|page| of(page).store(0, Ordering::Release));
        result
    }
}

impl<M: Platform> Pager<M> for Store<M> {
    unsafe fn read(&self, machine: &M, first: u64, frames: &[Frame]) -> Result<(), PagerError> {
        let pages = first..first + frames.len() as u64;
        // SAFETY: so says the caller.
        self.call(pages, || unsafe { self.pages.read(machine, first, frames) })
    }

    unsafe fn write(
        &self,
        machine: &M,
        first: u64,
        frames: &[Frame],
        bytes: usize,
    ) -> Result<(), PagerError> {
        let pages = first..first + frames.len() as u64;
        // SAFETY: so says the caller.
        self.call(pages, || unsafe {
            self.pages.write(machine, first, frames, bytes)
        })
    }
}

impl<M: Platform> Truncate<M> for Store<M> {
    fn truncate(&self, machine: &M, bytes: u64) -> Result<(), PagerError> {
        let behind = bytes.div_ceil(PAGE_SIZE as u64)..self.busy.len() as u64;
        self.call(behind, || self.pages.truncate(machine, bytes))
    }
}

/// A VM with a swap space.
pub fn with_swap<S: System>(machine: S::Machine, options: Options<S>) -> Arc<Vm<S>> {
    let store = Box::new(Store::new(SLOTS as usize));
    let swap = SwapSpace::new(machine.cpus(), store, SLOTS).expect("a swap space");
    let options = Options {
        swap_space: Some(swap),
        ..options
    };
    Vm::with_options(machine, options).expect("memory for the VM")
}

/// A number for each CPU and each of `N` pages, which that CPU writes.
pub struct Table<M: Atomics, const N: usize>(Box<[[M::AtomicU64; N]]>);

impl<M: Atomics, const N: usize> Table<M, N> {
    /// Zeroes for this many CPUs.
    pub fn new(cpus: usize) -> Self {
        let row = |_| std::array::from_fn(|_| M::AtomicU64::new(0));
        Table((0..cpus).map(row).collect())
    }

    /// Sets a number.
    pub fn set(&self, cpu: usize, page: usize, value: u64) {
        self.0[cpu][page].store(value, Ordering::Release);
    }

    /// All numbers, by CPU.
    pub fn all(&self) -> Vec<[u64; N]> {
        let row =
            |row: &[M::AtomicU64; N]| std::array::from_fn(|page| row[page].load(Ordering::Acquire));
        self.0.iter().map(row).collect()
    }
}

/// The `n`th value of a word that is written many times: no part of a value is part of another one.
pub fn value(n: u64) -> u64 {
    assert!(n < 1 << 16, "too many values");
    n * 0x0001_0001_0001_0001
}

/// The number `n` of a value.
pub fn number(value: u64) -> u64 {
    let n = value & 0xffff;
    assert_eq!(value, n * 0x0001_0001_0001_0001, "a mixture of values");
    n
}

/// A scenario of `name` on the machine itself, in the system `S`.
pub fn with_parts<S: System<Machine = Sim>>(
    name: impl Into<String>,
    options: impl Fn() -> Options<S> + Send + Sync + 'static,
    build: fn(&Stage, Options<S>) -> Play,
) -> Scenario {
    Scenario::new(name, move |stage: &Stage| build(stage, options()))
}

pub fn presets(family: &str, build: fn(&Stage, Options<Selected<Sim>>) -> Play) -> Vec<Scenario> {
    let scenario = |preset: Preset| {
        let name = format!("{family}.{preset}");
        with_parts(name, move || preset.options(), build)
    };
    Preset::ALL.into_iter().map(scenario).collect()
}

/// A scenario of forks that share each table (scenarios have few pages in one): `family.sharing`.
pub fn sharing(family: &str, build: fn(&Stage, Options<Selected<Sim>>) -> Play) -> Scenario {
    let options = || Options {
        fork_tables: ForkTables::Shared { from: 1 },
        ..Preset::SCALEVM.options()
    };
    with_parts(format!("{family}.sharing"), options, build)
}
