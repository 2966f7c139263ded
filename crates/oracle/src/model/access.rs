//! Processes read and write their memory.

use super::answer::{Answer, Stop, undefined};
use super::map::GUARD;
use super::page::{Page, zero};
use super::process::{Process, aligned, in_window, pages};
use super::{Model, alive};
use crate::address::{Address, PAGE, Range};
use crate::outcome::{Content, Outcome};
use crate::step::{DUMP_PAGES, ProcessId, Prot, Width};
use std::rc::Rc;

impl Model {
    pub(super) fn load(&mut self, id: ProcessId, address: Address, width: Width) -> Answer {
        let at = self.process(id).at(address)?;
        self.refuse_only_executable(id, at / PAGE)?;
        let contents = self.contents(id, at / PAGE)?;
        let (from, bytes) = ((at % PAGE) as usize, width.bytes() as usize);
        let number = |content: &Rc<[u8]>| {
            let bytes = content[from..from + bytes].iter().rev();
            bytes.fold(0, |value, &byte| value << 8 | u64::from(byte))
        };
        let mut values: Vec<u64> = contents.iter().map(number).collect();
        values.dedup();
        Ok(match values[..] {
            [value] => Outcome::Value(value),
            _ => Outcome::OneOf(values),
        })
    }

    pub(super) fn store(
        &mut self,
        id: ProcessId,
        address: Address,
        width: Width,
        value: u64,
    ) -> Answer {
        let at = self.process(id).at(address)?;
        self.refuse_only_executable(id, at / PAGE)?;
        let within = at % PAGE;
        let bytes = &value.to_le_bytes()[..width.bytes() as usize];
        self.refuse_behind_end(id, at / PAGE, within + width.bytes())?;
        self.touch(id, at / PAGE, true)?;
        let page = self.page(id, at / PAGE);
        let offset = page.offset * PAGE + within;
        match (&mut page.own, page.attributes.object) {
            (Some(own), _) => own.write(within as usize, bytes),
            (None, Some(index)) => self.objects[index].write(offset, bytes),
            (None, None) => {}
        }
        Ok(Outcome::Done)
    }

    pub(super) fn dump(&mut self, id: ProcessId, range: Range) -> Answer {
        let start = self.process(id).start(range)?;
        let is_small = aligned(range.bytes) && range.bytes <= DUMP_PAGES * PAGE;
        if !aligned(start) || !is_small || start.checked_add(range.bytes).is_none() {
            return undefined("a dump covers some whole pages");
        }
        for number in pages(start, range.bytes) {
            self.refuse_only_executable(id, number)?;
        }
        let mut content = |number: u64| match self.contents(id, number) {
            Ok(contents) => {
                let mut contents: Vec<_> = contents
                    .iter()
                    .map(|bytes| Content::of_page(bytes))
                    .collect();
                contents.dedup();
                match contents.len() {
                    1 => Content::Bytes(contents.remove(0)),
                    _ => Content::OneOf(contents),
                }
            }
            Err(Stop::With(Outcome::Bus)) => Content::Bus,
            Err(_) => Content::Segv,
        };
        let pages = pages(start, range.bytes).map(&mut content);
        Ok(Outcome::Pages(pages.collect()))
    }

    /// The possible contents of a page that the process reads.
    fn contents(&mut self, id: ProcessId, number: u64) -> Answer<Vec<Rc<[u8]>>> {
        self.touch(id, number, false)?;
        let page = self.page(id, number);
        let offset = page.offset;
        Ok(match (&page.own, page.attributes.object) {
            (Some(own), _) => own.0.clone(),
            (None, Some(index)) => vec![self.objects[index].page(offset).into()],
            (None, None) => vec![zero().into()],
        })
    }

    /// Accesses the page, which is then in memory.
    fn touch(&mut self, id: ProcessId, number: u64, write: bool) -> Answer<()> {
        let segv = Err(Stop::With(Outcome::Segv));
        let serial = &mut self.serial;
        let process = alive(&mut self.processes, id);
        if !process.pages.contains_key(&number) && !process.grow_down(number, serial) {
            return segv;
        }
        let page = &process.pages[&number];
        let allowed = if write {
            page.attributes.prot.write
        } else {
            page.reads()
        };
        if !allowed {
            return segv;
        }
        let bus = |_| Stop::With(Outcome::Bus);
        self.bring_in(id, number, write).map_err(bus)
    }

    /// Fails if the page may only be executed, or would become so: access to it is undefined.
    fn refuse_only_executable(&mut self, id: ProcessId, number: u64) -> Answer<()> {
        let next = self.process(id).pages.range(number..).next();
        if next.is_some_and(|(_, page)| page.only_executes()) {
            undefined("whether memory that may only be executed can be read")
        } else {
            Ok(())
        }
    }

    /// Fails for a store beyond the end of a file, in its last page, which is undefined.
    fn refuse_behind_end(&mut self, id: ProcessId, number: u64, end: u64) -> Answer<()> {
        let Some(page) = self.process(id).pages.get(&number) else {
            return Ok(());
        };
        let Page {
            attributes, offset, ..
        } = page;
        let (offset, shared, object) = (*offset, attributes.shared, attributes.object);
        let Some(object) = object.filter(|_| shared).map(|index| &self.objects[index]) else {
            return Ok(());
        };
        let length = object.bytes.len() as u64;
        if offset < object.pages() && offset * PAGE + end > length {
            undefined("the fate of bytes beyond a file's end")
        } else {
            Ok(())
        }
    }
}

impl Process {
    /// Lets memory that grows down grow to the page. Returns true if it may.
    fn grow_down(&mut self, number: u64, serial: &mut u64) -> bool {
        let Some((&top, page)) = self.pages.range(number..).next() else {
            return false;
        };
        let inside = in_window(number * PAGE) && in_window(top * PAGE);
        if !page.attributes.grows_down || !inside {
            return false;
        }
        let page = page.clone();
        if let Some((&below, other)) = self.pages.range(..number).next_back() {
            let accessible = other.attributes.prot != Prot::NONE;
            let near = number - (below + 1) < GUARD;
            if !other.attributes.grows_down && accessible && near {
                return false;
            }
        }
        self.rename(0..number, page.mapping, serial);
        for number in number..top {
            let grown = Page::new(page.mapping, page.attributes, 0);
            self.pages.insert(number, grown);
        }
        true
    }
}
