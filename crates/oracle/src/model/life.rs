//! Processes start, end, and change their heap.

use super::Model;
use super::answer::{Answer, undefined};
use super::page::{Attributes, Lock, Page};
use super::process::{HEAP, Process, next, pages, whole};
use crate::address::{HEAP_PAGES, PAGE};
use crate::outcome::{Core, Outcome};
use crate::step::{Advice, ProcessId, Prot};
use std::rc::Rc;

impl Model {
    pub(super) fn fork(&mut self, id: ProcessId, child: ProcessId) -> Answer {
        if self.processes.contains_key(&child) {
            return undefined("the child's number is taken");
        }
        let copy = self.process(id).copy();
        self.processes.insert(child, Rc::new(copy));
        Ok(Outcome::Done)
    }

    pub(super) fn exit(&mut self, id: ProcessId) -> Answer {
        self.processes.remove(&id);
        Ok(Outcome::Done)
    }

    pub(super) fn replace(&mut self, id: ProcessId) -> Answer {
        *self.process(id) = Process::new();
        Ok(Outcome::Done)
    }

    pub(super) fn set_break(&mut self, id: ProcessId, to: u64) -> Answer {
        if to > HEAP_PAGES * PAGE {
            return undefined("how large a heap may be");
        }
        let process = self.process(id);
        let heap = |from: u64, to: u64| pages(HEAP + whole(from), whole(to) - whole(from));
        let from = process.heap_end;
        if whole(to) < whole(from) {
            let removed = heap(to, from);
            if process.is_free(removed.clone()) {
                return undefined("shrinking a heap that is not mapped");
            }
            process.remove(removed);
        }
        process.heap_end = to;
        if whole(to) > whole(from) {
            let (added, attributes) = (heap(from, to), process.heap_attributes());
            let mapping = next(&mut self.serial);
            for number in added.clone() {
                let page = Page::new(mapping, attributes, 0);
                self.process(id).pages.insert(number, page);
            }
            if attributes.lock == Lock::Yes {
                self.try_to_populate(id, added);
            }
        }
        Ok(Outcome::Value(to))
    }
}

impl Process {
    /// A child's initial state: it has locked nothing.
    fn copy(&self) -> Process {
        let copied = self
            .pages
            .iter()
            .filter(|(_, page)| !page.attributes.dont_fork);
        let pages = copied.map(|(&number, page)| (number, page.copy()));
        Process {
            pages: pages.collect(),
            heap_end: self.heap_end,
            future: Lock::No,
        }
    }

    fn heap_attributes(&self) -> Attributes {
        Attributes {
            prot: Prot::READ_WRITE,
            shared: false,
            object: None,
            may_write: true,
            lock: self.future,
            grows_down: false,
            no_reserve: false,
            dont_fork: false,
            wipe_on_fork: false,
            size: Advice::Normal,
            order: Advice::Normal,
        }
    }
}

impl Page {
    fn copy(&self) -> Page {
        let mut page = self.clone();
        page.attributes.lock = Lock::No;
        if page.attributes.wipe_on_fork {
            page.forget();
        }
        // Pages that were only read need not be in the child's memory.
        if page.own.is_none() && page.core == Core::In {
            page.core = Core::Maybe;
        }
        page
    }
}
