//! Places in queues, named by numbers of 16 bits. A task has one for each level to which its waits
//! may nest.
//!
//! A task gets a number when it first queues, and keeps it until it ends. Blocks of places are
//! never freed while the machine lives, so a number may be followed at any time. A look-up costs
//! nothing on a simulated machine, as Linux finds the nodes of a CPU by a constant offset.

use super::exit::give_up_at_exit;
use crate::locals::QUEUE_PLACES;
use alloc::boxed::Box;
use core::cell::Cell;
use core::ptr::{self, null_mut};
use core::sync::atomic::{AtomicBool, AtomicPtr};
use machine::{Atomic, Locals, MAX_CPUS, Machine, Ordering};

/// Where a code begins in the lock's word.
pub(super) const SHIFT: u32 = 16;
/// How deep waits may nest in a task: its own, and those of what interrupts it.
const LEVELS: u32 = 4;
/// The most tasks that can have places at the same time; others wait without a queue.
const BLOCKS: usize = MAX_CPUS;

/// A waiter's node.
pub(super) struct Node<M: Machine> {
    /// The successor. Written by the successor, later by the first of the queue.
    pub(super) next: M::AtomicPtr,
    /// 0 until the predecessor hands its turn over.
    pub(super) turn: M::AtomicU32,
    /// The code of the predecessor, in a queue that tasks may leave. A predecessor that leaves
    /// changes it.
    pub(super) previous: M::AtomicU32,
    /// The waiter's NUMA node, which the waiter writes before it queues.
    pub(super) home: M::AtomicU32,
    /// The code of this place.
    pub(super) code: u32,
}

impl<M: Machine> Node<M> {
    pub(super) fn address(&self) -> *mut () {
        ptr::from_ref(self).cast_mut().cast()
    }
}

/// A task's places, on cache lines of their own, since the task spins there.
#[repr(C, align(128))]
struct Block<M: Machine> {
    nodes: [Node<M>; LEVELS as usize],
    /// The number of places in use. Only the task accesses it.
    depth: Cell<u32>,
    /// The state of a random generator. Only the task accesses it.
    random: Cell<u32>,
    /// True if a task has the block.
    taken: AtomicBool,
}

impl<M: Machine> Block<M> {
    /// The block with this number, already taken.
    fn new(number: usize) -> Self {
        let code = |level| ((number as u32 + 1) * LEVELS + level) << SHIFT;
        Block {
            nodes: core::array::from_fn(|level| Node {
                next: M::AtomicPtr::new(null_mut()),
                turn: M::AtomicU32::new(0),
                previous: M::AtomicU32::new(0),
                home: M::AtomicU32::new(0),
                code: code(level as u32),
            }),
            depth: Cell::new(0),
            random: Cell::new(number as u32 + 1),
            taken: AtomicBool::new(true),
        }
    }
}

/// The blocks of a machine, by number.
struct Table<M: Machine> {
    blocks: [AtomicPtr<Block<M>>; BLOCKS],
}

impl<M: Machine> Table<M> {
    fn of_machine() -> &'static Self {
        M::anchor().get_or_init(|| Table {
            blocks: [const { AtomicPtr::new(null_mut()) }; BLOCKS],
        })
    }

    /// Takes a block that no task has, or makes a new one.
    fn claim(&self) -> Option<&Block<M>> {
        self.blocks.iter().enumerate().find_map(|(number, entry)| {
            // Acquire: pairs with the release of the exchange in `fill`.
            let found = entry.load(Ordering::Acquire);
            if found.is_null()
                && let Some(new) = Self::fill(entry, number)
            {
                return Some(new);
            }
            // SAFETY: blocks live as long as the table, and the entry has one by now.
            let block = unsafe { &*entry.load(Ordering::Acquire) };
            // Acquire: pairs with the release in `drain`, for the cells.
            (!block.taken.swap(true, Ordering::Acquire)).then_some(block)
        })
    }

    /// Makes a block for an empty entry; `None` if another task has filled it first.
    fn fill(entry: &AtomicPtr<Block<M>>, number: usize) -> Option<&Block<M>> {
        let new = Box::into_raw(Box::new(Block::new(number)));
        // Release: pairs with the acquire loads of entries.
        match entry.compare_exchange(null_mut(), new, Ordering::AcqRel, Ordering::Relaxed) {
            // SAFETY: blocks live as long as the table.
            Ok(_) => Some(unsafe { &*new }),
            Err(_) => {
                // SAFETY: just made, and never published.
                drop(unsafe { Box::from_raw(new) });
                None
            }
        }
    }
}

