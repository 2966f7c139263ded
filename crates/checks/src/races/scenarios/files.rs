//! A file that two spaces map, shared and privately, while mappings and pages change.
//!
//! Each CPU has a word of its own in each page of the file and writes ever greater numbers there;
//! however mappings and pages change, it finds the last one. Private copies have other words, which
//! never get into the file.

use super::pause;
use super::process::enter;
use super::store::{Store, Table, number, presets, value, with_swap};
use crate::races::play::{Play, Scenario, Stage};
use crate::vms;
use machine::{Atomic, Atomics, Ordering, PAGE_SIZE, VaRange};
use sim::Sim;
use std::sync::Arc;
use vm::object::{Object, ObjectRef};
use vm::{Advice, At, Error, Options, Prot, Request, Space, System, Vm};

/// Rounds of each CPU.
const ROUNDS: u64 = 24;
/// Pages of the file.
const PAGES: usize = 4;
const BYTES: usize = PAGES * PAGE_SIZE;
/// Where spaces map the file: at tables' ends.
const SHARED: usize = (1 << 42) + (2 << 20) - BYTES / 2;
const PRIVATE: usize = SHARED + (64 << 20);
/// Physical memory of a machine.
const MEMORY: usize = 8 << 20;
/// The word of the first CPU: the words before it belong to the page.
const FIRST_WORD: usize = 1;
/// The word of the first CPU in private copies.
const COPIES: usize = 64;

/// The events that happen during accesses.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Beside {
    Nothing,
    /// Mappings and pages come and go.
    Changes,
    /// Mappings and pages come and go, and the first CPU truncates the file and restores its
    /// length.
    Cuts,
}

/// Every preset, with each kind of events during accesses.
pub fn all() -> Vec<Scenario> {
    let fault = presets("file-fault", faults);
    let change = presets("file-change", changes);
    let cut = presets("file-truncate", cuts);
    let all = fault.into_iter().chain(change).chain(cut);
    all.map(|scenario| scenario.with_memory(MEMORY)).collect()
}

fn faults<S: System<Machine = Sim>>(stage: &Stage, options: Options<S>) -> Play {
    build(stage, options, Beside::Nothing)
}

fn changes<S: System<Machine = Sim>>(stage: &Stage, options: Options<S>) -> Play {
    build(stage, options, Beside::Changes)
}

fn cuts<S: System<Machine = Sim>>(stage: &Stage, options: Options<S>) -> Play {
    build(stage, options, Beside::Cuts)
}

struct World<S: System<Machine = Sim>> {
    vm: Arc<Vm<S>>,
    store: Arc<Store<Sim>>,
    file: ObjectRef<S>,
    spaces: [Space<S>; 2],
    beside: Beside,
    /// The numbers that each CPU has written to the file last.
    done: Table<Sim, PAGES>,
    /// 1 for a page that was truncated.
    cut: [<Sim as Atomics>::AtomicU32; PAGES],
}

/// The first word of a page of the file.
fn tag(page: usize) -> u64 {
    0x7a67_0000 + page as u64
}

fn build<S: System<Machine = Sim>>(stage: &Stage, options: Options<S>, beside: Beside) -> Play {
    let vm = with_swap(stage.machine.clone(), options);
    let store = Arc::new(Store::new(PAGES));
    (0..PAGES).for_each(|page| store.put(&vm, page as u64, tag(page)));
    let file = Object::file(&vm, store.clone(), BYTES as u64).expect("a file");
    let world = World {
        spaces: [(); 2].map(|()| Space::new(&vm).expect("a space")),
        done: Table::new(stage.jobs),
        cut: std::array::from_fn(|_| Atomic::new(0)),
        vm,
        store,
        file,
        beside,
    };
    for space in &world.spaces {
        world.map(space, true, 0..PAGES).expect("room");
        world.map(space, false, 0..PAGES).expect("room");
    }
    Play::new(stage, world, World::job, World::end)
}

/// The `index`th word of a page in a mapping.
fn word(shared: bool, page: usize, index: usize) -> usize {
    let start = if shared { SHARED } else { PRIVATE };
    start + page * PAGE_SIZE + 8 * index
}

/// Where some pages are.
fn at(shared: bool, pages: &std::ops::Range<usize>) -> VaRange {
    VaRange::sized(word(shared, pages.start, 0), pages.len() * PAGE_SIZE)
}

fn a_page() -> usize {
    sim::dice(PAGES as u64) as usize
}

fn some_pages() -> std::ops::Range<usize> {
    let first = a_page();
    first..first + 1 + sim::dice((PAGES - first) as u64) as usize
}

impl<S: System<Machine = Sim>> World<S> {
    fn job(&self, cpu: usize) {
        let space = &self.spaces[cpu % 2];
        enter(space);
        let mut last = Last::default();
        for n in 1..=ROUNDS {
            match sim::dice(3) {
                0 if cpu == 0 && self.beside == Beside::Cuts => self.cut(space),
                0 if self.beside != Beside::Nothing => self.change(space),
                _ => {}
            }
            self.access(space, cpu, n, &mut last);
            pause(400);
        }
    }

    fn map(
        &self,
        space: &Space<S>,
        shared: bool,
        pages: std::ops::Range<usize>,
    ) -> Result<(), Error> {
        let range = at(shared, &pages);
        let offset = (pages.start * PAGE_SIZE) as u64;
        let request = Request::object(&self.file, offset, range.len(), Prot::READ_WRITE)?;
        let request = if shared { request.shared() } else { request };
        space.map_as(&request.at(At::Fixed(range.start))).map(drop)
    }

