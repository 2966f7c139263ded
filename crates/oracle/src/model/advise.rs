//! `madvise`.

use super::Model;
use super::answer::{Answer, fails, undefined};
use super::map::LONGEST;
use super::page::{Attributes, Page};
use super::process::{aligned, pages, whole};
use crate::address::{PAGE, Range};
use crate::outcome::{Core, Outcome};
use crate::step::{Advice, ProcessId};
use std::collections::BTreeMap;
use std::ops;
use std::rc::Rc;

impl Model {
    /// Applies the advice to everything mapped in the range, and reports holes at the end. The
    /// first page that refuses it ends the call.
    pub(super) fn advise(&mut self, id: ProcessId, range: Range, advice: Advice) -> Answer {
        let start = self.process(id).start(range)?;
        if !aligned(start) {
            return fails(libc::EINVAL);
        }
        let bytes = whole(range.bytes);
        let Some(end) = start
            .checked_add(bytes)
            .filter(|_| bytes > 0 || range.bytes == 0)
        else {
            return fails(libc::EINVAL);
        };
        if bytes >= 1 << 40 && end > start {
            return undefined("it reaches memory outside the sequence");
        }
        if let Advice::PopulateRead | Advice::PopulateWrite = advice {
            return self.bring_all(id, pages(start, bytes), advice == Advice::PopulateWrite);
        }
        self.one_error(id, pages(start, bytes), |page| {
            refuses(page, advice).is_some()
        })?;
        let mut renamed = BTreeMap::new();
        let (mapped, holes) = self.process(id).mapped(pages(start, bytes));
        for number in mapped {
            self.advise_page(id, number, advice, &mut renamed)?;
        }
        if holes {
            fails(libc::ENOMEM)
        } else {
            Ok(Outcome::Done)
        }
    }

    /// Brings in pages up to the first that is unavailable.
    fn bring_all(&mut self, id: ProcessId, pages: ops::Range<u64>, write: bool) -> Answer {
        for number in pages {
            let Some(page) = self.process(id).pages.get(&number) else {
                return Ok(Outcome::Errno(libc::ENOMEM));
            };
            let prot = page.attributes.prot;
            if !(if write { prot.write } else { prot.read }) {
                return Ok(Outcome::Errno(libc::EINVAL));
            }
            if self.bring_in(id, number, write).is_err() {
                return Ok(Outcome::Errno(libc::EFAULT));
            }
        }
        Ok(Outcome::Done)
    }

    fn advise_page(
        &mut self,
        id: ProcessId,
        number: u64,
        advice: Advice,
        renamed: &mut BTreeMap<u64, u64>,
    ) -> Answer<()> {
        let page = &self.process(id).pages[&number];
        let (object, offset) = (page.attributes.object, page.offset);
        if let Some(errno) = refuses(page, advice) {
            return fails(errno);
        }
        match advice {
            Advice::Cold => {}
            Advice::WillNeed if object.is_some() => self.may_come(id, number),
            Advice::WillNeed => {}
            Advice::DontNeed => self.page(id, number).forget(),
            Advice::Free => self.free(id, number),
            Advice::PageOut => self.page_out(id, number),
            Advice::Remove => self.punch(object, offset),
            _ => self.alter(id, number, renamed, |it| keep(it, advice)),
        }
        Ok(())
    }

    fn free(&mut self, id: ProcessId, number: u64) {
        let page = self.page(id, number);
        page.core = maybe(page.core);
        if let Some(own) = &mut page.own {
            own.or_zero();
        }
    }

    /// Records that the page may leave the memory of all processes that have it, including
    /// relatives that share it until one of them writes it.
    fn page_out(&mut self, id: ProcessId, number: u64) {
        let page = self.page(id, number);
        page.core = maybe(page.core);
        let (object, offset, own) = (page.attributes.object, page.offset, page.own.clone());
        let shares = |page: &Page| match (&page.own, &own) {
            (Some(theirs), Some(own)) => theirs.shares(own),
            // Zeroes may belong to any process.
            (None, None) => page.attributes.object == object,
            _ => false,
        };
        let pages = self.processes.values_mut().map(Rc::make_mut);
        let pages = pages.flat_map(|process| process.pages.values_mut());
        for page in pages.filter(|page| shares(page)) {
            page.core = maybe(page.core);
        }
        if let Some(core) = object.and_then(|index| self.objects[index].core.get_mut(&offset)) {
            *core = maybe(*core);
        }
    }

    /// Makes a page of a file or of shared memory zero for all that map it.
    fn punch(&mut self, object: Option<usize>, offset: u64) {
        let Some(index) = object else { return };
        self.objects[index].punch(offset);
        for process in self.processes.values_mut().map(Rc::make_mut) {
            for page in process.pages.values_mut() {
                let maps = page.attributes.object == object && page.offset == offset;
                if maps && page.own.is_none() {
                    page.core = Core::Out;
                }
            }
        }
    }
}

/// The error for advice that the page refuses.
fn refuses(page: &Page, advice: Advice) -> Option<i32> {
    let Attributes {
        object,
        shared,
        may_write,
        ..
    } = page.attributes;
    match advice {
        Advice::DontNeed | Advice::Free | Advice::Cold | Advice::PageOut | Advice::Remove
            if page.is_locked() =>
        {
            Some(libc::EINVAL)
        }
        Advice::Free | Advice::WipeOnFork if object.is_some() => Some(libc::EINVAL),
        Advice::Remove if object.is_none() => Some(libc::EINVAL),
        Advice::Remove if !shared || !may_write => Some(libc::EACCES),
        Advice::Remove if page.offset >= LONGEST / PAGE => Some(libc::EFBIG),
        _ => None,
    }
}

fn maybe(core: Core) -> Core {
    match core {
        Core::Out => Core::Out,
        Core::In | Core::Maybe => Core::Maybe,
    }
}

/// Records advice for later.
fn keep(attributes: &mut Attributes, advice: Advice) {
    match advice {
        Advice::Normal | Advice::Random | Advice::Sequential => attributes.order = advice,
        Advice::HugePage | Advice::NoHugePage => attributes.size = advice,
        Advice::DontFork => attributes.dont_fork = true,
        Advice::DoFork => attributes.dont_fork = false,
        Advice::WipeOnFork => attributes.wipe_on_fork = true,
        Advice::KeepOnFork => attributes.wipe_on_fork = false,
        _ => {}
    }
}
