//! From the events of a recording to those of a part.

use super::numbers::Numbers;
use crate::memory::Memory;
use crate::{Birth, Call, Event, Place, Process, Recording, Thread, WaitFor, What};
use std::collections::HashSet;
use std::ops::Range;

/// A walk along the events of a recording.
pub struct Walk<'a> {
    whole: &'a Recording,
    /// By thread, true if it stays.
    keep: Vec<bool>,
    /// The events of the part, and the time of its beginning.
    span: Range<usize>,
    from: u64,
    memory: Memory,
    /// By thread, true if it stays and exists in the part by now.
    living: Vec<bool>,
    /// By thread, what it computed before events that are left out.
    carried: Vec<u64>,
    /// By thread, the new numbers of its wake-ups; none of those that are left out.
    wakes: Vec<Vec<Option<u32>>>,
    /// Mappings that threads that stay work on.
    used: HashSet<u32>,
    /// Mappings that the part has made.
    made: HashSet<u32>,
    /// By process, true if a thread that stays exists in it by now, in the whole recording too.
    begun: Vec<bool>,
    /// By process, true if a fork in the part starts it.
    forked: Vec<bool>,
    part: Recording,
}

impl<'a> Walk<'a> {
    /// Along `span`, which begins at the time `from`.
    pub fn new(whole: &'a Recording, keep: Vec<bool>, span: Range<usize>, from: u64) -> Self {
        let threads = whole.threads.len();
        let mut walk = Walk {
            whole,
            span,
            from,
            memory: Memory::default(),
            living: keep.clone(),
            keep,
            carried: vec![0; threads],
            wakes: vec![Vec::new(); threads],
            used: HashSet::new(),
            made: HashSet::new(),
            begun: vec![false; whole.processes.len()],
            forked: vec![false; whole.processes.len()],
            part: Recording {
                environment: whole.environment.clone(),
                page: whole.page,
                files: whole.files.clone(),
                lost: whole.lost,
                cost: whole.cost,
                ..Recording::default()
            },
        };
        walk.look_ahead();
        walk
    }

    /// The part, which takes this long.
    pub fn part(mut self, nanoseconds: u64) -> Recording {
        let (before, rest) = self.whole.events.split_at(self.span.start);
        for event in before {
            self.memory.take(event, &self.whole.threads);
        }
        for process in 0..self.whole.processes.len() as u32 {
            self.give(self.from, process);
        }
        for event in &rest[..self.span.len()] {
            let end = self.end_of_first(event);
            self.memory.take(event, &self.whole.threads);
            match self.keep[event.thread as usize] {
                true => self.stay(event),
                false => self.leave(event, end),
            }
        }
        self.part.nanoseconds = nanoseconds;
        self.define();
        self.part
    }

    /// Finds the mappings that are used, new numbers of wake-ups, and the threads that are born.
    fn look_ahead(&mut self) {
        let mut kept = vec![0; self.keep.len()];
        let mut exist = self.keep.clone();
        for (index, event) in self.whole.events.iter().enumerate() {
            let thread = event.thread as usize;
            let stays = self.keep[thread] && self.span.contains(&index);
            if let What::Start { thread } | What::Fork { thread, .. } = event.what {
                exist[thread as usize] &= !self.span.contains(&index);
                self.living[thread as usize] &= !stays;
            }
            match &event.what {
                What::Wake { thread: woken } => {
                    let stays = stays && self.keep[*woken as usize];
                    self.wakes[thread].push(stays.then_some(kept[thread]));
                    kept[thread] += u32::from(stays);
                }
                what if stays => self.used.extend(places(what).map(|place| place.mapping)),
                _ => {}
            }
        }
        for (exists, thread) in exist.iter().zip(&self.whole.threads) {
            self.begun[thread.process as usize] |= exists;
        }
        // What a mapping that is used was moved from is used too.
        for event in self.whole.events.iter().rev() {
            if let What::Call { call, .. } = &event.what
                && let Call::Remap {
                    at, to: Some(to), ..
                } = call
                && self.used.contains(to)
            {
                self.used.insert(at.mapping);
            }
        }
    }

