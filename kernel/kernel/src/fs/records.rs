//! Locks on parts of files (`fcntl` with `F_SETLK` and the like): of a process, or of an open file.
//!
//! The locks of one owner never overlap, and each owner has its own, by their first bytes. So a
//! call looks at few of them, however many there are: O(owners · log locks).
//!
//! A process that waits is on the list of waits with the process that it waits for. It goes on the
//! list and looks for a circle there under one hold of the list's lock: so the last of a circle
//! finds it.

use crate::errno::Errno;
use crate::heap;
use crate::single::Single;
use crate::system::{Lock, is_disturbed, system};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ptr;
use core::sync::atomic::{AtomicU32, Ordering};
use ipc::Kernel;

/// The owner of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Owner {
    /// The process's with this number.
    Process(u32),
    /// The open file's at this address.
    File(usize),
}

/// A lock on the bytes from `start` up to `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its owner.
    pub owner: Owner,
    /// Its first byte.
    pub start: u64,
    /// The byte behind it.
    pub end: u64,
    /// True if it excludes others' locks there.
    pub is_alone: bool,
}

/// The locks of an inode.
pub struct Records {
    records: Lock<BTreeMap<Owner, Held>>,
    /// How often one was given back, wrapping; waiters sleep at its address.
    given_back: AtomicU32,
}

/// The locks of an owner, by their first bytes.
#[derive(Default)]
struct Held(BTreeMap<u64, Part>);

#[derive(Clone, Copy, PartialEq, Eq)]
struct Part {
    /// The byte behind it.
    end: u64,
    is_alone: bool,
}

impl Held {
    /// The last lock that begins before `end`, if it reaches beyond `start`.
    fn last(&self, start: u64, end: u64) -> Option<(u64, Part)> {
        let last = self.0.range(..end).next_back();
        let last = last.map(|(&first, &part)| (first, part));
        last.filter(|(_, part)| part.end > start)
    }

    /// The first lock in a part, of those that exclude others if `is_alone`.
    fn first(&self, start: u64, end: u64, is_alone: bool) -> Option<(u64, Part)> {
        let before = self.last(start, start.saturating_add(1));
        let inside = self
            .0
            .range(start..end)
            .map(|(&first, &part)| (first, part));
        let mut all = before
            .filter(|(first, _)| *first < start)
            .into_iter()
            .chain(inside);
        all.find(|(_, part)| part.is_alone || !is_alone)
    }

    /// Cuts a part out of the locks; returns true if there was something.
    fn cut(&mut self, start: u64, end: u64) -> bool {
        let mut had = false;
        while let Some((first, part)) = self.last(start, end) {
            had = true;
            self.0.remove(&first);
            if part.end > end {
                self.0.insert(end, part);
            }
            if first < start {
                self.0.insert(first, Part { end: start, ..part });
            }
        }
        had
    }

    /// Adds a lock in the place of the old ones there; neighbours of its kind become part of it.
    fn add(&mut self, wanted: &Record) {
        self.cut(wanted.start, wanted.end);
        let is_alone = wanted.is_alone;
        let (mut start, mut end) = (wanted.start, wanted.end);
        if let Some((&first, part)) = self.0.range(..start).next_back()
            && part.end == start
            && part.is_alone == is_alone
        {
            start = first;
        }
        if let Some(part) = self.0.get(&end).copied()
            && part.is_alone == is_alone
        {
            self.0.remove(&end);
            end = part.end;
        }
        self.0.insert(start, Part { end, is_alone });
    }
}

impl Records {
    /// No locks.
    pub fn new() -> Self {
        Records {
            records: Lock::new(BTreeMap::new()),
            given_back: AtomicU32::new(0),
        }
    }

    /// Another owner's lock that `wanted` meets: the first there.
    pub fn obstacle(&self, wanted: &Record) -> Option<Record> {
        obstacle(&self.records.lock(), wanted)
    }

