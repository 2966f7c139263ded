//! From a recording's events to the steps of parts.

use crate::LeftOut;
use crate::memory::Memory;
use crate::order::{Mapping, Mark, Order};
use crate::steps::Steps;
use recording::{Advice, Birth, Call, Event, Place, Recording, Sharing, What};
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use workloads::Prot;
use workloads::replay::{Act, Content, Replay, Spot, Start, Treatment};

/// A recording as a workload.
#[derive(Debug)]
pub struct Compiled {
    pub replay: Replay,
    pub left_out: LeftOut,
}

/// Makes a workload of a recording.
pub fn compile(recording: &Recording) -> Compiled {
    let mut compiler = Compiler::new(recording);
    compiler.begin_first();
    for event in &recording.events {
        compiler.event(event);
    }
    compiler.finish()
}

/// The part that starts those processes that nothing recorded has started.
const ROOT: u32 = 0;

struct Compiler<'a> {
    recording: &'a Recording,
    page: u64,
    steps: Steps,
    order: Order,
    /// By process.
    memory: Vec<Memory>,
    /// The mapping that is the heap, by process.
    heaps: Vec<Option<u32>>,
    /// The number of living threads, by process.
    living: Vec<u32>,
    /// The thread whose event was the last, by process; none if it has ended.
    latest: Vec<Option<u32>>,
    /// By foreign thread and process: the part that locks the process's memory as the thread did,
    /// and when that was over the last time.
    holders: HashMap<(u32, u32), (u32, u64)>,
    /// By thread: the marks of its wake-ups.
    wakes: Vec<Vec<Option<Mark>>>,
    /// The lengths of the files, as far as they are mapped.
    files: Vec<u64>,
    /// One more than the highest number of a mapping.
    mappings: u32,
    operations: u64,
    touched: u64,
    most_touched: u64,
    left_out: LeftOut,
}

impl<'a> Compiler<'a> {
    fn new(recording: &'a Recording) -> Self {
        let (threads, processes) = (recording.threads.len(), recording.processes.len());
        Compiler {
            recording,
            page: u64::from(recording.page.max(1)),
            steps: Steps::of_parts(threads + 1),
            order: Order::default(),
            memory: vec![Memory::default(); processes],
            heaps: vec![None; processes],
            living: vec![0; processes],
            latest: vec![None; processes],
            holders: HashMap::new(),
            wakes: vec![Vec::new(); threads],
            files: vec![0; recording.files.len()],
            mappings: 0,
            operations: 0,
            touched: 0,
            most_touched: 0,
            left_out: LeftOut::default(),
        }
    }

    /// Starts the threads that nothing recorded starts: the first of each process by the root, the
    /// others by that.
    fn begin_first(&mut self) {
        let started: HashSet<u32> = self.recording.events.iter().filter_map(started).collect();
        let mut first: Vec<Option<u32>> = vec![None; self.recording.processes.len()];
        for (number, thread) in (0..).zip(&self.recording.threads) {
            let process = thread.process as usize;
            if started.contains(&number) || self.is_foreign(number) {
                continue;
            }
            let (by, start) = match first[process] {
                None => (ROOT, Start::Fresh),
                Some(first) => (part_of(first), Start::Thread),
            };
            first[process].get_or_insert(number);
            self.living[process] += 1;
            let part = part_of(number);
            self.steps.push(by, Act::Begin { part, start });
        }
    }

    fn is_foreign(&self, thread: u32) -> bool {
        self.recording.processes[self.process(thread) as usize].birth == Birth::Foreign
    }

    fn process(&self, thread: u32) -> u32 {
        self.recording.threads[thread as usize].process
    }

    fn event(&mut self, event: &Event) {
        let thread = event.thread;
        if let What::Hold { process, write, .. } = event.what {
            return self.hold(event, process, write);
        }
        if self.is_foreign(thread) {
            return;
        }
        let (process, part) = (self.process(thread) as usize, part_of(thread));
        self.latest[process] = Some(thread);
        if event.computed > 0 {
            self.steps.push(part, Act::Compute(event.computed));
        }
        match &event.what {
            What::Call { call, error, parts } => self.call(thread, call, *error, parts),
            What::Given { call } => drop(self.replay(thread, call, &[])),
            What::Fault {
                at, pages, write, ..
            } => self.fault(thread, *at, *pages, *write),
            What::Start { thread: new } => {
                let process = self.process(*new) as usize;
                self.living[process] += 1;
                self.begin(part, *new, Start::Thread);
            }
            What::Fork {
                thread: new,
                borrows,
            } => self.fork(thread, *new, *borrows),
            What::Exec => self.clear(thread),
            What::Exit => self.exit(thread),
            What::Wait {
                nanoseconds, by, ..
            } => self.wait(part, *nanoseconds, *by),
            What::Wake { .. } => {
                let mark = self.steps.last(part);
                self.wakes[thread as usize].push(mark);
            }
            What::Unknown => {
                self.left_out.calls += 1;
                self.left_out.of_calls += 1;
            }
            // Above.
            What::Hold { .. } => {}
        }
    }