    /// Adds an event of a thread that stays.
    fn stay(&mut self, event: &Event) {
        let thread = event.thread as usize;
        let at = event.at - self.from;
        let computed = std::mem::take(&mut self.carried[thread]).saturating_add(event.computed);
        let mut new = Event {
            at,
            computed: self.since_the_beginning(computed, at),
            ..event.clone()
        };
        match &mut new.what {
            What::Start { thread: other } | What::Fork { thread: other, .. } => {
                let process = self.whole.threads[*other as usize].process;
                if !self.keep[*other as usize] {
                    self.carried[thread] = computed;
                    return self.born(event);
                }
                self.living[*other as usize] = true;
                self.begun[process as usize] = true;
                self.forked[process as usize] |= matches!(event.what, What::Fork { .. });
            }
            What::Wake { thread: woken } if !self.keep[*woken as usize] => {
                self.carried[thread] = computed;
                return;
            }
            What::Hold { process, .. } if !self.has(*process) => {
                self.carried[thread] = computed;
                return;
            }
            What::Wait {
                nanoseconds, by, ..
            } => {
                *nanoseconds = self.since_the_beginning(*nanoseconds, at);
                *by = by.and_then(|(waker, number)| self.wake(waker, number));
            }
            What::Exit => self.living[thread] = false,
            _ => {}
        }
        self.add(new);
    }

    /// Takes what an event of a thread that is left out does to those that stay. The first mapping
    /// that it works on ended at `end`.
    fn leave(&mut self, event: &Event, end: u64) {
        let process = self.whole.threads[event.thread as usize].process;
        match &event.what {
            What::Call {
                call,
                error: 0,
                parts,
            } => self.others_call(event.at, process, call, parts, end),
            What::Given { call } => self.add_given(event.at, process, call.clone()),
            What::Start { .. } | What::Fork { .. } => self.born(event),
            // It ends the other threads of its process.
            What::Exec => self.begun[process as usize] = false,
            _ => {}
        }
    }

    /// A thread that is left out works on memory, as `end` says for [`Walk::leave`].
    fn others_call(
        &mut self,
        at: u64,
        process: u32,
        call: &Call,
        parts: &[(Place, u64)],
        end: u64,
    ) {
        let is_used = |place: &Place| self.used.contains(&place.mapping);
        let made = call.made().is_some_and(|made| self.used.contains(&made));
        let changed = call.at().is_some_and(|at| is_used(&at));
        let mut calls = Vec::new();
        if made || changed {
            calls.push(call.clone());
        }
        match calls.first_mut() {
            Some(Call::Map { over, .. }) => *over = over.filter(is_used),
            Some(Call::Unmap { at, length } | Call::Protect { at, length, .. }) => {
                *length = (*length).min(end.saturating_sub(at.offset));
            }
            Some(Call::Remap { .. } | Call::Break { .. }) | None => {}
            Some(_) => return,
        }
        for (place, bytes) in parts.iter().filter(|(place, _)| is_used(place)) {
            let mut call = call.clone();
            if let Call::Unmap { at, length } | Call::Protect { at, length, .. } = &mut call {
                (*at, *length) = (*place, *bytes);
                calls.push(call);
            }
        }
        for call in calls {
            self.add_given(at, process, call);
        }
    }

    /// A thread is born, and the part does not say by which one: if it stays, it exists from the
    /// beginning, and waits. The mappings of its process are given with the first one.
    fn born(&mut self, event: &Event) {
        let (What::Start { thread } | What::Fork { thread, .. }) = event.what else {
            return;
        };
        if !self.keep[thread as usize] {
            return;
        }
        let process = self.whole.threads[thread as usize].process;
        if !std::mem::replace(&mut self.begun[process as usize], true) {
            self.give(event.at, process);
        }
        let at = event.at - self.from;
        self.add(Event {
            at,
            thread,
            computed: 0,
            what: What::Wait {
                on: WaitFor::Time,
                nanoseconds: at,
                by: None,
            },
        });
    }

    /// Gives what the process has mapped.
    fn give(&mut self, at: u64, process: u32) {
        for call in self.memory.given(process) {
            self.add_given(at, process, call);
        }
    }

