//! The locks that a task holds: a stack in its local words, two words per lock.
//!
//! Locks of a class that nests by address, acquired one after the other, share one entry with a
//! count (a run), so that locking all 512 pages of a superpage is one entry.

use crate::locals::{HELD_DEPTH, HELD_FIRST, HELD_MAX};
use crate::watch::MAX_CLASSES;
use crate::watch::site::{SITES, Site};
use core::marker::PhantomData;
use machine::{Locals, Machine};

/// The calling task's stack.
pub(super) struct Stack<M>(PhantomData<(*mut (), M)>);

/// A held lock, or a run of them.
#[derive(Clone, Copy)]
pub(super) struct Entry {
    /// Where the lock, or the first of the run, was acquired.
    pub site: Site,
    /// The number of the lock's class.
    pub class: usize,
    /// The lock's address; in a run, the address of the last lock, or 0 once that is released.
    pub lock: usize,
    /// The number of locks beyond the first.
    more: u32,
    /// True if the entry may become a run.
    run: bool,
}

/// The result of a removal.
pub(super) enum Popped {
    /// A recorded lock. It, or the first lock of its run, was acquired at this site.
    Held(Site),
    /// One of the locks that were not recorded for lack of room.
    Lost,
    /// No lock: the task does not hold it.
    Missing,
}

/// First word: site in bits 0–15, class in bits 16–30, `run` in bit 31, `more` in the
/// high half. Second word: the lock.
const CLASS: u32 = 16;
const RUN: usize = 1 << 31;
const MORE: u32 = 32;
const _: () = assert!(SITES <= 1 << CLASS && MAX_CLASSES << CLASS <= RUN);

impl Entry {
    #[inline]
    fn read(locals: &Locals, i: usize) -> Entry {
        let word = locals.words[HELD_FIRST + 2 * i].get();
        Entry {
            site: Site(word as u16),
            class: (word & (RUN - 1)) >> CLASS,
            lock: locals.words[HELD_FIRST + 2 * i + 1].get(),
            more: (word >> MORE) as u32,
            run: word & RUN != 0,
        }
    }

    #[inline]
    fn write(self, locals: &Locals, i: usize) {
        let run = if self.run { RUN } else { 0 };
        let word = self.site.0 as usize | self.class << CLASS | run | (self.more as usize) << MORE;
        locals.words[HELD_FIRST + 2 * i].set(word);
        locals.words[HELD_FIRST + 2 * i + 1].set(self.lock);
    }
}

/// The numbers of entries, and of locks without room.
fn depth(locals: &Locals) -> (usize, usize) {
    let word = locals.words[HELD_DEPTH].get();
    (word as u32 as usize, word >> 32)
}

fn set_depth(locals: &Locals, (entries, lost): (usize, usize)) {
    locals.words[HELD_DEPTH].set(entries | lost << 32);
}

impl<M: Machine> Stack<M> {
    pub(super) fn new() -> Self {
        Stack(PhantomData)
    }

    /// The number of entries.
    #[inline]
    pub(super) fn depth(&self) -> usize {
        M::with_locals(|locals| depth(locals).0)
    }

    /// Calls `f` for each entry, the latest first.
    pub(super) fn for_each(&self, mut f: impl FnMut(Entry)) {
        for i in (0..self.depth()).rev() {
            // `f` may take an unwatched lock or panic: not inside `with_locals`.
            f(M::with_locals(|locals| Entry::read(locals, i)));
        }
    }

    /// Adds a lock. Returns false if there is no room for it, and this is the first one without
    /// (one report is enough).
    #[must_use]
    pub(super) fn push(&self, class: usize, site: Site, lock: usize, run: bool) -> bool {
        M::with_locals(|locals| {
            let (entries, lost) = depth(locals);
            if run && entries > 0 {
                let mut top = Entry::read(locals, entries - 1);
                if top.run && top.class == class {
                    top.more += 1;
                    top.lock = top.lock.max(lock);
                    top.write(locals, entries - 1);
                    return true;
                }
            }
            if entries == HELD_MAX {
                set_depth(locals, (entries, lost + 1));
                return lost > 0;
            }
            let more = 0;
            Entry {
                site,
                class,
                lock,
                more,
                run,
            }
            .write(locals, entries);
            set_depth(locals, (entries + 1, lost));
            true
        })
    }

    /// Removes a lock.
    pub(super) fn pop(&self, class: usize, lock: usize) -> Popped {
        M::with_locals(|locals| {
            let (entries, lost) = depth(locals);
            // The latest entry with this address. A run records only its last lock, so any other
            // lock that is in no entry belongs to the run.
            let mut found = None;
            for i in (0..entries).rev() {
                let entry = Entry::read(locals, i);
                if entry.class == class && entry.lock == lock {
                    found = Some(i);
                    break;
                }
                if entry.class == class && entry.run && found.is_none() {
                    found = Some(i);
                }
            }
            let Some(found) = found else {
                set_depth(locals, (entries, lost.saturating_sub(1)));
                return if lost > 0 {
                    Popped::Lost
                } else {
                    Popped::Missing
                };
            };
            let mut entry = Entry::read(locals, found);
            if entry.more > 0 {
                entry.more -= 1;
                // The run does not record its last lock but one: any lock may follow from here.
                if entry.lock == lock {
                    entry.lock = 0;
                }
                entry.write(locals, found);
                return Popped::Held(entry.site);
            }
            for i in found + 1..entries {
                Entry::read(locals, i).write(locals, i - 1);
            }
            set_depth(locals, (entries - 1, lost));
            Popped::Held(entry.site)
        })
    }
}
