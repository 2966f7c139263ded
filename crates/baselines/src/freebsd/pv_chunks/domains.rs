//! All chunks, by age: a list for each domain, under one mutex each.

use super::PvChunkList;
use super::chunk::{Chunk, Name, Neighbours};
use alloc::boxed::Box;
use machine::{Atomic, AtomicInt, CpuRange, Frame, Machine, Memory, Ordering, Pinned};
use sync::adaptive::FreebsdMutex;
use sync::watch::Watched;
use sync::{Mutex, Padded};
use vm::policy::Victim;

/// `pv_chunks[]`. A chunk is of the domain of the CPU that made it, as a frame that FreeBSD hands out is
/// of the memory nearest to the CPU.
pub struct Domains<M: Machine> {
    lists: Box<[Padded<List<M>>]>,
    cpus: CpuRange,
    /// In which domain reclaim begins next; a hint.
    turn: M::AtomicUsize,
}

type List<M> = Mutex<M, Watched<M, FreebsdMutex<M>, PvChunkList>, Ends>;

/// The oldest and the newest chunk.
#[derive(Default)]
struct Ends {
    oldest: Name,
    newest: Name,
}

impl<M: Machine> Domains<M> {
    pub(super) fn new(domains: usize, cpus: CpuRange) -> Self {
        let list = |_| Padded(Mutex::new(Ends::default()));
        Domains {
            lists: (0..domains.max(1)).map(list).collect(),
            cpus,
            turn: M::AtomicUsize::new(0),
        }
    }

    pub(super) fn label(&self) {
        M::label_value(&*self.lists, "pv chunk lists");
    }

    /// The domain of the calling CPU.
    fn here(&self) -> usize {
        let cpu = self.cpus.index_of(M::pin().cpu());
        cpu * self.lists.len() / self.cpus.len()
    }
}

impl<M: Machine + Memory> Domains<M> {
    /// A new chunk is the newest.
    pub(super) fn enter(&self, machine: &M, frame: Frame) {
        let domain = self.here();
        // SAFETY: nobody else knows the chunk.
        unsafe { Chunk::set_domain(machine, frame, domain) };
        self.lists[domain].lock().link(machine, frame);
    }

    /// Takes chunks off that nothing is taken of: `first`, and those that it leads to. A list's lock is
    /// taken once for its neighbours in that order.
    pub(super) fn leave(&self, machine: &M, first: Frame) {
        // SAFETY: the caller's, and still a chunk.
        let domain_of = |frame| unsafe { Chunk::domain(machine, frame) };
        let mut next = Some(first);
        while let Some(frame) = next {
            let domain = domain_of(frame);
            let mut list = self.lists[domain].lock();
            while let Some(frame) = next
                && domain_of(frame) == domain
            {
                list.unlink(machine, frame);
                next = Chunk::next(machine, frame);
            }
        }
    }

    /// The oldest chunk, which is the newest from now on; of a domain that has one.
    pub(super) fn rotate(&self, machine: &M) -> Option<Victim> {
        let first = self.turn.fetch_add(1, Ordering::Relaxed);
        let count = self.lists.len();
        (0..count).find_map(|step| {
            let mut list = self.lists[first.wrapping_add(step) % count].lock();
            let frame = list.oldest?;
            list.unlink(machine, frame);
            list.link(machine, frame);
            // SAFETY: what is on the list is a chunk as long as the lock is held.
            let tag = unsafe { Chunk::tag(machine, frame) };
            let chunk = Some(frame);
            Some(Victim { tag, chunk })
        })
    }
}

impl Ends {
    fn link<M: Machine + Memory>(&mut self, machine: &M, frame: Frame) {
        // SAFETY: chunks of the list, whose lock is held.
        unsafe {
            *Chunk::by_age(machine, frame) = Neighbours::of(None, self.newest);
            match self.newest {
                Some(newest) => Chunk::by_age(machine, newest).set_next(Some(frame)),
                None => self.oldest = Some(frame),
            }
        }
        self.newest = Some(frame);
    }

    fn unlink<M: Machine + Memory>(&mut self, machine: &M, frame: Frame) {
        // SAFETY: as in `link`.
        unsafe {
            let list = *Chunk::by_age(machine, frame);
            match list.previous() {
                Some(previous) => Chunk::by_age(machine, previous).set_next(list.next()),
                None => self.oldest = list.next(),
            }
            match list.next() {
                Some(next) => Chunk::by_age(machine, next).set_previous(list.previous()),
                None => self.newest = list.previous(),
            }
        }
    }
}
