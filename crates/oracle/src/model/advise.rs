//! `madvise`.

use super::Model;
use super::answer::{Answer, Stop, fails, undefined};
use super::page::Attributes;
use super::process::{aligned, pages, whole};
use crate::address::Range;
use crate::outcome::{Core, Outcome};
use crate::step::{Advice, ProcessId};
use std::collections::BTreeMap;

impl Model {
    /// Works on all that is mapped in the range; says at the end that there were holes. A page
    /// that it can not work on ends it.
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
            return undefined("it reaches what is not the sequence's");
        }
        let mut holes = false;
        let mut renamed = BTreeMap::new();
        for number in pages(start, bytes) {
            let mapped = self.process(id).pages.contains_key(&number);
            match advice {
                Advice::PopulateRead | Advice::PopulateWrite if !mapped => {
                    return fails(libc::ENOMEM);
                }
                _ if mapped => self.advise_page(id, number, advice, &mut renamed)?,
                _ => holes = true,
            }
        }
        match holes {
            true => fails(libc::ENOMEM),
            false => Ok(Outcome::Done),
        }
    }

    fn advise_page(
        &mut self,
        id: ProcessId,
        number: u64,
        advice: Advice,
        renamed: &mut BTreeMap<u64, u64>,
    ) -> Answer<()> {
        let page = &self.process(id).pages[&number];
        let (attributes, offset) = (page.attributes, page.offset);
        let locked = page.is_locked();
        match advice {
            Advice::WillNeed => {}
            Advice::DontNeed | Advice::Free | Advice::Cold | Advice::PageOut | Advice::Remove
                if locked =>
            {
                return fails(libc::EINVAL);
            }
            Advice::Cold => {}
            Advice::DontNeed => self.page(id, number).forget(),
            Advice::Free if attributes.object.is_some() => return fails(libc::EINVAL),
            Advice::Free => self.free(id, number),
            Advice::PageOut => self.page_out(id, number),
            Advice::Remove => match attributes {
                Attributes { object: None, .. } => return fails(libc::EINVAL),
                _ if !attributes.shared || !attributes.may_write => return fails(libc::EACCES),
                _ => self.punch(attributes.object, offset),
            },
            Advice::PopulateRead | Advice::PopulateWrite => {
                let write = advice == Advice::PopulateWrite;
                let allowed = match write {
                    true => attributes.prot.write,
                    false => attributes.prot.read,
                };
                if !allowed {
                    return fails(libc::EINVAL);
                }
                let refused = |_| Stop::With(Outcome::Errno(libc::EFAULT));
                self.bring_in(id, number, write).map_err(refused)?;
            }
            Advice::WipeOnFork if attributes.object.is_some() => return fails(libc::EINVAL),
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

    fn page_out(&mut self, id: ProcessId, number: u64) {
        let page = self.page(id, number);
        page.core = maybe(page.core);
        let (object, offset) = (page.attributes.object, page.offset);
        if let Some(core) = object.and_then(|index| self.objects[index].core.get_mut(&offset)) {
            *core = maybe(*core);
        }
    }

    /// A page of a file or of shared memory becomes zero for all who map it.
    fn punch(&mut self, object: Option<usize>, offset: u64) {
        let Some(index) = object else { return };
        self.objects[index].punch(offset);
        for process in self.processes.values_mut() {
            for page in process.pages.values_mut() {
                let maps = page.attributes.object == object && page.offset == offset;
                if maps && page.own.is_none() {
                    page.core = Core::Out;
                }
            }
        }
    }
}

fn maybe(core: Core) -> Core {
    match core {
        Core::Out => Core::Out,
        Core::In | Core::Maybe => Core::Maybe,
    }
}

/// Advice that is kept for later.
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