    /// A foreign thread had a process's memory locked. If it did so for reading, a part of that
    /// process looks at some of its mappings: after what the process has done since the last time
    /// or, if it has done nothing, after as long a time.
    fn hold(&mut self, event: &Event, process: u32, write: bool) {
        self.left_out.of_holds += 1;
        let holder = (event.thread, process);
        let latest = self.latest[process as usize];
        let begun = match self.holders.get(&holder) {
            _ if write => None,
            Some(&begun) => Some(begun),
            None => latest.map(|by| (self.begin_holder(by), event.at)),
        };
        let Some((part, since)) = begun else {
            self.left_out.holds += 1;
            return;
        };
        self.holders.insert(holder, (part, event.at));
        let mark = latest.and_then(|thread| self.steps.last(part_of(thread)));
        match mark.filter(|mark| self.order.wait(part, *mark)) {
            Some(mark) => self.steps.wait(part, vec![mark]),
            None => self.steps.push(part, Act::Sleep(event.at - since)),
        }
        self.steps.push(part, Act::Scan);
    }

    /// A new part, which `by` starts.
    fn begin_holder(&mut self, by: u32) -> u32 {
        let part = self.steps.add_part();
        let start = Start::Thread;
        self.steps.push(part_of(by), Act::Begin { part, start });
        part
    }

    /// A call counts once, with the last step that it takes.
    fn call(&mut self, thread: u32, call: &Call, error: u16, parts: &[(Place, u64)]) {
        self.left_out.of_calls += 1;
        if error == 0 && self.replay(thread, call, parts) {
            self.steps.count(part_of(thread));
            self.operations += 1;
        } else {
            self.left_out.calls += 1;
        }
    }

    /// Lets `thread` do `call`. Returns false if there is nothing that it could do.
    fn replay(&mut self, thread: u32, call: &Call, parts: &[(Place, u64)]) -> bool {
        match *call {
            Call::Map { .. } => self.map(thread, call, parts),
            Call::Break { mapping, length } => self.set_break(thread, mapping, length),
            Call::Remap {
                at,
                length,
                new_length,
                to,
            } => self.remap(thread, at, [length, new_length], to),
            Call::Unmap { at, length } => {
                self.on_each(thread, at, length, parts, |memory, at, range| {
                    let act = Act::Unmap {
                        at: spot(at.mapping, range.start),
                        length: size(&range),
                    };
                    (act, memory.unmap(at.mapping, range))
                })
            }
            Call::Protect { at, length, prot } => {
                self.on_each(thread, at, length, parts, |memory, at, range| {
                    memory.protect(at.mapping, range.clone(), prot);
                    let act = Act::Protect {
                        at: spot(at.mapping, range.start),
                        length: size(&range),
                        prot: rights(prot),
                    };
                    (act, 0)
                })
            }
            Call::Advise { at, length, advice } => match advice {
                Advice::PopulateRead => self.populate_all(thread, at, length, parts, false),
                Advice::PopulateWrite => self.populate_all(thread, at, length, parts, true),
                _ => {
                    treatment(advice).is_some_and(|how| self.treat(thread, at, length, parts, how))
                }
            },
            Call::Lock { at, length } => self.treat(thread, at, length, parts, Treatment::Lock),
            Call::Unlock { at, length } => self.treat(thread, at, length, parts, Treatment::Unlock),
            Call::Sync { at, length } => self.treat(thread, at, length, parts, Treatment::Sync),
            Call::InCore { at, length } => self.treat(thread, at, length, parts, Treatment::InCore),
            Call::Other { .. } => false,
        }
    }

    fn treat(
        &mut self,
        thread: u32,
        at: Place,
        length: u64,
        parts: &[(Place, u64)],
        how: Treatment,
    ) -> bool {
        self.on_each(thread, at, length, parts, |memory, at, range| {
            let act = Act::Treat {
                at: spot(at.mapping, range.start),
                length: size(&range),
                how,
            };
            let gone = match how {
                Treatment::Discard | Treatment::Remove => memory.discard(at.mapping, range),
                _ => 0,
            };
            (act, gone)
        })
    }