impl<M: Machine> Drop for Table<M> {
    fn drop(&mut self) {
        for entry in &mut self.blocks {
            if !entry.get_mut().is_null() {
                // SAFETY: the machine is gone, so no task is left that could use the block, which
                // comes from a box.
                drop(unsafe { Box::from_raw(*entry.get_mut()) });
            }
        }
    }
}

/// A place in use by the calling task.
pub(super) struct Place<M: Machine> {
    table: &'static Table<M>,
    block: &'static Block<M>,
    level: u32,
}

/// Takes a place for the calling task; `None` if waits nest too deeply or too many tasks have
/// places.
pub(super) fn enter<M: Machine>() -> Option<Place<M>> {
    let table = Table::<M>::of_machine();
    let block = M::with_locals(|locals| {
        let word = &locals.words[QUEUE_PLACES];
        if word.get() == 0 {
            give_up_at_exit::<M>(locals);
            word.set(ptr::from_ref(table.claim()?).expose_provenance());
        }
        // SAFETY: the word has a block of the table.
        Some(unsafe { &*ptr::with_exposed_provenance::<Block<M>>(word.get()) })
    })?;
    let level = block.depth.get();
    (level < LEVELS).then(|| {
        block.depth.set(level + 1);
        Place {
            table,
            block,
            level,
        }
    })
}

/// Gives up the places of a task that ends.
pub(crate) fn drain<M: Machine>(locals: &Locals) {
    let word = locals.words[QUEUE_PLACES].replace(0);
    if word != 0 {
        // SAFETY: the word has a block of the table.
        let block = unsafe { &*ptr::with_exposed_provenance::<Block<M>>(word) };
        // Release: pairs with the acquire in `claim`.
        block.taken.store(false, Ordering::Release);
    }
}

impl<M: Machine> Place<M> {
    pub(super) fn node(&self) -> &Node<M> {
        &self.block.nodes[self.level as usize]
    }

    /// The node with this code; `None` for 0. Other bits do not matter.
    pub(super) fn at(&self, code: u32) -> Option<&Node<M>> {
        let (number, level) = ((code >> SHIFT) / LEVELS, (code >> SHIFT) % LEVELS);
        let entry = &self.table.blocks[number.checked_sub(1)? as usize];
        // SAFETY: a code is that of a node, so the entry has a block, which lives as long as the
        // table. Acquire: pairs with the release in `fill`.
        let block = unsafe { &*entry.load(Ordering::Acquire) };
        Some(&block.nodes[level as usize])
    }

    /// The node at an address that was read from a node's `next`.
    pub(super) fn of(&self, address: *mut ()) -> &Node<M> {
        // SAFETY: only addresses of nodes are stored there, and these live as long as the table.
        unsafe { &*address.cast::<Node<M>>() }
    }

    /// The last node of the secondary queue that came with the turn.
    pub(super) fn secondary(&self) -> Option<&Node<M>> {
        self.at(self.node().turn.load(Ordering::Relaxed))
    }

    /// A random number (xorshift: Marsaglia, 2003).
    pub(super) fn random(&self) -> u32 {
        let mut state = self.block.random.get();
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        self.block.random.set(state);
        state
    }

    /// Sets the state of the random generator.
    #[cfg(test)]
    pub(super) fn seed(&self, state: u32) {
        self.block.random.set(state);
    }
}

/// Gives the place back to the task.
impl<M: Machine> Drop for Place<M> {
    fn drop(&mut self) {
        self.block.depth.set(self.level);
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::{LEVELS, Place, enter};
    use crate::raw::RawLock;
    use crate::spin::Qspinlock;
    use alloc::vec::Vec;
    use core::ptr::from_ref;
    use core::sync::atomic::{AtomicBool, Ordering::SeqCst};
    use hosted::Hosted;
    use std::thread;

    #[test]
    fn waits_nest_four_deep_and_then_go_without_a_place() {
        let places: Vec<Place<Hosted>> = (0..LEVELS).map(|_| enter().expect("a place")).collect();
        for place in &places {
            let found = places[0].at(place.node().code).map(from_ref);
            assert_eq!(found, Some(from_ref(place.node())));
        }
        assert!(enter::<Hosted>().is_none());
        let (lock, held) = (Qspinlock::<Hosted>::new(), AtomicBool::new(false));
        thread::scope(|scope| {
            scope.spawn(|| {
                lock.lock();
                held.store(true, SeqCst);
                thread::yield_now();
                // SAFETY: acquired above.
                unsafe { lock.unlock(()) };
            });
            while !held.load(SeqCst) {
                thread::yield_now();
            }
            lock.lock_without_place();
        });
        assert!(lock.is_locked());
        places.into_iter().rev().for_each(drop);
        assert!(enter::<Hosted>().is_some_and(|place| place.level == 0));
    }
}
