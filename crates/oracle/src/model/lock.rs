//! `mlock` and its relatives.

use super::Model;
use super::answer::{Answer, fails};
use super::page::Lock;
use super::process::{pages, whole};
use crate::address::{PAGE, Range};
use crate::flags::Flags;
use crate::outcome::Outcome;
use crate::step::{LockFlag, ProcessId};
use std::collections::BTreeMap;
use std::ops;

impl Model {
    /// Marks pages up to the first hole; without a hole, also brings in as many as possible.
    pub(super) fn lock(&mut self, id: ProcessId, range: Range, lock: Lock) -> Answer {
        let Some(pages) = self.mark(id, range, lock)? else {
            return Ok(Outcome::Done);
        };
        if self.populate(id, pages.clone()).is_ok() {
            return Ok(Outcome::Done);
        }
        // The pages are locked, and come in when they are accessed.
        pages.for_each(|number| self.may_come(id, number));
        Ok(Outcome::Errno(libc::ENOMEM))
    }

    pub(super) fn unlock(&mut self, id: ProcessId, range: Range) -> Answer {
        self.mark(id, range, Lock::No)?;
        Ok(Outcome::Done)
    }

    pub(super) fn lock_all(&mut self, id: ProcessId, flags: Flags<LockFlag>) -> Answer {
        let now = flags.has(LockFlag::Current);
        let future = flags.has(LockFlag::Future);
        if !now && !future {
            return fails(libc::EINVAL);
        }
        let lock = if flags.has(LockFlag::OnFault) {
            Lock::OnFault
        } else {
            Lock::Yes
        };
        self.process(id).future = if future { lock } else { Lock::No };
        if now {
            self.mark_all(id, lock);
            self.try_to_populate(id, 0..u64::MAX);
        }
        Ok(Outcome::Done)
    }

    pub(super) fn unlock_all(&mut self, id: ProcessId) -> Answer {
        self.process(id).future = Lock::No;
        self.mark_all(id, Lock::No);
        Ok(Outcome::Done)
    }

    /// Marks the pages that a range touches, up to the first hole. `None` if there are none.
    fn mark(&mut self, id: ProcessId, range: Range, lock: Lock) -> Answer<Option<ops::Range<u64>>> {
        let start = self.process(id).start(range)?;
        // The kernel rounds the start down, and the length up including that difference.
        let first = start & !(PAGE - 1);
        let bytes = whole(range.bytes.wrapping_add(start - first));
        let Some(end) = first.checked_add(bytes) else {
            return fails(libc::EINVAL);
        };
        if end == first {
            return Ok(None);
        }
        let mut renamed = BTreeMap::new();
        for number in pages(first, bytes) {
            if !self.process(id).pages.contains_key(&number) {
                return fails(libc::ENOMEM);
            }
            self.alter(id, number, &mut renamed, |it| it.lock = lock);
        }
        Ok(Some(pages(first, bytes)))
    }

    fn mark_all(&mut self, id: ProcessId, lock: Lock) {
        let mut renamed = BTreeMap::new();
        let all: Vec<u64> = self.process(id).pages.keys().copied().collect();
        for number in all {
            self.alter(id, number, &mut renamed, |it| it.lock = lock);
        }
    }
}