    /// Lets `thread` do an act on each mapped part of a call's ranges. `change` says which, and how
    /// many touched bytes it takes away. Returns false if nothing is mapped there.
    fn on_each(
        &mut self,
        thread: u32,
        at: Place,
        length: u64,
        parts: &[(Place, u64)],
        change: impl Fn(&mut Memory, Place, Range<u64>) -> (Act, u64),
    ) -> bool {
        let process = self.process(thread);
        let mut is_mapped = false;
        for (at, range) in self.ranges(at, length, parts) {
            for range in self.memory[process as usize].mapped(at.mapping, range) {
                self.order_change(thread, at.mapping, range.clone());
                let (act, gone) = change(&mut self.memory[process as usize], at, range);
                self.touched -= gone;
                self.steps.push(part_of(thread), act);
                is_mapped = true;
            }
        }
        is_mapped
    }

    /// The ranges of a call: of `length` bytes, those that are not in `parts` are at `at`.
    fn ranges(&self, at: Place, length: u64, parts: &[(Place, u64)]) -> Vec<(Place, Range<u64>)> {
        let others: u64 = parts.iter().map(|(_, length)| *length).sum();
        let first = (at, length.saturating_sub(others));
        let each = [first].into_iter().chain(parts.iter().copied());
        each.map(|(place, length)| (place, self.pages(place.offset, length)))
            .collect()
    }

    /// Whole pages.
    fn pages(&self, offset: u64, length: u64) -> Range<u64> {
        let start = offset - offset % self.page;
        start..offset.saturating_add(length).next_multiple_of(self.page)
    }

    /// The thread's next act changes this range: it waits for those that must come before.
    fn order_change(&mut self, thread: u32, mapping: u32, range: Range<u64>) {
        let (process, mark) = (self.process(thread), self.steps.next(part_of(thread)));
        let mut before = self.order.touch(all(process), 0..1, mark);
        before.extend(self.order.change(Mapping { process, mapping }, range, mark));
        self.steps.wait(mark.part, before);
    }

    /// The thread's next act touches this range: it waits for the changes before.
    fn order_touch(&mut self, thread: u32, mapping: u32, range: Range<u64>) {
        let (process, mark) = (self.process(thread), self.steps.next(part_of(thread)));
        let before = self.order.touch(Mapping { process, mapping }, range, mark);
        self.steps.wait(mark.part, before);
    }

    fn map(&mut self, thread: u32, call: &Call, parts: &[(Place, u64)]) -> bool {
        let Call::Map {
            mapping,
            length,
            prot,
            sharing,
            file,
            over,
            populate,
            ..
        } = *call
        else {
            return false;
        };
        let (process, range) = (self.process(thread), self.pages(0, length));
        if range.is_empty() {
            return false;
        }
        self.mappings = self.mappings.max(mapping + 1);
        let over = over.and_then(|at| self.over(thread, at, size(&range) as u64, parts));
        self.order_change(thread, mapping, range.clone());
        self.memory[process as usize].map(mapping, range.clone(), prot);
        let act = Act::Map {
            mapping,
            length: size(&range),
            prot: rights(prot),
            content: self.content(file, sharing, range.end),
            over,
        };
        self.steps.push(part_of(thread), act);
        if populate {
            self.populate(thread, mapping, range, prot.write);
        }
        true
    }

    /// Lets `thread` touch all pages of a mapped range by one call.
    fn populate(&mut self, thread: u32, mapping: u32, range: Range<u64>, write: bool) {
        let how = match write {
            true => Treatment::PopulateWrite,
            false => Treatment::PopulateRead,
        };
        self.order_touch(thread, mapping, range.clone());
        let (at, length) = (spot(mapping, range.start), size(&range));
        let process = self.process(thread) as usize;
        let (_, new) = self.memory[process].touch(mapping, range, write);
        self.add_touched(new);
        self.steps
            .push(part_of(thread), Act::Treat { at, length, how });
    }

    /// The same for what is mapped in a call's ranges. Returns false if that is nothing.
    fn populate_all(
        &mut self,
        thread: u32,
        at: Place,
        length: u64,
        parts: &[(Place, u64)],
        write: bool,
    ) -> bool {
        let process = self.process(thread) as usize;
        let mut is_mapped = false;
        for (at, range) in self.ranges(at, length, parts) {
            for range in self.memory[process].mapped(at.mapping, range) {
                self.populate(thread, at.mapping, range, write);
                is_mapped = true;
            }
        }
        is_mapped
    }

