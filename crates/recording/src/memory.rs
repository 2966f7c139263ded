//! What processes have mapped at a point of a recording.

use crate::{Call, Event, Place, Prot, Thread, What};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;

/// What the processes of a recording have mapped, after the events taken so far.
#[derive(Default)]
pub(crate) struct Memory {
    /// By process. Processes that borrow memory share one.
    spaces: HashMap<u32, Rc<RefCell<Space>>>,
    /// By process, the number of its threads that have not ended.
    living: HashMap<u32, usize>,
    /// The threads that are counted.
    counted: usize,
}

impl Memory {
    /// Takes an event; `threads` are those known at this point, or all.
    pub fn take(&mut self, event: &Event, threads: &[Thread]) {
        for thread in threads.get(self.counted..).unwrap_or_default() {
            *self.living.entry(thread.process).or_default() += 1;
            self.counted += 1;
        }
        let process_of = |thread: u32| threads[thread as usize].process;
        let process = process_of(event.thread);
        match &event.what {
            What::Call {
                call,
                error: 0,
                parts,
            } => self.space(process).borrow_mut().call(call, parts),
            What::Given { call } => self.space(process).borrow_mut().call(call, &[]),
            What::Fork { thread, borrows } => {
                let space = self.space(process);
                let child = match borrows {
                    true => space,
                    false => Rc::new(RefCell::new(space.borrow().clone())),
                };
                self.spaces.insert(process_of(*thread), child);
            }
            What::Exec => drop(self.spaces.remove(&process)),
            What::Exit => self.exit(process),
            _ => {}
        }
    }

    /// A thread ends; with the last one of a process its mappings go.
    fn exit(&mut self, process: u32) {
        let living = self.living.entry(process).or_default();
        *living = living.saturating_sub(1);
        if *living == 0 {
            self.spaces.remove(&process);
        }
    }

    fn space(&mut self, process: u32) -> Rc<RefCell<Space>> {
        Rc::clone(self.spaces.entry(process).or_default())
    }

    /// The number of mappings of all processes, and their bytes.
    pub fn size(&self) -> (u64, u64) {
        let mut seen = HashSet::new();
        let spaces = self.spaces.values();
        let each = spaces.filter(|space| seen.insert(Rc::as_ptr(space)));
        each.fold((0, 0), |(mappings, bytes), space| {
            let (more, longer) = space.borrow().size();
            (mappings + more, longer.saturating_add(bytes))
        })
    }

    /// The calls that map what the process has mapped.
    pub fn given(&self, process: u32) -> Vec<Call> {
        let space = self.spaces.get(&process);
        space.map_or_else(Vec::new, |space| space.borrow().given())
    }

    /// The end of a mapping of the process; 0 if it has none of this number.
    pub fn end(&self, process: u32, mapping: u32) -> u64 {
        let space = self.spaces.get(&process).map(|space| space.borrow());
        let end = space.and_then(|space| Some(space.mappings.get(&mapping)?.end()));
        end.unwrap_or(0)
    }
}

/// What a process has mapped.
#[derive(Clone, Default)]
struct Space {
    mappings: BTreeMap<u32, Mapped>,
}

/// A mapping: the call that made it, and the parts of it that are mapped, in ascending order.
#[derive(Clone)]
struct Mapped {
    call: Call,
    pieces: Vec<Piece>,
}

/// A part of a mapping.
#[derive(Clone, Copy)]
struct Piece {
    start: u64,
    end: u64,
    prot: Prot,
}

impl Space {
    fn call(&mut self, call: &Call, parts: &[(Place, u64)]) {
        let ranges = || {
            let first = call.at().zip(call.length());
            first.into_iter().chain(parts.iter().copied())
        };
        match call {
            Call::Map {
                mapping,
                length,
                prot,
                ..
            } => {
                ranges().for_each(|(at, length)| self.unmap(at, length));
                self.make(*mapping, call.clone(), *length, *prot);
            }
            Call::Break { mapping, length } => {
                self.make(*mapping, call.clone(), *length, Prot::MEMORY);
            }
            Call::Unmap { .. } => ranges().for_each(|(at, length)| self.unmap(at, length)),
            Call::Protect { prot, .. } => {
                ranges().for_each(|(at, length)| self.protect(at, length, *prot));
            }
            Call::Remap {
                at,
                length,
                new_length,
                to,
            } => self.remap(*at, *length, *new_length, *to),
            _ => {}
        }
    }

    fn make(&mut self, mapping: u32, call: Call, length: u64, prot: Prot) {
        let mut mapped = Mapped {
            call,
            pieces: Vec::new(),
        };
        mapped.insert(0, length, prot);
        self.mappings.insert(mapping, mapped);
    }

    fn unmap(&mut self, at: Place, length: u64) {
        let Some(mapped) = self.mappings.get_mut(&at.mapping) else {
            return;
        };
        mapped.change(at.offset, length, |_| None);
        if mapped.pieces.is_empty() {
            self.mappings.remove(&at.mapping);
        }
    }