    /// Gives a mapping to the process, if a thread that stays exists in it.
    fn add_given(&mut self, at: u64, process: u32, call: Call) {
        if !self.begun[process as usize] {
            return;
        }
        let threads = self.living.iter().zip(&self.whole.threads);
        let mut found = threads
            .zip(0..)
            .filter(|((is_living, thread), _)| **is_living && thread.process == process);
        if let Some((_, thread)) = found.next() {
            self.add(Event {
                at: at.saturating_sub(self.from),
                thread,
                computed: 0,
                what: What::Given { call },
            });
        }
    }

    /// Adds an event. One that works on memory that the part does not know is unknown.
    fn add(&mut self, mut event: Event) {
        let made = &self.made;
        let is_made = |place: &Place| made.contains(&place.mapping);
        if let What::Call { call, .. } | What::Given { call } = &mut event.what
            && let Call::Map { over, .. } = call
        {
            *over = over.filter(is_made);
        }
        if let What::Call { parts, .. } = &mut event.what {
            parts.retain(|(place, _)| is_made(place));
        }
        if !places(&event.what).all(|place| is_made(&place)) {
            event.what = What::Unknown;
            self.part.lost.unknown += 1;
        }
        if let What::Call { call, .. } | What::Given { call } = &event.what {
            self.made.extend(call.made());
        }
        self.part.events.push(event);
    }

    /// Where the first mapping that the event works on ends.
    fn end_of_first(&self, event: &Event) -> u64 {
        let process = self.whole.threads[event.thread as usize].process;
        let place = places(&event.what).next();
        place.map_or(0, |place| self.memory.end(process, place.mapping))
    }

    /// The part of a time up to `at` that is after a cut.
    fn since_the_beginning(&self, nanoseconds: u64, at: u64) -> u64 {
        match self.from {
            0 => nanoseconds,
            _ => nanoseconds.min(at),
        }
    }

    /// The new number of a wake-up, with its thread.
    fn wake(&self, waker: u32, number: u32) -> Option<(u32, u32)> {
        let wakes = self.wakes.get(waker as usize)?;
        let number = wakes.get(number as usize)?;
        number.map(|number| (waker, number))
    }

    /// Returns true if a thread of the process stays.
    fn has(&self, process: u32) -> bool {
        let mut threads = self.keep.iter().zip(&self.whole.threads);
        threads.any(|(keep, thread)| *keep && thread.process == process)
    }

    /// Defines the threads and processes that stay, and the files that are mapped, under numbers
    /// without gaps.
    fn define(&mut self) {
        let whole = self.whole;
        let kept = self.keep.iter().zip(&whole.threads);
        let kept: Vec<&Thread> = kept
            .filter(|(keep, _)| **keep)
            .map(|(_, one)| one)
            .collect();
        let mut has = vec![false; whole.processes.len()];
        kept.iter()
            .for_each(|thread| has[thread.process as usize] = true);
        let mut mapped = vec![false; whole.files.len()];
        for event in &self.part.events {
            if let What::Call { call, .. } | What::Given { call } = &event.what
                && let Call::Map {
                    file: Some((file, _)),
                    ..
                } = call
            {
                mapped[*file as usize] = true;
            }
        }
        let numbers = Numbers::new(&self.keep, &has, &mapped);
        self.part.threads = kept.into_iter().cloned().collect();
        for thread in &mut self.part.threads {
            thread.process = numbers.processes[thread.process as usize];
        }
        let processes = (0..).zip(&whole.processes);
        let processes = processes.filter(|(number, _)| has[*number]);
        let processes = processes.map(|(number, process)| Process {
            birth: match process.birth {
                Birth::Forked if !self.forked[number] => Birth::Existed,
                birth => birth,
            },
            ..process.clone()
        });
        self.part.processes = processes.collect();
        let files = mapped.iter().zip(&whole.files);
        let files = files.filter(|(is_mapped, _)| **is_mapped);
        self.part.files = files.map(|(_, file)| file.clone()).collect();
        self.part
            .events
            .iter_mut()
            .for_each(|event| event.renumber(&numbers));
    }
}

/// The places that an event works on.
fn places(what: &What) -> impl Iterator<Item = Place> {
    let (first, parts) = match what {
        What::Call { call, parts, .. } => (call.at(), &parts[..]),
        What::Given { call } => (call.at(), &[][..]),
        What::Fault { at, .. } => (Some(*at), &[][..]),
        _ => (None, &[][..]),
    };
    first
        .into_iter()
        .chain(parts.iter().map(|(place, _)| *place))
}