    /// What a mapping replaces, where that is a part of one mapping. Elsewhere the parts go first,
    /// and the mapping has its place where there is room.
    fn over(
        &mut self,
        thread: u32,
        at: Place,
        length: u64,
        parts: &[(Place, u64)],
    ) -> Option<Spot> {
        let process = self.process(thread) as usize;
        let range = self.pages(at.offset, length);
        if parts.is_empty() && self.memory[process].is_mapped(at.mapping, range.clone()) {
            self.order_change(thread, at.mapping, range.clone());
            self.touched -= self.memory[process].unmap(at.mapping, range);
            return Some(spot(at.mapping, at.offset));
        }
        self.replay(thread, &Call::Unmap { at, length }, parts);
        None
    }

    fn content(&mut self, file: Option<(u32, u64)>, sharing: Sharing, end: u64) -> Content {
        let Some((number, _)) = file else {
            return match sharing {
                Sharing::Private => Content::Anonymous,
                Sharing::Shared => Content::SharedAnonymous,
            };
        };
        let length = &mut self.files[number as usize];
        *length = (*length).max(end);
        match sharing {
            Sharing::Private => Content::PrivateFile(number),
            Sharing::Shared => Content::SharedFile(number),
        }
    }

    fn set_break(&mut self, thread: u32, mapping: u32, length: u64) -> bool {
        let process = self.process(thread) as usize;
        let length = length.next_multiple_of(self.page);
        self.mappings = self.mappings.max(mapping + 1);
        self.heaps[process] = Some(mapping);
        self.order_change(thread, mapping, 0..u64::MAX);
        let memory = &mut self.memory[process];
        self.touched -= memory.unmap(mapping, length..u64::MAX);
        let prot = recording::Prot {
            read: true,
            write: true,
            execute: false,
        };
        // What is mapped already keeps its touched pages.
        memory.map(mapping, 0..length, prot);
        let length = length as usize;
        self.steps
            .push(part_of(thread), Act::Break { mapping, length });
        true
    }

    fn remap(&mut self, thread: u32, at: Place, lengths: [u64; 2], to: Option<u32>) -> bool {
        let process = self.process(thread) as usize;
        let [old, new] = lengths.map(|length| self.pages(at.offset, length));
        if to.is_none() && new.end <= old.end {
            let at = Place {
                offset: new.end,
                ..at
            };
            let length = old.end - new.end;
            return self.replay(thread, &Call::Unmap { at, length }, &[]);
        }
        let memory = &self.memory[process];
        let prot = memory.prot(at.mapping, at.offset);
        let is_whole = memory.is_mapped(at.mapping, old.clone());
        // What grows in place may move all the same, and leave behind what is not a part of it.
        let is_all = memory.mapped(at.mapping, 0..u64::MAX) == [old.clone()];
        let (Some(prot), true) = (prot, is_whole && (to.is_some() || is_all)) else {
            return false;
        };
        let to = to.map_or((at.mapping, new.clone()), |to| (to, 0..size(&new) as u64));
        self.mappings = self.mappings.max(to.0 + 1);
        self.order_change(thread, at.mapping, old.clone());
        self.order_change(thread, to.0, to.1.clone());
        self.touched -= self.memory[process].unmap(at.mapping, old.clone());
        self.memory[process].map(to.0, to.1.clone(), prot);
        let act = Act::Remap {
            at: spot(at.mapping, old.start),
            length: size(&old),
            new_length: size(&new),
            to: spot(to.0, to.1.start),
        };
        self.steps.push(part_of(thread), act);
        true
    }

    fn fault(&mut self, thread: u32, at: Place, pages: u32, write: bool) {
        let process = self.process(thread);
        let range = self.pages(at.offset, u64::from(pages) * self.page);
        self.left_out.of_faults += u64::from(pages);
        let mut left = u64::from(pages);
        let (parts, new) = self.memory[process as usize].touch(at.mapping, range, write);
        self.add_touched(new);
        for range in parts {
            self.order_touch(thread, at.mapping, range.clone());
            let pages = (range.end - range.start) / self.page;
            left = left.saturating_sub(pages);
            let act = Act::Touch {
                at: spot(at.mapping, range.start),
                pages: pages as u32,
                write,
            };
            self.steps.push(part_of(thread), act);
        }
        self.left_out.faults += left;
    }

    fn begin(&mut self, by: u32, new: u32, start: Start) {
        let part = part_of(new);
        self.steps.push(by, Act::Begin { part, start });
    }