    /// Writes one of the CPU's words and checks another, in the file and in a copy.
    fn access(&self, space: &Space<S>, cpu: usize, n: u64, last: &mut Last) {
        let (mine, copied) = (FIRST_WORD + cpu, COPIES + cpu);
        let page = a_page();
        if sim::dice(2) == 0 {
            if let Some(()) = self.mapped(space.store(word(true, page, mine), value(n))) {
                last.shared[page] = n;
                self.done.set(cpu, page, n);
            }
        } else if let Some(()) = self.mapped(space.store(word(false, page, copied), value(n))) {
            last.private[page] = n;
        }
        pause(400);
        let (page, may_go) = (a_page(), self.beside != Beside::Nothing);
        let cuts = self.beside == Beside::Cuts;
        if let Some(found) = self.mapped(space.load(word(true, page, mine))) {
            let sound = number(found) == last.shared[page] || cuts && found == 0;
            assert!(
                sound,
                "page {page}: {found:#x}, not number {}",
                last.shared[page]
            );
        }
        if let Some(found) = self.mapped(space.load(word(false, page, copied))) {
            let sound = number(found) == last.private[page] || may_go && found == 0;
            assert!(
                sound,
                "copy {page}: {found:#x}, not number {}",
                last.private[page]
            );
        }
        if let Some(found) = self.mapped(space.load(word(true, page, copied))) {
            assert_eq!(
                found, 0,
                "page {page} of the file has what was stored to a copy"
            );
        }
        for shared in [true, false] {
            let was_cut = self.cut[page].load(Ordering::Acquire) == 1;
            if let Some(found) = self.mapped(space.load(word(shared, page, 0))) {
                let sound = found == tag(page) && !was_cut || found == 0 && cuts;
                assert!(sound, "page {page} begins with {found:#x}, cut: {was_cut}");
            }
        }
    }

    /// Makes mappings or pages come and go.
    fn change(&self, space: &Space<S>) {
        let shared = sim::dice(2) == 0;
        let pages = some_pages();
        let range = at(shared, &pages);
        let changed = match sim::dice(12) {
            0 => space.unmap(range),
            1 => space.discard(range),
            2 => space.protect(range, Prot::READ),
            3 => space.protect(range, Prot::READ_WRITE),
            4 | 5 => self.map(space, shared, pages),
            6..9 => space.advise(range, Advice::PageOut),
            9 => {
                self.vm.reclaim(4);
                Ok(())
            }
            10 => space.fork().map(drop),
            _ => self.sync(space, range),
        };
        match changed {
            Ok(()) | Err(Error::NotMapped { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }

    /// Syncs a range, and checks that data written before is then in the store.
    fn sync(&self, space: &Space<S>, range: VaRange) -> Result<(), Error> {
        if range.start >= PRIVATE {
            return space.sync(range);
        }
        let done = self.done.all();
        space.sync(range)?;
        let first = (range.start - SHARED) / PAGE_SIZE;
        let page = first + sim::dice(range.pages() as u64) as usize;
        for (cpu, least) in done.iter().enumerate() {
            let found = self.store.word(&self.vm, page as u64, FIRST_WORD + cpu);
            let sound = number(found) >= least[page] || self.beside == Beside::Cuts;
            assert!(sound, "the store has {found:#x} of number {}", least[page]);
        }
        Ok(())
    }

    /// Truncates the file, after which the part behind the end is unreachable. Then restores its
    /// length.
    fn cut(&self, space: &Space<S>) {
        let page = a_page();
        self.file
            .set_size((page * PAGE_SIZE) as u64)
            .expect("a cut");
        for behind in page..PAGES {
            self.cut[behind].store(1, Ordering::Release);
            for shared in [true, false] {
                let found = space.load(word(shared, behind, 0));
                let refused = matches!(found, Err(Error::Bus { .. } | Error::Segv(_)));
                assert!(
                    refused,
                    "page {behind}, cut off, shared {shared}: {found:?}"
                );
            }
        }
        pause(2_000);
        self.file.set_size(BYTES as u64).expect("growth");
    }

    /// The result; `None` if there was no page, or none that allows the access. Both may happen.
    fn mapped<R>(&self, result: Result<R, Error>) -> Option<R> {
        match result {
            Ok(result) => Some(result),
            Err(Error::Segv(_)) if self.beside != Beside::Nothing => None,
            Err(Error::Bus { .. }) if self.beside == Beside::Cuts => None,
            Err(error) => panic!("{error}"),
        }
    }

    /// Drops the file, which writes the dirty pages, and checks that the store has all of them.
    fn end(self) {
        let World {
            vm,
            store,
            file,
            spaces,
            beside,
            done,
            ..
        } = self;
        let reads = store.counts().pages_read;
        drop((spaces, file));
        for (cpu, row) in done.all().into_iter().enumerate() {
            for (page, n) in row.into_iter().enumerate() {
                let found = number(store.word(&vm, page as u64, FIRST_WORD + cpu));
                let sound = found == n || beside == Beside::Cuts && found <= n;
                assert!(sound, "the store has number {found} instead of {n}");
            }
        }
        if beside == Beside::Nothing {
            assert!(reads <= PAGES as u64, "{reads} pages were read, of {PAGES}");
        }
        vms::assert_unused(&vm);
    }
}

/// The numbers that a CPU wrote last.
#[derive(Default)]
struct Last {
    shared: [u64; PAGES],
    private: [u64; PAGES],
}
