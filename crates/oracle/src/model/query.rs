//! Queries of a process about its memory, and `msync`, which does not change the model either.

use super::Model;
use super::answer::{Answer, fails, undefined};
use super::page::Page;
use super::process::{Process, aligned, pages, place, whole};
use crate::address::{PAGE, Range, USER_END};
use crate::flags::Flags;
use crate::outcome::{Core, Outcome, Region};
use crate::step::{Advice, FILES, ProcessId, SyncFlag};

impl Model {
    pub(super) fn in_core(&mut self, id: ProcessId, range: Range) -> Answer {
        let process = self.process(id);
        let start = process.start(range)?;
        if !aligned(start) {
            return fails(libc::EINVAL);
        }
        if start
            .checked_add(range.bytes)
            .is_none_or(|end| end > USER_END)
        {
            return fails(libc::ENOMEM);
        }
        let process = &self.processes[&id];
        let mut cores = Vec::new();
        for number in pages(start, range.bytes) {
            match process.pages.get(&number) {
                Some(page) => cores.push(self.core(page)),
                None => return fails(libc::ENOMEM),
            }
        }
        Ok(Outcome::Core(cores))
    }

    /// What is known of a page's presence in memory.
    fn core(&self, page: &Page) -> Core {
        let huge = page.attributes.size == Advice::HugePage;
        let core = match page.attributes.object {
            None => page.core,
            Some(_) if page.own.is_some() => page.core,
            Some(index) if index >= usize::from(FILES) => {
                let core = self.objects[index].core.get(&page.offset);
                core.copied().unwrap_or(Core::Out)
            }
            Some(_) if page.is_locked() && page.core == Core::In => Core::In,
            Some(_) => Core::Maybe,
        };
        match core {
            // A huge page brings in its neighbours.
            Core::Out if huge => Core::Maybe,
            core => core,
        }
    }
}

impl Process {
    /// `msync`: stops at locked memory that is to be invalidated, and continues after holes.
    pub(super) fn sync(&self, range: Range, flags: Flags<SyncFlag>) -> Answer {
        let start = self.start(range)?;
        let both = flags.has(SyncFlag::Async) && flags.has(SyncFlag::Sync);
        if !aligned(start) || both {
            return fails(libc::EINVAL);
        }
        let bytes = whole(range.bytes);
        let Some(end) = start.checked_add(bytes) else {
            return fails(libc::ENOMEM);
        };
        if bytes >= 1 << 40 && end > start {
            return undefined("it reaches memory outside the sequence");
        }
        let (mapped, holes) = self.mapped(pages(start, bytes));
        let is_locked = |number| self.pages[number].is_locked();
        if flags.has(SyncFlag::Invalidate) && mapped.iter().any(is_locked) {
            return fails(libc::EBUSY);
        }
        if holes {
            fails(libc::ENOMEM)
        } else {
            Ok(Outcome::Done)
        }
    }

    /// The mappings in the pages that a range touches.
    pub(super) fn regions(&self, range: Range) -> Answer {
        let start = self.start(range)?;
        let Some(end) = start
            .checked_add(range.bytes)
            .filter(|&end| end <= USER_END)
        else {
            return undefined("regions outside any process");
        };
        let mut regions: Vec<Region> = Vec::new();
        for (&number, page) in self.pages.range(start / PAGE..end.div_ceil(PAGE)) {
            let next = region(number, page);
            let last = regions.last_mut();
            if !last.is_some_and(|last| last.absorb(&next)) {
                regions.push(next);
            }
        }
        Ok(Outcome::Regions(regions))
    }
}

fn region(number: u64, page: &Page) -> Region {
    let attributes = &page.attributes;
    let file = attributes.object.and_then(|index| u8::try_from(index).ok());
    Region {
        start: place(number * PAGE),
        pages: 1,
        prot: attributes.prot,
        shared: attributes.shared,
        file: file
            .filter(|&file| file < FILES)
            .map(|file| (file, page.offset)),
    }
}
