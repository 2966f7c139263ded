//! The naive model: for each process a map from page to contents and rights.
//!
//! It is the specification, so it is as plain as possible. It follows POSIX, and Linux 6.18 where
//! POSIX says nothing (which calls stop half-way, what they have changed by then, which error comes
//! first).
//!
//! It names the effects that it does not define ([`Model::judge`] returns a reason instead of an
//! outcome), and no system performs such steps:
//!
//! - if a mapping that the system placed can grow in place, and which mappings are placed at its
//!   unmapped addresses: systems choose addresses differently;
//! - `mremap` of neighbours with equal attributes that were mapped or changed separately, where it
//!   requires a single mapping: some systems merge them;
//! - `mremap` with `MREMAP_DONTUNMAP` of locked memory: Linux also unlocks neighbours of the moved
//!   range; and the changes made by a failing request that duplicates a mapping onto itself, or
//!   moves the beginning of more than an address space holds;
//! - mappings below 64 KiB, and at the last 4095 addresses, where the address that `mmap` returns
//!   would be an error number;
//! - reading memory that may only be executed: that depends on the processor;
//! - writing beyond the end of a file, in its last page: POSIX leaves the effect open;
//! - `brk` that shrinks a heap without mapped pages.
//!
//! For systems that undo calls which fail half-way ([`Halfway`]), it does not define which of two
//! errors comes first either; nor, where such a system is compared with Linux, calls that leave
//! something behind when they fail.
//!
//! Outcomes leave open the choices of a system: contents after `MADV_FREE`, and which pages are in
//! memory unless a touch, a lock or dropping the pages decides it: pages of files, of memory with
//! advice for huge pages, after `MADV_PAGEOUT`, and after `fork` if they were only read.

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
pub(crate) use process::address;

use crate::outcome::Outcome;
use crate::step::{Call, FILES, ProcessId, Step};
use crate::system::{Broken, Halfway, System};
use answer::{Answer, Stop, undefined};
use object::Object;
use page::{Attributes, Page};
use process::Process;
use std::collections::BTreeMap;
use std::rc::Rc;

/// The model.
#[derive(Clone)]
pub struct Model {
    /// The files, then all shared memory that has existed.
    objects: Vec<Object>,
    /// The processes alive; each is shared with older copies of the model until it changes.
    processes: BTreeMap<ProcessId, Rc<Process>>,
    /// The last mapping number used.
    serial: u64,
    /// The effects of calls that fail half-way, if they are defined.
    halfway: Option<Halfway>,
}

/// The model of Linux.
impl Default for Model {
    fn default() -> Self {
        Model::new(Some(Halfway::Kept))
    }
}

impl Model {
    /// Process 0 and empty files. Without `halfway`, calls that fail half-way after a change are
    /// undefined.
    pub fn new(halfway: Option<Halfway>) -> Self {
        Model {
            objects: vec![Object::default(); usize::from(FILES)],
            processes: BTreeMap::from([(0, Rc::new(Process::new()))]),
            serial: 0,
            halfway,
        }
    }

    /// Performs the step and returns the answer of any system.
    ///
    /// # Errors
    /// Why the step is undefined. The model has changed nothing then.
    pub fn judge(&mut self, step: &Step) -> Result<Outcome, &'static str> {
        let before = (self.halfway != Some(Halfway::Kept)).then(|| self.clone());
        match (self.answer(step), before) {
            (Err(Stop::Undefined(why)), _) => Err(why),
            (Err(Stop::With(Outcome::Errno(errno))), Some(before)) => {
                let same = self.processes == before.processes && self.objects == before.objects;
                let defined = same || self.halfway.is_some();
                *self = before;
                if defined {
                    Ok(Outcome::Errno(errno))
                } else {
                    Err("what a call leaves behind when it fails half-way")
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
        alive(&mut self.processes, id)
    }

    /// A mapped page of a process.
    fn page(&mut self, id: ProcessId, number: u64) -> &mut Page {
        let pages = &mut self.process(id).pages;
        pages.get_mut(&number).expect("it is mapped")
    }

    /// Changes the attributes of a page. If they differ afterwards, the page may no longer belong
    /// to one mapping with the others; `renamed` maps old mapping numbers to new ones during one
    /// call.
    fn alter(
        &mut self,
        id: ProcessId,
        number: u64,
        renamed: &mut BTreeMap<u64, u64>,
        change: impl FnOnce(&mut Attributes),
    ) {
        let serial = &mut self.serial;
        let process = alive(&mut self.processes, id);
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

/// A live process of `processes`, for changes.
fn alive(processes: &mut BTreeMap<ProcessId, Rc<Process>>, id: ProcessId) -> &mut Process {
    Rc::make_mut(processes.get_mut(&id).expect("it is alive"))
}

impl System for Model {
    fn name(&self) -> &str {
        "model"
    }

    fn halfway(&self) -> Halfway {
        self.halfway.unwrap_or(Halfway::Kept)
    }

    fn reset(&mut self) -> Result<(), Broken> {
        *self = Model::new(self.halfway);
        Ok(())
    }

    fn perform(&mut self, step: &Step) -> Result<Outcome, Broken> {
        let undefined = |why| Broken::Own(format!("`{step}` is undefined: {why}"));
        self.judge(step).map_err(undefined)
    }
}
