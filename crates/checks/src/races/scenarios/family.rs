//! The reverse map: pages that five generations of processes share are taken away while they use
//! them.
//!
//! Private pages go to the swap space, through any member that has them; shared ones are
//! removed from all tables, and stay. Every member finds the right words.

use super::pause;
use super::process::{enter, leave};
use super::store::{presets, sharing, with_swap};
use crate::races::play::{Play, Scenario, Stage};
use crate::vms;
use machine::{Atomic, Atomics, Ordering, PAGE_SIZE, VaRange};
use sim::Sim;
use std::sync::Arc;
use vm::{Advice, At, Options, Prot, Request, Space, System, Vm};

/// Generations after the first process, and children of one in each.
const LEVELS: usize = 5;
const CHILDREN: usize = 2;
/// Rounds of each CPU.
const ROUNDS: u64 = 24;
/// Pages of private memory, and of shared memory.
const PAGES: usize = 2;
const BYTES: usize = PAGES * PAGE_SIZE;
/// Where private memory begins: at a table's end.
const PRIVATE: usize = (1 << 42) + (2 << 20) - BYTES / 2;
/// Where shared memory begins.
const SHARED: usize = 1 << 43;
/// Physical memory of a machine.
const MEMORY: usize = 8 << 20;

/// Every preset.
pub fn all() -> Vec<Scenario> {
    let all = presets("family", build).into_iter();
    let all = all.chain([sharing("family", build)]);
    all.map(|one| one.with_memory(MEMORY)).collect()
}

struct World<S: System<Machine = Sim>> {
    vm: Arc<Vm<S>>,
    members: Vec<Member<S>>,
    jobs: usize,
}

/// A process, which one CPU runs, and the words with which its pages begin.
struct Member<S: System<Machine = Sim>> {
    space: Space<S>,
    words: [<Sim as Atomics>::AtomicU64; PAGES],
}

fn build<S: System<Machine = Sim>>(stage: &Stage, options: Options<S>) -> Play {
    let vm = with_swap(stage.machine.clone(), options);
    let first = Space::new(&vm).expect("a space");
    first.activate();
    let private = VaRange::sized(PRIVATE, BYTES);
    first.map_fixed(private, Prot::READ_WRITE).expect("room");
    let shared = Request::anonymous(BYTES, Prot::READ_WRITE).shared();
    first.map_as(&shared.at(At::Fixed(SHARED))).expect("room");
    for page in 0..PAGES {
        for start in [PRIVATE, SHARED] {
            let at = start + page * PAGE_SIZE;
            first.store(at, at as u64).expect("memory");
        }
    }
    let mut members = vec![Member::new(first)];
    for level in 0..LEVELS {
        for _ in 0..CHILDREN {
            let child = members[level].space.fork().expect("a fork");
            members.push(Member::new(child));
        }
    }
    let world = World {
        vm,
        members,
        jobs: stage.jobs,
    };
    Play::new(stage, world, World::job, |world| {
        world.members.iter().for_each(Member::look);
        leave::<Sim>();
        let vm = world.vm;
        drop(world.members);
        vms::assert_unused(&vm);
    })
}

impl<S: System<Machine = Sim>> World<S> {
    fn job(&self, cpu: usize) {
        let own: Vec<_> = self.members.iter().skip(cpu).step_by(self.jobs).collect();
        for n in 1..=ROUNDS {
            let member = own[sim::dice(own.len() as u64) as usize];
            match sim::dice(5) {
                0 => member.store(n),
                1 | 2 => member.look(),
                _ => self.take_away(),
            }
            pause(400);
        }
    }

    /// Takes a page of some member away from all that have it.
    fn take_away(&self) {
        let member = &self.members[sim::dice(self.members.len() as u64) as usize];
        let at = sim::dice(PAGES as u64) as usize * PAGE_SIZE;
        if sim::dice(2) == 0 {
            let page = VaRange::sized(PRIVATE + at, PAGE_SIZE);
            member.space.advise(page, Advice::PageOut).expect("mapped");
        } else {
            let frame = member.space.pmap().lookup(SHARED + at);
            if let Some(hold) = frame.and_then(|frame| self.vm.hold(frame)) {
                self.vm.remove_all(&hold);
            }
        }
    }
}

impl<S: System<Machine = Sim>> Member<S> {
    fn new(space: Space<S>) -> Self {
        let word = |page| Atomic::new((PRIVATE + page * PAGE_SIZE) as u64);
        Member {
            space,
            words: std::array::from_fn(word),
        }
    }

    /// Writes a private page. Called by the member's CPU.
    fn store(&self, value: u64) {
        enter(&self.space);
        let page = sim::dice(PAGES as u64) as usize;
        let stored = self.space.store(PRIVATE + page * PAGE_SIZE, value);
        stored.expect("private memory");
        self.words[page].store(value, Ordering::Release);
    }

    /// Checks the pages' words. Called by the member's CPU, or by the only one left.
    fn look(&self) {
        enter(&self.space);
        for page in 0..PAGES {
            let word = self.words[page].load(Ordering::Acquire);
            let at = page * PAGE_SIZE;
            assert_eq!(
                self.space.load(PRIVATE + at),
                Ok(word),
                "private page {page}"
            );
            let shared = self.space.load(SHARED + at);
            assert_eq!(shared, Ok((SHARED + at) as u64), "shared page {page}");
        }
    }
}
