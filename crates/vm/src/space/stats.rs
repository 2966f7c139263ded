//! How much there is of what.

use super::Space;
use crate::object::Attached;
use crate::pmap::Seen;
use crate::policy::{MapLocking, Policies};
use crate::tree::{Kind, Mapped, Part, Size, Usage};
use machine::Platform;

/// What a space has, in pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Stats {
    /// What limits count; `charged` is what the space commits (an object that it maps
    /// commits for itself).
    pub usage: Usage,
    /// In memory: private pages, copies of a file's included.
    pub private: u64,
    /// In memory: pages of files.
    pub file: u64,
    /// In memory: pages of shared memory without a file.
    pub shared: u64,
    /// Private pages in the swap space.
    pub swapped: u64,
    /// Of the private pages in memory, those mapped by superpages.
    pub in_superpages: u64,
}

impl Stats {
    /// Pages in memory (`VmRSS`).
    pub fn resident(&self) -> u64 {
        self.private + self.file + self.shared
    }
}

impl<M: Platform, P: Policies<M>> Space<M, P> {
    /// What the space has, at one instant. Locks the whole space: O(slots + regions), and the
    /// pages of a slot where both files and shared memory are mapped.
    pub fn stats(&self) -> Stats {
        let _read = self.pmap.locking.read();
        let mut locked = self.pmap.tree.lock_all();
        let mut stats = Stats::default();
        for part in locked.parts() {
            stats.usage += part.usage();
            let count = |kind| part.slot().count(kind) as u64;
            stats.private += count(Kind::Private);
            stats.swapped += count(Kind::Swapped);
            if part.size() == Size::Superpage {
                stats.in_superpages += count(Kind::Private);
            }
            if count(Kind::Object) != 0 {
                let shared = self.shared_pages(&part);
                stats.shared += shared;
                stats.file += count(Kind::Object) - shared;
            }
        }
        stats
    }

    /// Pages of objects without a file that are mapped in a slot.
    fn shared_pages(&self, part: &Part<'_, M, P>) -> u64 {
        let (mut files, mut shared) = (false, false);
        part.for_each(|mapped| {
            let is_shared = is_shared(&mapped);
            files |= is_shared == Some(false);
            shared |= is_shared == Some(true);
        });
        if !(files && shared) {
            let all = part.slot().count(Kind::Object) as u64;
            return if shared { all } else { 0 };
        }
        let mut pages = 0;
        part.for_each(|mapped| {
            if is_shared(&mapped) == Some(true) {
                let seen = self.pmap.inspect(part.again(mapped.range));
                let of_object =
                    |seen| matches!(seen, Seen::Page(page) if page.kind == Kind::Object);
                pages += seen.filter(|(_, seen)| of_object(*seen)).count() as u64;
            }
        });
        pages
    }
}

/// Whether what is mapped is an object without a file, or one with; or none.
fn is_shared<M: Platform, P: Policies<M>>(mapped: &Mapped<'_, M, P>) -> Option<bool> {
    let is_anonymous = |to: &Attached<M, P>| to.object().is_anonymous();
    mapped.attachment.map(is_anonymous)
}
