//! Locks on parts of files (`fcntl` with `F_SETLK` and the like), owned by a process or an open
//! file.
//!
//! The locks of one owner never overlap, and each owner's are kept by their first bytes, so a call
//! costs O(owners · log locks).
//!
//! A process that waits is on the list of waits, with the process that it waits for. It enters the
//! list and searches it for a cycle while it holds the list's lock, so the process that closes a
//! cycle finds it.

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
    /// The process with this number.
    Process(u32),
    /// The open file at this address.
    File(usize),
}

/// A lock on the bytes from `start` up to `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// The lock's owner.
    pub owner: Owner,
    /// Its first byte.
    pub start: u64,
    /// The first byte after it.
    pub end: u64,
    /// True if it excludes all locks of others there (a write lock).
    pub is_alone: bool,
}

/// The locks of an inode.
pub struct Records {
    records: Lock<BTreeMap<Owner, Held>>,
    /// How often a lock was released, wrapping. Waiters sleep at its address.
    given_back: AtomicU32,
}

/// The locks of an owner, by their first bytes.
#[derive(Default)]
struct Held(BTreeMap<u64, Part>);

#[derive(Clone, Copy, PartialEq, Eq)]
struct Part {
    /// The first byte after it.
    end: u64,
    is_alone: bool,
}

impl Held {
    /// The last lock that begins before `end`, if it extends beyond `start`.
    fn last(&self, start: u64, end: u64) -> Option<(u64, Part)> {
        let last = self.0.range(..end).next_back();
        let last = last.map(|(&first, &part)| (first, part));
        last.filter(|(_, part)| part.end > start)
    }

    /// The first lock in a part; with `is_alone` only of the locks that exclude others.
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

    /// Removes a part from the locks. Returns true if any lock was there.
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

    /// Adds a lock, which replaces the old ones there and absorbs neighbours of its kind.
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

    /// The first lock of another owner that conflicts with `wanted`.
    pub fn obstacle(&self, wanted: &Record) -> Option<Record> {
        obstacle(&self.records.lock(), wanted)
    }

    /// Adds a lock, which replaces its owner's old ones there. With `waits`, waits until others
    /// allow it.
    ///
    /// # Errors
    /// If others do not allow it, a signal ends the wait, the wait would be a deadlock, or memory
    /// is short.
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

    /// Releases the owner's locks in the part.
    ///
    /// # Errors
    /// If a lock is split in two, and memory is short.
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

    /// Releases all locks of the owner.
    pub fn forget(&self, owner: Owner) {
        let had = self.records.lock().remove(&owner);
        if had.is_some() {
            self.tell();
        }
    }

    /// Wakes the waiters, which then look again.
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

/// A wait, which is on the list if both owners are processes; removed when dropped.
struct Wait(Option<Waiting>);

impl Wait {
    /// # Errors
    /// If the other waits for the first, directly or indirectly, or memory is short.
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
    /// Returns true if `process` waits for `last`, directly or indirectly. As on Linux, a chain of
    /// more than ten is not followed: several threads of a process may wait, so chains may branch.
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
