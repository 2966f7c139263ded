//! The naive model: for each process a map from page to contents and rights.
//!
//! It is the specification, so it is as plain as it can be; it follows POSIX where that
//! speaks, and Linux 6.18 elsewhere (which calls stop half-way at what, what they have
//! changed by then, which error comes first).
//!
//! What it does not define it says ([`Model::judge`] gives a reason instead of an outcome), and nobody
//! performs:
//!
//! - whether a mapping that the system placed can grow where it is, and what is at addresses
//!   of it that have been unmapped: systems choose addresses differently;
//! - `mremap` of neighbours that look alike but were mapped or changed apart, where it must be
//!   one mapping: systems merge them or do not;
//! - `mremap` with `MREMAP_DONTUNMAP` of locked memory: Linux also unlocks neighbours of what
//!   moves; and requests to duplicate a mapping onto itself, or to move the beginning of
//!   more than an address space has: what has changed when they fail;
//! - reading memory that may be executed only: it depends on the processor;
//! - writing behind a file's end, in its last page: POSIX leaves open what becomes of that;
//! - `brk` that shrinks a heap of which nothing is mapped any more.
//!
//! Beside Linux and systems that undo calls which fail half-way ([`Halfway`]), or for the latter
//! alone, it also does not define which of two errors comes first, and, where both are
//! compared, calls that leave something behind when they fail.
//!
//! Outcomes leave open what systems may do as they like: contents after `MADV_FREE`, and which
//! pages are in memory, where neither a touch nor a lock nor the dropping of pages decides
//! it: pages of files, of memory that asked for huge pages, after `MADV_PAGEOUT`, after
//! `fork` if they were only read.

mod access;
mod advise;
mod answer;
mod change;
mod file;
mod known;
mod life;
mod lock;
mod map;
mod object;
mod page;
mod populate;
mod process;
mod query;
mod remap;

pub use known::Known;

use crate::outcome::Outcome;
use crate::step::{Call, FILES, ProcessId, Step};
use crate::system::{Broken, Halfway, System};
use answer::{Answer, Stop, undefined};
use object::Object;
use page::{Attributes, Page};
use process::Process;
use std::collections::BTreeMap;

/// The model.
#[derive(Clone)]
pub struct Model {
    /// The files, then all shared memory that there ever was.
    objects: Vec<Object>,
    /// Those that are alive.
    processes: BTreeMap<ProcessId, Process>,
    /// The last number given to a mapping.
    serial: u64,
    /// What calls leave behind that fail half-way, if that is defined.
    halfway: Option<Halfway>,
}

/// As Linux is.
impl Default for Model {
    fn default() -> Self {
        Model::new(Some(Halfway::Kept))
    }
}

impl Model {
    /// Process 0, empty files. Without `halfway` calls are not defined that would fail half-way
    /// with something done.
    pub fn new(halfway: Option<Halfway>) -> Self {
        Model {
            objects: vec![Object::default(); usize::from(FILES)],
            processes: BTreeMap::from([(0, Process::new())]),
            serial: 0,
            halfway,
        }
    }

    /// Performs the step and says what any system should have said.
    ///
    /// # Errors
    /// Why that is not defined. Then the model has changed nothing.
    pub fn judge(&mut self, step: &Step) -> Result<Outcome, &'static str> {
        let before = (self.halfway != Some(Halfway::Kept)).then(|| self.clone());
        match (self.answer(step), before) {
            (Err(Stop::Undefined(why)), _) => Err(why),
            (Err(Stop::With(Outcome::Errno(errno))), Some(before)) => {
                let same = self.processes == before.processes && self.objects == before.objects;
                let defined = same || self.halfway.is_some();
                *self = before;
                match defined {
                    true => Ok(Outcome::Errno(errno)),
                    false => Err("what a call leaves behind that fails half-way"),
                }
            }
            (Ok(outcome) | Err(Stop::With(outcome)), _) => Ok(outcome),
        }
    }

    fn answer(&mut self, step: &Step) -> Answer {
        let id = step.process;
        if !self.processes.contains_key(&id) {
            return undefined("the process is not alive");
        }
        match step.call {
            Call::Map(ref map) => self.map(id, map),
            Call::Unmap(range) => self.unmap(id, range),
            Call::Protect(range, prot) => self.protect(id, range, prot),
            Call::Remap(ref remap) => self.remap(id, remap),
            Call::Advise(range, advice) => self.advise(id, range, advice),
            Call::Sync(range, flags) => self.process(id).sync(range, flags),
            Call::Lock(range) => self.lock(id, range, page::Lock::Yes),
            Call::LockOnFault(range) => self.lock(id, range, page::Lock::OnFault),
            Call::Unlock(range) => self.unlock(id, range),
            Call::LockAll(flags) => self.lock_all(id, flags),
            Call::UnlockAll => self.unlock_all(id),
            Call::InCore(range) => self.in_core(id, range),
            Call::Break(bytes) => self.set_break(id, bytes),
            Call::Fork(child) => self.fork(id, child),
            Call::Exit => self.exit(id),
            Call::Replace => self.replace(id),
            Call::Load(address, width) => self.load(id, address, width),
            Call::Store(address, width, value) => self.store(id, address, width, value),
            Call::Truncate(file, bytes) => self.truncate(file, bytes),
            Call::Read(transfer) => self.read(transfer),
            Call::Write(transfer, byte) => self.write(transfer, byte),
            Call::Regions(range) => self.process(id).regions(range),
            Call::Dump(range) => self.dump(id, range),
            Call::Scarce(_) => Ok(Outcome::Done),
        }
    }

    /// A process that is alive.
    fn process(&mut self, id: ProcessId) -> &mut Process {
        self.processes.get_mut(&id).expect("it is alive")
    }

    /// A page that it has mapped.
    fn page(&mut self, id: ProcessId, number: u64) -> &mut Page {
        let pages = &mut self.process(id).pages;
        pages.get_mut(&number).expect("it is mapped")
    }

    /// Changes what a page has in common with its mapping. If that is a change, the mapping
    /// is no longer surely one with its other pages; `renamed` has the new names by the
    /// old ones, for one call.
    fn alter(
        &mut self,
        id: ProcessId,
        number: u64,
        renamed: &mut BTreeMap<u64, u64>,
        change: impl FnOnce(&mut Attributes),
    ) {
        let serial = &mut self.serial;
        let process = self.processes.get_mut(&id).expect("it is alive");
        let page = process.pages.get_mut(&number).expect("it is mapped");
        let before = page.attributes;
        change(&mut page.attributes);
        if page.attributes != before {
            page.mapping = *renamed
                .entry(page.mapping)
                .or_insert_with(|| process::next(serial));
        }
    }
}

impl System for Model {
    fn name(&self) -> &str {
        "model"
    }

    fn reset(&mut self) -> Result<(), Broken> {
        *self = Model::new(self.halfway);
        Ok(())
    }

    fn perform(&mut self, step: &Step) -> Result<Outcome, Broken> {
        let undefined = |why| Broken::Own(format!("`{step}` is not defined: {why}"));
        self.judge(step).map_err(undefined)
    }
}
