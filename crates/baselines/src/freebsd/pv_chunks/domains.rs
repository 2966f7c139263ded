//! All chunks, by age: a list per domain, each under a mutex.

use super::PvChunkList;
use super::chunk::{Chunk, Name, Neighbours};
use alloc::boxed::Box;
use machine::{Atomic, AtomicInt, CpuRange, Frame, Machine, Memory, Ordering, Pinned};
use sync::adaptive::FreebsdMutex;
use sync::watch::Watched;
use sync::{Mutex, Padded};
use vm::Error;
use vm::heap::filled;
use vm::system::Victim;

/// `pv_chunks[]`. A chunk belongs to the domain of the CPU that made it, as FreeBSD's frames come
/// from the memory nearest to the CPU.
pub struct Domains<M: Machine> {
    lists: Box<[Padded<List<M>>]>,
    /// The CPUs that are divided among the domains; `None` if a domain is a NUMA node.
    cpus: Option<CpuRange>,
    /// The domain in which reclaim begins next; a hint.
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
    pub(super) fn new(domains: usize, cpus: Option<CpuRange>) -> Result<Self, Error> {
        let list = || Padded(Mutex::new(Ends::default()));
        Ok(Domains {
            lists: filled(domains.max(1), list)?,
            cpus,
            turn: M::AtomicUsize::new(0),
        })
    }

    pub(super) fn label(&self) {
        M::label_value(&*self.lists, "pv chunk lists");
    }

    /// The domain of the calling CPU.
    fn here(&self) -> usize {
        match self.cpus {
            Some(cpus) => cpus.index_of(M::pin().cpu()) * self.lists.len() / cpus.len(),
            None => M::numa_node() % self.lists.len(),
        }
    }
}

impl<M: Machine + Memory> Domains<M> {
    /// Enters a new chunk as the newest.
    pub(super) fn enter(&self, machine: &M, frame: Frame) {
        let domain = self.here();
        // SAFETY: only the caller knows the new chunk.
        unsafe { Chunk::set_domain(machine, frame, domain) };
        self.lists[domain].lock().link(machine, frame);
    }

    /// Removes chunks without taken entries: `first`, and those linked from it. Successive chunks
    /// of one list take its lock once.
    pub(super) fn leave(&self, machine: &M, first: Frame) {
        // SAFETY: the frame belongs to the caller, and is still a chunk.
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

    /// Returns the oldest chunk, of a domain that has one, and makes it the newest.
    pub(super) fn rotate(&self, machine: &M) -> Option<Victim> {
        let first = self.turn.fetch_add(1, Ordering::Relaxed);
        let count = self.lists.len();
        (0..count).find_map(|step| {
            let mut list = self.lists[first.wrapping_add(step) % count].lock();
            let frame = list.oldest?;
            list.unlink(machine, frame);
            list.link(machine, frame);
            // SAFETY: a frame on the list is a chunk as long as the lock is held.
            let tag = unsafe { Chunk::tag(machine, frame) };
            let chunk = Some(frame);
            Some(Victim { tag, chunk })
        })
    }
}

impl Ends {
    fn link<M: Machine + Memory>(&mut self, machine: &M, frame: Frame) {
        // SAFETY: both frames are chunks of the list, whose lock is held.
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
        // SAFETY: the frame and its neighbours are chunks of the list, whose lock is held.
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