    fn protect(&mut self, at: Place, length: u64, prot: Prot) {
        if let Some(mapped) = self.mappings.get_mut(&at.mapping) {
            mapped.change(at.offset, length, |_| Some(prot));
        }
    }

    fn remap(&mut self, at: Place, length: u64, new_length: u64, to: Option<u32>) {
        let Some(mapped) = self.mappings.get_mut(&at.mapping) else {
            return;
        };
        let prot = mapped.prot(at.offset);
        match to {
            Some(to) => {
                let call = mapped.call.moved(to, at.offset, new_length);
                self.unmap(at, length);
                self.make(to, call, new_length, prot);
            }
            None => {
                mapped.change(at.offset, length.max(new_length), |_| None);
                mapped.insert(at.offset, new_length, prot);
            }
        }
    }

    fn size(&self) -> (u64, u64) {
        let pieces = self.mappings.values().flat_map(|mapped| &mapped.pieces);
        pieces.fold((0, 0_u64), |(count, bytes), piece| {
            (count + 1, bytes.saturating_add(piece.end - piece.start))
        })
    }

    fn given(&self) -> Vec<Call> {
        let mapped = self.mappings.iter();
        let calls = mapped.flat_map(|(&number, mapped)| mapped.given(number));
        calls.collect()
    }
}

impl Mapped {
    fn end(&self) -> u64 {
        self.pieces.last().map_or(0, |piece| piece.end)
    }

    fn prot(&self, offset: u64) -> Prot {
        let mut pieces = self.pieces.iter();
        let found = pieces.find(|piece| piece.end > offset);
        found.map_or(Prot::MEMORY, |piece| piece.prot)
    }

    /// Gives the parts in the range new rights, or removes them.
    fn change(&mut self, start: u64, length: u64, prot: impl Fn(Prot) -> Option<Prot>) {
        let end = start.saturating_add(length);
        let split = |piece: Piece| {
            let part = |from: u64, to: u64, prot: Option<Prot>| {
                let (start, end) = (from.max(piece.start), to.min(piece.end));
                let prot = prot.filter(|_| start < end);
                prot.map(|prot| Piece { start, end, prot })
            };
            let inside = (start < end).then(|| part(start, end, prot(piece.prot)));
            let first = part(0, start, Some(piece.prot));
            let last = part(end, u64::MAX, Some(piece.prot));
            first.into_iter().chain(inside.flatten()).chain(last)
        };
        self.pieces = self.pieces.iter().copied().flat_map(split).collect();
        self.join();
    }

    /// Makes neighbours with the same rights one.
    fn join(&mut self) {
        self.pieces.dedup_by(|next, before| {
            let is_one = before.end == next.start && before.prot == next.prot;
            if is_one {
                before.end = next.end;
            }
            is_one
        });
    }

    /// Adds a part where there is none.
    fn insert(&mut self, start: u64, length: u64, prot: Prot) {
        let end = start.saturating_add(length);
        if start < end {
            let at = self.pieces.partition_point(|piece| piece.start < start);
            self.pieces.insert(at, Piece { start, end, prot });
            self.join();
        }
    }

    /// The calls that make it: all of it is mapped, then the missing parts are unmapped, and the
    /// others get their rights.
    fn given(&self, number: u32) -> Vec<Call> {
        let Some(first) = self.pieces.first() else {
            return Vec::new();
        };
        let at = |offset| Place {
            mapping: number,
            offset,
        };
        let mut calls = vec![self.call.anew(self.end(), first.prot)];
        let mut mapped = 0;
        for &Piece { start, end, prot } in &self.pieces {
            if start > mapped {
                calls.push(Call::Unmap {
                    at: at(mapped),
                    length: start - mapped,
                });
            }
            if prot != first.prot {
                calls.push(Call::Protect {
                    at: at(start),
                    length: end - start,
                    prot,
                });
            }
            mapped = end;
        }
        calls
    }
}

impl Call {
    /// The same mapping, made with these rights where nothing is mapped.
    fn anew(&self, end: u64, rights: Prot) -> Call {
        let mut call = self.clone();
        match &mut call {
            Call::Map {
                length,
                prot,
                over,
                populate,
                ..
            } => {
                *length = end;
                (*prot, *over, *populate) = (rights, None, false);
            }
            Call::Break { length, .. } => *length = end,
            _ => {}
        }
        call
    }

    /// The part of the mapping from `start` on, as mapping `to`.
    fn moved(&self, to: u32, start: u64, new_length: u64) -> Call {
        let mut call = self.clone();
        match &mut call {
            Call::Map {
                mapping,
                length,
                file,
                ..
            } => {
                (*mapping, *length) = (to, new_length);
                *file = file.map(|(file, offset)| (file, offset.saturating_add(start)));
            }
            Call::Break { mapping, length } => (*mapping, *length) = (to, new_length),
            _ => {}
        }
        call
    }
}

impl Prot {
    /// That of memory to read and write.
    const MEMORY: Prot = Prot {
        read: true,
        write: true,
        execute: false,
    };
}