    /// Adds a lock in the place of its owner's old ones there; waits until others allow it, if
    /// `waits`.
    ///
    /// # Errors
    /// If others do not allow it, a signal ends the wait, the wait would be for the owner itself by
    /// way of others, or memory is short.
    pub fn take(&self, wanted: Record, waits: bool) -> Result<(), Errno> {
        loop {
            // Acquire: pairs with the release in `tell`.
            let seen = self.given_back.load(Ordering::Acquire);
            let (in_the_way, was_alone) = {
                let mut records = self.records.lock();
                let found = obstacle(&records, &wanted);
                if found.is_none() && heap::is_short() {
                    return Err(Errno::NOLCK);
                }
                let mut was_alone = false;
                if found.is_none() {
                    let held = records.entry(wanted.owner).or_default();
                    let first = held.first(wanted.start, wanted.end, true);
                    was_alone = first.is_some();
                    held.add(&wanted);
                }
                (found, was_alone)
            };
            let Some(in_the_way) = in_the_way else {
                if was_alone && !wanted.is_alone {
                    self.tell();
                }
                return Ok(());
            };
            if !waits {
                return Err(Errno::AGAIN);
            }
            if is_disturbed() {
                return Err(Errno::INTR);
            }
            let _wait = Wait::begin(wanted.owner, in_the_way.owner)?;
            let unchanged = || self.given_back.load(Ordering::Acquire) == seen;
            system().kernel.sleep(self.key(), unchanged);
        }
    }

    /// Takes away the owner's locks in the part.
    ///
    /// # Errors
    /// If one becomes two, and memory is short.
    pub fn give_back(&self, part: Record) -> Result<(), Errno> {
        let had = {
            let mut records = self.records.lock();
            let Some(held) = records.get_mut(&part.owner) else {
                return Ok(());
            };
            let last = held.last(part.start, part.end);
            let is_split = last.is_some_and(|(first, it)| first < part.start && it.end > part.end);
            if is_split && heap::is_short() {
                return Err(Errno::NOLCK);
            }
            let had = held.cut(part.start, part.end);
            if held.0.is_empty() {
                records.remove(&part.owner);
            }
            had
        };
        if had {
            self.tell();
        }
        Ok(())
    }

    /// Takes away all that the owner has.
    pub fn forget(&self, owner: Owner) {
        let had = self.records.lock().remove(&owner);
        if had.is_some() {
            self.tell();
        }
    }

    /// A waiter may find another state.
    fn tell(&self) {
        // Release: pairs with the acquire in `take`.
        self.given_back.fetch_add(1, Ordering::Release);
        system().kernel.wake(self.key(), usize::MAX);
    }

    fn key(&self) -> *const () {
        ptr::from_ref(&self.given_back).cast()
    }
}

fn obstacle(records: &BTreeMap<Owner, Held>, wanted: &Record) -> Option<Record> {
    let others = records.iter().filter(|(owner, _)| **owner != wanted.owner);
    let found = others.filter_map(|(&owner, held)| {
        let (start, Part { end, is_alone }) =
            held.first(wanted.start, wanted.end, !wanted.is_alone)?;
        Some(Record {
            owner,
            start,
            end,
            is_alone,
        })
    });
    found.min_by_key(|record| record.start)
}

/// The system's waits.
pub static WAITS: Single<Lock<Waits>> = Single::new();

/// The processes that wait for another's lock.
#[derive(Default)]
pub struct Waits(Vec<Waiting>);

#[derive(Clone, Copy, PartialEq, Eq)]
struct Waiting {
    process: u32,
    other: u32,
}

/// A wait that is on the list, if processes wait for each other there.
struct Wait(Option<Waiting>);

impl Wait {
    /// # Errors
    /// If the other waits for the first, by way of others or not, or memory is short.
    fn begin(owner: Owner, other: Owner) -> Result<Self, Errno> {
        let (Owner::Process(process), Owner::Process(other)) = (owner, other) else {
            return Ok(Wait(None));
        };
        let mut waits = WAITS.lock();
        if waits.leads(other, process) {
            return Err(Errno::DEADLK);
        }
        let wait = Waiting { process, other };
        heap::push(&mut waits.0, wait).map_err(|_| Errno::NOLCK)?;
        Ok(Wait(Some(wait)))
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        if let Some(wait) = self.0 {
            let mut waits = WAITS.lock();
            let place = waits.0.iter().position(|it| *it == wait);
            place.map(|place| waits.0.swap_remove(place));
        }
    }
}

impl Waits {
    /// Returns true if `process` waits for `last`, by way of others or not. As on Linux, a way of
    /// more than ten is not followed: several threads of a process may wait, so that ways may
    /// branch.
    fn leads(&self, process: u32, last: u32) -> bool {
        let mut here = process;
        for _ in 0..10 {
            let mut waits = self.0.iter().filter(|it| it.process == here);
            match waits.next() {
                Some(wait) if wait.other == last => return true,
                Some(wait) => here = wait.other,
                None => return false,
            }
        }
        false
    }
}
