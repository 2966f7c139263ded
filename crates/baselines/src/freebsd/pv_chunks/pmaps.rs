//! All pmaps, in the order in which they lose their chunks.

use super::PvChunkList;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use machine::{Asid, Atomic, Machine, Ordering};
use sync::adaptive::FreebsdMutex;
use sync::watch::Watched;
use sync::{Mutex, Padded};

/// The number of tags.
const TAGS: usize = 1 << 16;

/// The list of pmaps, by their tags.
///
/// A tag is entered once, when a pmap first has it, as the constructor of FreeBSD's zone enters a
/// `vmspace`. It stays when the pmap is destroyed, so the next pmap with the tag is in the list
/// already.
pub struct Pmaps<M: Machine> {
    list: Padded<List<M>>,
    /// 1 for each tag that is entered. Written by the tag's owner.
    entered: Box<[M::AtomicU8]>,
}

type List<M> = Mutex<M, Watched<M, FreebsdMutex<M>, PvChunkList>, VecDeque<Asid>>;

impl<M: Machine> Pmaps<M> {
    pub(super) fn new() -> Self {
        Pmaps {
            list: Padded(Mutex::new(VecDeque::with_capacity(TAGS))),
            entered: (0..TAGS).map(|_| M::AtomicU8::new(0)).collect(),
        }
    }

    pub(super) fn label(&self) {
        M::label_value(&self.list, "pmap list");
        M::label_value(&*self.entered, "pmap list");
    }

    /// Enters a tag, which the caller owns, unless it is entered already.
    pub(super) fn enter(&self, tag: Asid) {
        let entered = &self.entered[usize::from(tag.0)];
        // Relaxed: the tag's earlier owner happens before the caller (`Asids::take`).
        if entered.load(Ordering::Relaxed) == 0 {
            entered.store(1, Ordering::Relaxed);
            // Never exceeds its capacity: each tag is entered once.
            self.list.lock().push_back(tag);
        }
    }

    /// Returns the first pmap of the list and makes it the last.
    pub(super) fn rotate(&self) -> Option<Asid> {
        let mut list = self.list.lock();
        let tag = list.pop_front()?;
        list.push_back(tag);
        Some(tag)
    }
}
