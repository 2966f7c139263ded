//! Segments of shared memory with numbers and keys (System V).
//!
//! A segment is an object of the VM. The number of its attachments is counted from the spaces'
//! mappings, so forks, ends of processes and partial unmappings need no bookkeeping. A removed
//! segment is dropped with its last attachment, by [`settle`], which is called where attachments
//! end.

use crate::errno::Errno;
use crate::numbered::{Keyed, Numbered, Rights, seconds};
use crate::process::{PROCESSES, Process};
use crate::single::Single;
use crate::system::{Lock, ObjectRef, Space, system};
use alloc::sync::Arc;
use alloc::vec::Vec;
use machine::PAGE_SIZE;
use vm::Region;

/// The segments.
pub static SEGMENTS: Single<Lock<Segments>> = Single::new();

/// The most segments.
pub const MOST: usize = 4096;

/// A segment.
pub struct Segment {
    /// The key by which it is found; 0 for none.
    pub key: i32,
    /// Its memory.
    pub object: ObjectRef,
    /// Its size, as requested.
    pub bytes: usize,
    /// Who may use the segment.
    pub rights: Rights,
    /// The process that made it.
    pub maker: u32,
    /// The process that last attached or detached it; 0 for none.
    pub last: u32,
    /// When it was last attached, detached and changed, in seconds since 1970; 0 for never.
    pub times: [u64; 3],
    /// True if it is dropped with its last attachment.
    pub is_removed: bool,
}

/// The segments.
pub type Segments = Numbered<Segment>;

impl Keyed for Segment {
    fn key(&self) -> i32 {
        self.key
    }
}

impl Segments {
    /// The segment that a process has attached at `address`, and its parts there; an error if there
    /// is none, or no memory to look for it.
    pub fn attached(
        &mut self,
        space: &Space,
        address: usize,
    ) -> Result<(&mut Segment, Vec<Region>), Errno> {
        let mut regions = space.regions()?;
        let segment = self.all().find(|segment| {
            let parts = |region: &Region| segment.is_at(region, address);
            regions.iter().any(parts)
        });
        let segment = segment.ok_or(Errno::INVAL)?;
        regions.retain(|region| segment.is_at(region, address));
        Ok((segment, regions))
    }

    /// Drops the removed segments that have no attachment any more.
    pub fn settle(&mut self) {
        self.retain(|segment| !segment.is_removed || segment.attachments() > 0);
    }
}

impl Segment {
    /// A segment of zeroes.
    pub fn new(key: i32, bytes: usize, mode: u32, maker: u32) -> Result<Self, Errno> {
        let whole = bytes.checked_next_multiple_of(PAGE_SIZE);
        let object = system()
            .vm
            .shared_memory(whole.ok_or(Errno::NOMEM)? as u64)?;
        Ok(Segment {
            key,
            object,
            bytes,
            rights: Rights::new(mode),
            maker,
            last: 0,
            times: [0, 0, seconds()],
            is_removed: false,
        })
    }

    /// The number of attachments in all processes. A process that there is no memory to look at
    /// counts as one, so that no segment goes too early.
    pub fn attachments(&self) -> usize {
        let count = |process: Arc<Process>| {
            let count =
                |regions: Vec<Region>| regions.iter().filter(|region| self.is_in(region)).count();
            let regions = process.space().map(|space| space.regions());
            regions.map_or(0, |regions| regions.map_or(1, count))
        };
        PROCESSES.all().map(count).sum()
    }

    fn is_in(&self, region: &Region) -> bool {
        let id = self.object.id();
        region.object.is_some_and(|object| object.id == id)
    }

    /// Returns true if the region is a part of this segment, attached at `address`.
    fn is_at(&self, region: &Region, address: usize) -> bool {
        let offset = region.object.map_or(0, |object| object.offset as usize);
        self.is_in(region) && region.range.start.checked_sub(offset) == Some(address)
    }
}

/// Called when a process has freed memory, perhaps the last attachment of a segment.
pub fn settle() {
    let mut segments = SEGMENTS.lock();
    if segments.all().any(|segment| segment.is_removed) {
        segments.settle();
    }
}