    fn fork(&mut self, thread: u32, new: u32, borrows: bool) {
        let (process, child) = (self.process(thread), self.process(new) as usize);
        self.living[child] += 1;
        if borrows {
            return self.begin(part_of(thread), new, Start::Fresh);
        }
        let mark = self.steps.next(part_of(thread));
        let before = self.order.change(all(process), 0..1, mark);
        self.steps.wait(mark.part, before);
        self.memory[child] = self.memory[process as usize].copy();
        self.heaps[child] = self.heaps[process as usize];
        self.begin(mark.part, new, Start::Copy);
    }

    /// The thread's process loses its memory: it executes a program.
    fn clear(&mut self, thread: u32) {
        let process = self.process(thread) as usize;
        // Systems move the program break only where it ends the heap.
        if let Some(heap) = self.heaps[process].take() {
            self.set_break(thread, heap, 0);
            self.heaps[process] = None;
        }
        let all: Vec<_> = self.memory[process].all().collect();
        for (mapping, range) in all {
            let at = Place {
                mapping,
                offset: range.start,
            };
            let length = range.end - range.start;
            self.replay(thread, &Call::Unmap { at, length }, &[]);
        }
        self.living[process] = 1;
    }

    /// The process of the last thread goes, and its memory with it.
    fn exit(&mut self, thread: u32) {
        let process = self.process(thread) as usize;
        self.latest[process] = None;
        self.living[process] = self.living[process].saturating_sub(1);
        if self.living[process] == 0 {
            self.touched -= std::mem::take(&mut self.memory[process]).touched();
        }
    }

    fn wait(&mut self, part: u32, nanoseconds: u64, by: Option<(u32, u32)>) {
        let Some((waker, wakes)) = by else {
            return self.steps.push(part, Act::Sleep(nanoseconds));
        };
        let wakes = self.wakes[waker as usize].get(wakes as usize);
        let mark = wakes.copied().flatten();
        if let Some(mark) = mark.filter(|mark| self.order.wait(part, *mark)) {
            self.steps.wait(part, vec![mark]);
        }
    }

    fn add_touched(&mut self, bytes: u64) {
        self.touched += bytes;
        self.most_touched = self.most_touched.max(self.touched);
    }

    fn finish(self) -> Compiled {
        let files = self.files.into_iter().map(|length| length as usize);
        Compiled {
            replay: Replay {
                parts: self.steps.finish(),
                mappings: self.mappings as usize,
                files: files.collect(),
                operations: self.operations,
                memory: self.most_touched as usize,
            },
            left_out: self.left_out,
        }
    }
}

/// The thread that an event starts.
fn started(event: &Event) -> Option<u32> {
    match event.what {
        What::Start { thread } | What::Fork { thread, .. } => Some(thread),
        _ => None,
    }
}

/// In the order of steps: all mappings of a process.
fn all(process: u32) -> Mapping {
    let mapping = u32::MAX;
    Mapping { process, mapping }
}

/// The part of a thread.
fn part_of(thread: u32) -> u32 {
    thread + 1
}

fn spot(mapping: u32, offset: u64) -> Spot {
    Spot {
        mapping,
        offset: offset as usize,
    }
}

fn size(range: &Range<u64>) -> usize {
    (range.end - range.start) as usize
}

fn rights(prot: recording::Prot) -> Prot {
    match (prot.write, prot.read || prot.execute) {
        (true, _) => Prot::ReadWrite,
        (false, true) => Prot::Read,
        (false, false) => Prot::None,
    }
}

/// Linux's numbers of advice that sets a flag of a mapping: it locks the whole map to do so, and
/// splits the mapping.
const NORMAL: u32 = 0;
const RANDOM: u32 = 1;
const SEQUENTIAL: u32 = 2;
const DONT_DUMP: u32 = 16;
const DO_DUMP: u32 = 17;

/// The treatment that advice asks for; none if it leaves the memory as it is, or touches it.
fn treatment(advice: Advice) -> Option<Treatment> {
    match advice {
        Advice::Discard => Some(Treatment::Discard),
        Advice::Free => Some(Treatment::Free),
        Advice::PageOut => Some(Treatment::PageOut),
        Advice::Cold => Some(Treatment::Cold),
        Advice::Remove => Some(Treatment::Remove),
        Advice::Other(NORMAL) => Some(Treatment::Normal),
        Advice::Other(RANDOM) => Some(Treatment::Random),
        Advice::Other(SEQUENTIAL) => Some(Treatment::Sequential),
        Advice::Other(DONT_DUMP) => Some(Treatment::DontDump),
        Advice::Other(DO_DUMP) => Some(Treatment::DoDump),
        Advice::PopulateRead | Advice::PopulateWrite => None,
        Advice::Huge | Advice::NoHuge | Advice::Other(_) => None,
    }
}
