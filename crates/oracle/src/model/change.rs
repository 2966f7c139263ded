//! `munmap` and `mprotect`.

use super::Model;
use super::answer::{Answer, fails};
use super::page::Lock;
use super::process::{aligned, pages, whole};
use crate::address::{Range, USER_END};
use crate::outcome::Outcome;
use crate::step::{ProcessId, Prot};
use std::collections::BTreeMap;

impl Model {
    pub(super) fn unmap(&mut self, id: ProcessId, range: Range) -> Answer {
        let process = self.process(id);
        let start = process.start(range)?;
        let bytes = whole(range.bytes);
        let too_long = start > USER_END || range.bytes > USER_END - start;
        if !aligned(start) || too_long || bytes == 0 {
            return fails(libc::EINVAL);
        }
        process.remove(pages(start, bytes));
        Ok(Outcome::Done)
    }

    /// Stops at the first hole, and at the first page that may not have the rights; what lies
    /// before has changed then.
    pub(super) fn protect(&mut self, id: ProcessId, range: Range, prot: Prot) -> Answer {
        let start = self.process(id).start(range)?;
        if !aligned(start) {
            return fails(libc::EINVAL);
        }
        if range.bytes == 0 {
            return Ok(Outcome::Done);
        }
        let bytes = whole(range.bytes);
        if start.checked_add(bytes).is_none_or(|end| end <= start) {
            return fails(libc::ENOMEM);
        }
        let mut renamed = BTreeMap::new();
        for number in pages(start, bytes) {
            let Some(page) = self.process(id).pages.get(&number) else {
                return fails(libc::ENOMEM);
            };
            let before = page.attributes;
            if prot.write && !before.may_write {
                return fails(libc::EACCES);
            }
            self.alter(id, number, &mut renamed, |it| it.prot = prot);
            // Locked memory that becomes writable is made the process's own at once.
            let becomes_writable = prot.write && !before.prot.write;
            if becomes_writable && before.lock == Lock::Yes && !before.shared {
                let _ = self.bring_in(id, number, true);
            }
        }
        Ok(Outcome::Done)
    }
}
