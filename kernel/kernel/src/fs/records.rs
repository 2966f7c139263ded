//! Locks on parts of files (`fcntl` with `F_SETLK` and the like): of a process, or of an open file.

use crate::abi::Errno;
use crate::process::is_disturbed;
use crate::system::{Lock, system};
use alloc::vec::Vec;
use core::ptr;
use core::sync::atomic::{AtomicU32, Ordering};
use ipc::Kernel;

/// The owner of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// Whether it excludes others' locks there.
    pub is_alone: bool,
}

/// The locks of an inode.
pub struct Records {
    records: Lock<Vec<Record>>,
    /// How often one was given back, wrapping; waiters sleep at its address.
    given_back: AtomicU32,
}

impl Records {
    /// No locks.
    pub fn new() -> Self {
        Records {
            records: Lock::new(Vec::new()),
            given_back: AtomicU32::new(0),
        }
    }

    /// Another owner's lock that `wanted` meets.
    pub fn obstacle(&self, wanted: &Record) -> Option<Record> {
        let records = self.records.lock();
        records.iter().find(|it| it.excludes(wanted)).copied()
    }

    /// Adds a lock in the place of its owner's old ones there; waits until others allow it, if
    /// `waits`.
    pub fn take(&self, wanted: Record, waits: bool) -> Result<(), Errno> {
        loop {
            // Acquire: pairs with the release in `give_back`.
            let seen = self.given_back.load(Ordering::Acquire);
            {
                let mut records = self.records.lock();
                if !records.iter().any(|it| it.excludes(&wanted)) {
                    remove(&mut records, &wanted);
                    records.push(wanted);
                    return Ok(());
                }
            }
            if !waits {
                return Err(Errno::AGAIN);
            }
            if is_disturbed() {
                return Err(Errno::INTR);
            }
            let unchanged = || self.given_back.load(Ordering::Acquire) == seen;
            system().kernel.sleep(self.key(), unchanged);
        }
    }

    /// Takes away the owner's locks in the part.
    pub fn give_back(&self, part: Record) {
        let had = {
            let mut records = self.records.lock();
            let had = records.iter().any(|it| it.owner == part.owner);
            remove(&mut records, &part);
            had
        };
        if had {
            // Release: pairs with the acquire in `take`.
            self.given_back.fetch_add(1, Ordering::Release);
            system().kernel.wake(self.key(), usize::MAX);
        }
    }

    /// Takes away all that the owner has.
    pub fn forget(&self, owner: Owner) {
        self.give_back(Record {
            owner,
            start: 0,
            end: u64::MAX,
            is_alone: true,
        });
    }

    fn key(&self) -> *const () {
        ptr::from_ref(&self.given_back).cast()
    }
}

impl Record {
    fn meets(&self, other: &Record) -> bool {
        self.start < other.end && other.start < self.end
    }

    fn excludes(&self, other: &Record) -> bool {
        self.owner != other.owner && self.meets(other) && (self.is_alone || other.is_alone)
    }
}

/// Cuts a part out of its owner's locks.
fn remove(records: &mut Vec<Record>, part: &Record) {
    let mut rest = Vec::new();
    records.retain(|record| {
        let is_hit = record.owner == part.owner && record.meets(part);
        if is_hit {
            let (start, end) = (part.start.max(record.start), part.end.min(record.end));
            rest.push(Record {
                end: start,
                ..*record
            });
            rest.push(Record {
                start: end,
                ..*record
            });
        }
        !is_hit
    });
    records.extend(rest.into_iter().filter(|it| it.start < it.end));
}
