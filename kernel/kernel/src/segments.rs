//! Segments of shared memory with numbers and keys (System V).
//!
//! A segment is an object of the VM. The number of its attachments is counted from the spaces'
//! mappings, so forks, ends of processes and partial unmappings need no bookkeeping. A removed
//! segment goes with its last attachment: where attachments end, [`Segments::settle`] looks for it.

use crate::abi::Errno;
use crate::fs::now;
use crate::process::Process;
use crate::system::{ObjectRef, Space, system};
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use machine::PAGE_SIZE;
use vm::Region;

/// The most segments.
const MOST: usize = 4096;

/// A segment.
pub struct Segment {
    /// Its key; 0 for none.
    pub key: i32,
    /// Its memory.
    pub object: ObjectRef,
    /// Its size, as requested.
    pub bytes: usize,
    /// The permission bits.
    pub mode: u32,
    /// Its owner: user and group.
    pub owner: (u32, u32),
    /// The process that made it.
    pub maker: u32,
    /// The process that attached or detached it last; 0 for none.
    pub last: u32,
    /// When it was attached, detached and changed last, in seconds since 1970; 0 for never.
    pub times: [u64; 3],
    /// Whether it goes with its last attachment.
    pub is_removed: bool,
}

/// The segments, by number.
pub struct Segments {
    all: BTreeMap<i32, Segment>,
    next: i32,
}

impl Segments {
    /// No segments.
    pub fn new() -> Self {
        Segments {
            all: BTreeMap::new(),
            next: 0,
        }
    }

    /// The segment with a number.
    pub fn get(&mut self, number: i32) -> Result<&mut Segment, Errno> {
        self.all.get_mut(&number).ok_or(Errno::INVAL)
    }

    /// The number of the segment with a key.
    pub fn find(&self, key: i32) -> Option<i32> {
        let mut named = self.all.iter().filter(|(_, it)| key != 0 && it.key == key);
        named.next().map(|(number, _)| *number)
    }

    /// Makes a segment of zeroes; returns its number.
    pub fn make(&mut self, key: i32, bytes: usize, mode: u32, maker: u32) -> Result<i32, Errno> {
        if self.all.len() >= MOST || self.next == i32::MAX {
            return Err(Errno::NOSPC);
        }
        let whole = bytes.checked_next_multiple_of(PAGE_SIZE);
        let object = system()
            .vm
            .shared_memory(whole.ok_or(Errno::NOMEM)? as u64)?;
        let number = self.next;
        self.next += 1;
        let segment = Segment {
            key,
            object,
            bytes,
            mode,
            owner: (0, 0),
            maker,
            last: 0,
            times: [0, 0, seconds()],
            is_removed: false,
        };
        self.all.insert(number, segment);
        Ok(number)
    }

    /// The segment that a process has attached at `address`.
    pub fn attached(
        &mut self,
        space: &Space,
        address: usize,
    ) -> Option<(&mut Segment, alloc::vec::Vec<Region>)> {
        let mut regions = space.regions();
        let segment = self.all.values_mut().find(|segment| {
            let parts = |region: &Region| segment.is_at(region, address);
            regions.iter().any(parts)
        })?;
        regions.retain(|region| segment.is_at(region, address));
        Some((segment, regions))
    }

    /// Forgets the removed segments that have no attachment any more.
    pub fn settle(&mut self) {
        self.all
            .retain(|_, segment| !segment.is_removed || segment.attachments() > 0);
    }

    /// Whether there is a segment that goes with its last attachment.
    pub fn has_removed(&self) -> bool {
        self.all.values().any(|segment| segment.is_removed)
    }
}

impl Segment {
    /// How often processes map it.
    pub fn attachments(&self) -> usize {
        let count = |process: Arc<Process>| {
            let regions = process.space().map(|space| space.regions());
            let regions = regions.unwrap_or_default();
            regions.iter().filter(|region| self.is_in(region)).count()
        };
        system().processes.all().into_iter().map(count).sum()
    }

    fn is_in(&self, region: &Region) -> bool {
        let id = self.object.id();
        region.object.is_some_and(|object| object.id == id)
    }

    /// Whether the region is a part of this segment, attached at `address`.
    fn is_at(&self, region: &Region, address: usize) -> bool {
        let offset = region.object.map_or(0, |object| object.offset as usize);
        self.is_in(region) && region.range.start.checked_sub(offset) == Some(address)
    }
}

/// A process has given memory up, perhaps the last attachment of a segment.
pub fn settle() {
    let mut segments = system().segments.lock();
    if segments.has_removed() {
        segments.settle();
    }
}

/// Seconds since 1970.
pub fn seconds() -> u64 {
    const SECOND: u64 = 1_000_000_000;
    now() / SECOND
}
