//! Pages come into memory: by an access, or because a call asks for it.

use super::page::{Lock, Own, zero};
use super::{Model, alive};
use crate::outcome::Core;
use crate::step::{FILES, ProcessId, Prot};
use std::ops::Range;

/// The page lies beyond the end of its object, or permits no access.
pub struct Refused;

impl Model {
    /// Brings in a page that is mapped and permits the access.
    pub(super) fn bring_in(
        &mut self,
        id: ProcessId,
        number: u64,
        write: bool,
    ) -> Result<(), Refused> {
        let process = alive(&mut self.processes, id);
        let page = process.pages.get_mut(&number).expect("it is mapped");
        let object = page.attributes.object;
        let object = object.map(|index| (index, &mut self.objects[index]));
        if let Some((_, object)) = &object
            && page.offset >= object.pages()
        {
            return Err(Refused);
        }
        page.core = Core::In;
        if page.attributes.shared {
            if let Some((index, object)) = object
                && index >= usize::from(FILES)
            {
                object.core.insert(page.offset, Core::In);
            }
        } else if write && page.own.is_none() {
            let content = object.map_or_else(zero, |(_, object)| object.page(page.offset));
            page.own = Some(Own::new(content));
        }
        Ok(())
    }

    /// Records that a page outside memory may come in.
    pub(super) fn may_come(&mut self, id: ProcessId, number: u64) {
        let process = alive(&mut self.processes, id);
        let page = process.pages.get_mut(&number).expect("it is mapped");
        if page.core == Core::Out {
            page.core = Core::Maybe;
        }
        if let Some(index) = page.attributes.object.filter(|_| page.attributes.shared) {
            let object = &mut self.objects[index];
            if page.offset < object.pages() {
                object.core.entry(page.offset).or_insert(Core::Maybe);
            }
        }
    }

    /// Brings in all of `pages` that may come in, up to the first that cannot, which is an error.
    /// Skips holes, and pages locked on fault.
    pub(super) fn populate(&mut self, id: ProcessId, pages: Range<u64>) -> Result<(), Refused> {
        let process = self.process(id);
        let wanted: Vec<_> = process.pages.range(pages).map(|(&page, _)| page).collect();
        let mut wanted = wanted.into_iter();
        wanted.try_for_each(|page| self.populate_one(id, page))
    }

    /// Brings in as many of `pages` as possible, and continues after pages that cannot come in.
    pub(super) fn try_to_populate(&mut self, id: ProcessId, pages: Range<u64>) {
        let process = self.process(id);
        let wanted: Vec<_> = process.pages.range(pages).map(|(&page, _)| page).collect();
        for page in wanted {
            let _ = self.populate_one(id, page);
        }
    }

    /// Brings in a page. Writable private memory becomes the process's own.
    fn populate_one(&mut self, id: ProcessId, number: u64) -> Result<(), Refused> {
        let attributes = self.process(id).pages[&number].attributes;
        if attributes.lock == Lock::OnFault {
            return Ok(());
        }
        if attributes.prot == Prot::NONE {
            return Err(Refused);
        }
        let write = attributes.prot.write && !attributes.shared;
        self.bring_in(id, number, write)
    }
}
