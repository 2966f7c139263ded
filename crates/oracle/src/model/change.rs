//! `munmap` and `mprotect`.

use super::Model;
use super::answer::{Answer, fails, undefined};
use super::page::{Lock, Page};
use super::process::{aligned, pages, whole};
use crate::address::{Range, USER_END};
use crate::outcome::Outcome;
use crate::step::{ProcessId, Prot};
use crate::system::Halfway;
use std::collections::BTreeMap;
use std::ops;

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

    /// Changes rights up to the first hole, or the first page that may not get them; the pages
    /// before that stay changed.
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
        self.one_error(id, pages(start, bytes), |page| {
            prot.write && !page.attributes.may_write
        })?;
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
            // Locked memory that becomes writable gets private pages at once.
            let becomes_writable = prot.write && !before.prot.write;
            if becomes_writable && before.lock == Lock::Yes {
                if before.shared {
                    self.may_come(id, number)
                } else {
                    drop(self.bring_in(id, number, true))
                }
            }
        }
        Ok(Outcome::Done)
    }

    /// Fails if there are both a hole and a `refused` page: only on Linux is it defined which error
    /// comes first.
    pub(super) fn one_error(
        &mut self,
        id: ProcessId,
        range: ops::Range<u64>,
        refused: impl Fn(&Page) -> bool,
    ) -> Answer<()> {
        let kept = self.halfway == Some(Halfway::Kept);
        let mapped = self.process(id).pages.range(range.clone());
        let (mut pages, mut is_refused) = (0, false);
        for (_, page) in mapped {
            pages += 1;
            is_refused |= refused(page);
        }
        if !kept && is_refused && pages < range.end - range.start {
            undefined("which of two errors comes first")
        } else {
            Ok(())
        }
    }
}
