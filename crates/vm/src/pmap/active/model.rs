//! CPUs come, leave and come back while another one takes a page away, under all interleavings, on
//! machines of two CPUs and of more than a word has bits.

extern crate std;

use super::*;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;
use loomed::Loomed;
use loomed::flaw::{Flaw, Site, must_be_found};
use loomed::loom::model::Builder;
use machine::{Atomics, Execute, Job, SharedCell};

const TAG: Asid = Asid(1);
const OTHER: Asid = Asid(2);

/// The state of CPU 0 at first.
#[derive(Clone, Copy)]
enum Begins {
    /// It has never been in the space.
    New,
    /// It has the entry cached, and has left the space for another.
    Left,
    /// It is in the space, and has the entry cached.
    Here,
}

/// The CPU that uses the page, the CPU that takes it, and the number of CPUs.
const TWO: [usize; 3] = [0, 1, 2];
/// Runs the model with one CPU, or both, in another word than the first.
const WIDE: [[usize; 3]; 4] = [[64, 0, 65], [0, 64, 65], [64, 128, 129], [128, 64, 129]];

struct World {
    /// The CPU that uses the page, called 0 here.
    user: usize,
    active: ActiveCpus<Loomed>,
    current: CurrentSpaces<Loomed>,
    /// 1 while the page is mapped.
    entry: <Loomed as Atomics>::AtomicU64,
    /// The page: a CPU that reaches it through the entry races with its next owner.
    page: <Loomed as Atomics>::Cell<u64>,
}

impl World {
    /// CPU 0 translates by the entry, or by what it has cached.
    fn access(&self, is_cached: bool) {
        if is_cached || self.entry.load(Ordering::Acquire) == 1 {
            self.page.read();
        }
    }

    /// CPU 0 comes to the space; its TLB, `is_cached`, forgets the entry if it flushes.
    fn come(&self, is_cached: &mut bool) {
        let flush = |flushes: bool| *is_cached &= !flushes;
        self.active
            .enter(&self.current, self.user, TAG, false, flush);
    }

    /// CPU 0 leaves for another space.
    fn leave(&self) {
        let other = ActiveCpus::<Loomed>::new();
        other.enter(&self.current, self.user, OTHER, false, drop);
    }
}

/// CPU 0 uses the page while CPU 1 takes it away; CPU 1 then owns it if no CPU has to be
/// interrupted. (Hosted and simulated accesses fence by themselves, and would hide that there is no
/// fence.)
fn model(begins: Begins, [user, taker, count]: [usize; 3]) {
    Builder::new().check(move || {
        let machine = Loomed::new(2);
        let cpus = CpuRange::claim(count);
        let world = Arc::new(World {
            user,
            active: ActiveCpus::new(),
            current: CurrentSpaces::new(cpus).unwrap(),
            entry: Atomic::new(1),
            page: SharedCell::new(0),
        });
        // CPU 0 has done this before, and CPU 1 knows of it.
        match begins {
            Begins::New => {}
            Begins::Left => {
                world.come(&mut true);
                world.leave();
            }
            Begins::Here => world.come(&mut true),
        }
        let other = world.clone();
        let use_page = move || {
            let mut is_cached = !matches!(begins, Begins::New);
            if !matches!(begins, Begins::Here) {
                world.come(&mut is_cached);
            }
            world.access(is_cached);
            world.leave();
        };
        let take = move || {
            other.entry.swap(0, Ordering::AcqRel);
            let (_, has_others) = other.active.look(cpus, taker);
            let interrupted = || other.active.others(&other.current, cpus, taker, TAG, false);
            let interrupted = if has_others {
                interrupted()
            } else {
                CpuSet::EMPTY
            };
            if interrupted.is_empty() {
                other.page.write();
            } else {
                assert!(interrupted.iter().eq([user]), "others are interrupted");
            }
        };
        let jobs: vec::Vec<Job> = vec![Box::new(use_page), Box::new(take)];
        machine.execute(jobs);
    });
}

#[test]
fn who_is_not_in_the_set_finds_nothing() {
    model(Begins::New, TWO);
}

#[test]
fn who_comes_back_has_flushed_or_is_interrupted() {
    model(Begins::Left, TWO);
}

#[test]
fn who_has_left_has_ended_its_accesses() {
    model(Begins::Here, TWO);
}

#[test]
fn it_is_so_beyond_the_first_word() {
    for cpus in WIDE {
        for begins in [Begins::New, Begins::Left, Begins::Here] {
            model(begins, cpus);
        }
    }
}

fn must_matter(file: &'static str, text: &'static str, comment: &'static str, begins: Begins) {
    let site = Site::after(file, text, comment);
    must_be_found(Flaw::Relaxed, site, move || model(begins, TWO));
}

#[test]
fn a_missing_order_is_found() {
    let active = |comment, begins| {
        must_matter(
            "pmap/active.rs",
            include_str!("../active.rs"),
            comment,
            begins,
        );
    };
    active("// Pairs with the fence in `enter`.", Begins::New);
    active(
        "// Pairs with the fences in `look` and `others`.",
        Begins::New,
    );
    active(
        "// Pairs with the fences in `look` and `others`.",
        Begins::Left,
    );
    active("// Pairs with the fence in `enter`, for", Begins::Left);
    let current = include_str!("../../vm/current.rs");
    must_matter(
        "vm/current.rs",
        current,
        "// Acquire: pairs with `set`.",
        Begins::Left,
    );
}
