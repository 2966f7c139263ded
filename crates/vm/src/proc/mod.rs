//! A space in the words of Linux's `/proc/PID`: `maps`, `smaps` and `pagemap`
//! (`Documentation/filesystems/proc.rst`, `admin-guide/mm/pagemap.rst`).
//!
//! Text is written from what [`crate::Space::regions`] and [`crate::Space::footprints`] tell. How
//! files are called, only who has opened them knows: [`Names`].

mod maps;
mod pagemap;
mod smaps;

pub use maps::write_maps;
pub use pagemap::pagemap_entry;
pub use smaps::write_smaps;

use crate::object::ObjectId;
use crate::space::Region;
use crate::tree::Flags;
use machine::VaRange;

/// What a file is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct File<'a> {
    /// Major and minor number of its device.
    pub device: (u32, u32),
    /// Its number there.
    pub inode: u64,
    /// Where it was opened.
    pub path: &'a str,
}

/// How what is mapped is called.
pub struct Names<'a> {
    /// [`crate::Space::heap`].
    pub heap: VaRange,
    /// What an object is called, if it is known.
    pub file: &'a dyn Fn(ObjectId) -> Option<File<'a>>,
}

/// What has no name.
const NAMELESS: File<'static> = File {
    device: (0, 0),
    inode: 0,
    path: "",
};

impl Names<'_> {
    /// What `region` is called.
    fn of(&self, region: &Region) -> File<'_> {
        let special = |path| File { path, ..NAMELESS };
        let heap = &self.heap;
        match region.object {
            Some(object) => (self.file)(object.id).unwrap_or(match object.is_anonymous {
                true => special("/dev/zero (deleted)"),
                false => NAMELESS,
            }),
            None if region.range.start < heap.end && heap.start < region.range.end => {
                special("[heap]")
            }
            None if region.flags.has(Flags::GROWS_DOWN) => special("[stack]"),
            None => NAMELESS,
        }
    }
}
