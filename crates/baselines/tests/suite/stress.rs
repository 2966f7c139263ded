//! Many blocks and removals at once, over abstract pages: a page is mapped by CPUs; each may keep a
//! stale translation from the removal of the PV entry until it flushes. After a removal by the
//! reverse map and a wait, there must be none.

use crate::common;

use baselines::freebsd::{Di, EpochDi, LocklessDi, Pvh};
use common::NoDi;
use hosted::Hosted;
use machine::{Execute, Frame, Job, Topology};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread::yield_now;
use vm::system::{Extent, Invalidation};

const CPUS: usize = 6;
const PAGES: usize = 4;
const ROUNDS: usize = 2_000;

struct Page<P> {
    /// The PV list: the address spaces that map the page. Guarded by the page's PV lock.
    pv: Mutex<Pv>,
    /// True for each CPU that may still reach the page through its TLB.
    translated: [AtomicBool; CPUS],
    state: P,
}

#[derive(Default)]
struct Pv {
    mapped: [bool; CPUS],
    /// True while the page is being removed: there are no new mappings.
    busy: bool,
}

struct World<I: Invalidation<Hosted>> {
    policy: I,
    pages: Vec<Page<I::Page>>,
    /// Pages that a CPU could still reach after a wait.
    violations: AtomicUsize,
    /// Removals that had found an empty list and waited.
    waits: AtomicUsize,
}

impl<I: Invalidation<Hosted>> World<I> {
    fn map(&self, cpu: usize, page: usize) {
        let page = &self.pages[page];
        let _entering = self.policy.enter();
        let mut pv = page.pv.lock().unwrap();
        if !pv.busy && !pv.mapped[cpu] {
            pv.mapped[cpu] = true;
            page.translated[cpu].store(true, SeqCst);
        }
    }

    fn unmap(&self, cpu: usize, index: usize) {
        let page = &self.pages[index];
        let block = self.policy.begin();
        {
            let mut pv = page.pv.lock().unwrap();
            if !pv.mapped[cpu] {
                return;
            }
            pv.mapped[cpu] = false;
            self.policy.note(&block, frame(index), &page.state);
        }
        // Here the list may be empty and the page still be written.
        yield_now();
        page.translated[cpu].store(false, SeqCst);
        drop(block);
    }

    fn remove_all(&self, index: usize) {
        let page = &self.pages[index];
        let reverse = self.policy.reverse();
        {
            let mut pv = page.pv.lock().unwrap();
            if pv.busy || pv.mapped.contains(&true) {
                return;
            }
            pv.busy = true;
        }
        self.policy.wait(&reverse, frame(index), &page.state);
        self.waits.fetch_add(1, SeqCst);
        let reachable = page.translated.iter().any(|t| t.load(SeqCst));
        self.violations.fetch_add(reachable.into(), SeqCst);
        page.pv.lock().unwrap().busy = false;
    }

    fn run(&self, cpu: usize) {
        // A small generator; only the threads' interleaving matters.
        let mut state = cpu as u64 + 1;
        for _ in 0..ROUNDS {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let page = (state >> 33) as usize % PAGES;
            match (state >> 40) % 8 {
                0..3 => self.map(cpu, page),
                3..6 => self.unmap(cpu, page),
                _ => self.remove_all(page),
            }
        }
        for page in 0..PAGES {
            self.unmap(cpu, page);
        }
    }
}

/// Two pages per region, so that they share numbers.
fn frame(index: usize) -> Frame {
    Frame(index as u32 * 256)
}

/// Violations and waits of a run.
fn stress<I: Invalidation<Hosted>>() -> (usize, usize) {
    let machine = Hosted::new(CPUS);
    let world = Arc::new(World::<I> {
        policy: I::new(
            &I::Config::default(),
            Extent::new(machine.cpus(), PAGES * 256, 0),
        )
        .expect("room"),
        pages: std::iter::repeat_with(|| Page {
            pv: Mutex::default(),
            translated: Default::default(),
            state: I::Page::default(),
        })
        .take(PAGES)
        .collect(),
        violations: AtomicUsize::new(0),
        waits: AtomicUsize::new(0),
    });
    let job = |cpu| {
        let world = world.clone();
        Box::new(move || world.run(cpu)) as Job
    };
    machine.execute((0..CPUS).map(job).collect());
    for page in 0..PAGES {
        machine.on_cpu(0, || world.remove_all(page));
    }
    (world.violations.load(SeqCst), world.waits.load(SeqCst))
}

fn holds<I: Invalidation<Hosted>>() {
    let (violations, waits) = stress::<I>();
    assert_eq!(violations, 0, "of {waits} waits");
    assert!(waits > PAGES, "the run has shown nothing");
}

#[test]
fn pvh_holds() {
    holds::<Pvh<Hosted>>();
}

#[test]
fn di_holds() {
    holds::<Di<Hosted>>();
}

#[test]
fn lockless_di_holds() {
    holds::<LocklessDi<Hosted>>();
}

#[test]
fn epoch_di_holds() {
    holds::<EpochDi<Hosted>>();
}

#[test]
fn section_ids_hold() {
    holds::<vm::invalidation::Snapshots<Hosted>>();
}

#[test]
fn none_at_all_does_not_hold() {
    let (violations, waits) = stress::<NoDi>();
    assert!(violations > 0, "of {waits} waits");
}
