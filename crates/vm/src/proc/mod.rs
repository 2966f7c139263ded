//! A space as Linux's `/proc/PID` shows it: `maps`, `smaps` and `pagemap`
//! (`Documentation/filesystems/proc.rst`, `admin-guide/mm/pagemap.rst`).
//!
//! Text is written from [`crate::Space::regions`] and [`crate::Space::scan`]. The names
//! of files come from the caller: [`Names`].

mod maps;
mod smaps;

pub use maps::write_maps;
pub use smaps::write_smaps;

use crate::object::ObjectId;
use crate::space::{PagePlace, Region};
use machine::VaRange;

/// The number of mappings that a reader of `smaps` sees together. Linux writes them to a page,
/// which has room for as many, and lets others change mappings before it writes the next.
pub const TOGETHER: usize = 5;

/// The name of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct File<'a> {
    /// Major and minor number of its device.
    pub device: (u32, u32),
    /// Its inode number on the device.
    pub inode: u64,
    /// The path by which it was opened.
    pub path: &'a str,
}

/// The names of regions.
pub struct Names<'a> {
    /// [`crate::Space::heap`].
    pub heap: VaRange,
    /// An address of the program's first stack.
    pub stack: usize,
    /// The name of an object's file, if it is known.
    pub file: &'a dyn Fn(ObjectId) -> Option<File<'a>>,
}

/// No name.
const NAMELESS: File<'static> = File {
    device: (0, 0),
    inode: 0,
    path: "",
};

impl Names<'_> {
    /// The name of `region`.
    fn of(&self, region: &Region) -> File<'_> {
        let special = |path| File { path, ..NAMELESS };
        let heap = &self.heap;
        match region.object {
            Some(object) => (self.file)(object.id).unwrap_or(if object.is_anonymous {
                special("/dev/zero (deleted)")
            } else {
                NAMELESS
            }),
            None if region.range.start < heap.end && heap.start < region.range.end => {
                special("[heap]")
            }
            None if (region.range.start..region.range.end).contains(&self.stack) => {
                special("[stack]")
            }
            None => NAMELESS,
        }
    }
}

const PRESENT: u64 = 1 << 63;
const SWAPPED: u64 = 1 << 62;
/// Set for a page of a file, or of shared memory.
const OBJECT: u64 = 1 << 61;
const EXCLUSIVE: u64 = 1 << 56;
/// The lowest bit of a slot's number, above the number of its swap space (here always 0).
const SLOT: u32 = 5;

/// The word that says where a page is, in Linux's format for a reader that may know frames: bit 63
/// is set for a page in memory, whose frame is in the bits from 0 up; 62 for one in the swap space,
/// whose slot is in the bits from 5 up; 61 for an object's page; 56 for one that is mapped nowhere
/// else. Bit 55 (soft-dirty) is never set.
pub fn pagemap_entry(place: PagePlace) -> u64 {
    let bit = |set, bit| if set { bit } else { 0 };
    match place {
        PagePlace::Nowhere => 0,
        PagePlace::Swapped(slot) => SWAPPED | u64::from(slot) << SLOT,
        PagePlace::Present {
            frame,
            of_object,
            is_exclusive,
        } => {
            let marks = bit(of_object, OBJECT) | bit(is_exclusive, EXCLUSIVE);
            PRESENT | marks | u64::from(frame.0)
        }
    }
}
