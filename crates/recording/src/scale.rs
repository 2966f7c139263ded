//! A recording with another number of threads.

use crate::{Call, Event, Recording, Role, What};
use std::collections::{HashMap, HashSet};

impl Recording {
    /// The same program with `count` threads of `role`.
    ///
    /// Threads beyond the recorded ones do what these did, at the same time: on mappings of their
    /// own where only one thread of the role used a mapping, and otherwise on the same ones. They
    /// start no threads and processes. If there are fewer threads than recorded ones, the last of
    /// these are gone, but none that starts others or is the first of its process; the first thread
    /// of their process does their calls on memory that other threads use.
    pub fn with_threads(&self, role: &Role, count: usize) -> Self {
        let mut scaled = Scaled::new(self, role, count);
        for event in &self.events {
            scaled.event(event);
        }
        scaled.into
    }
}

struct Scaled<'a> {
    from: &'a Recording,
    /// The threads of the role, with those that are added.
    members: Vec<u32>,
    /// The number of recorded ones that are left.
    recorded: usize,
    /// By thread: its place among the recorded members.
    place: HashMap<u32, usize>,
    /// Members that no recorded thread of their process starts, and that have done nothing so far.
    unstarted: HashSet<u32>,
    /// By mapping: the only thread of the role that uses it.
    owners: HashMap<u32, Option<u32>>,
    /// By added thread and mapping: the thread's own.
    own: HashMap<(u32, u32), u32>,
    /// The next mapping's number.
    mappings: u32,
    into: Recording,
}

impl<'a> Scaled<'a> {
    fn new(from: &'a Recording, role: &Role, count: usize) -> Self {
        let mut into = Recording {
            events: Vec::with_capacity(from.events.len()),
            ..from.clone()
        };
        into.events.clear();
        let mut members = role.threads.clone();
        let essential = essential(from);
        members.sort_by_key(|thread| !essential.contains(thread));
        let least = members.iter().filter(|thread| essential.contains(thread));
        let count = count.max(least.count()).max(1);
        let place = (0..).zip(&members).map(|(place, &thread)| (thread, place));
        let place: HashMap<u32, usize> = place.collect();
        for copy in members.len()..count {
            let original = &from.threads[members[copy % role.threads.len()] as usize];
            members.push(into.threads.len() as u32);
            into.threads.push(original.clone());
        }
        members.truncate(count);
        Scaled {
            owners: owners(from, &place),
            unstarted: unstarted(from, &role.threads),
            mappings: from.mappings(),
            from,
            recorded: role.threads.len().min(members.len()),
            members,
            place,
            own: HashMap::new(),
            into,
        }
    }

    fn event(&mut self, event: &Event) {
        match self.place.get(&event.thread) {
            Some(&place) if place >= self.recorded => self.leave(event),
            Some(&place) => {
                if self.unstarted.remove(&event.thread) {
                    self.start_copies(event, place);
                }
                self.into.events.push(event.clone());
                if let What::Start { thread } = event.what
                    && let Some(&started) = self.place.get(&thread)
                {
                    self.start_copies(event, started);
                }
                for copy in self.copies(place) {
                    self.copy(event, copy);
                }
            }
            None => self.other(event),
        }
    }

    /// Starts, with this event, those that are added for the member at `place`.
    fn start_copies(&mut self, event: &Event, place: usize) {
        for copy in self.copies(place) {
            self.into.events.push(Event {
                computed: 0,
                what: What::Start {
                    thread: self.members[copy],
                },
                ..event.clone()
            });
        }
    }

    /// The added threads that do what the member at `place` did.
    fn copies(&self, place: usize) -> Vec<usize> {
        let all = place + self.place.len()..self.members.len();
        all.step_by(self.place.len()).collect()
    }

    /// An event of a thread that is gone.
    fn leave(&mut self, event: &Event) {
        let (What::Call { call, .. } | What::Given { call }) = &event.what else {
            return;
        };
        let is_own = |mapping: u32| self.owner(mapping) == Some(event.thread);
        if call.mappings().into_iter().all(is_own) {
            return;
        }
        let process = self.from.threads[event.thread as usize].process;
        let mut of_process = self.from.threads.iter().map(|thread| thread.process);
        let first = of_process.position(|one| one == process);
        self.into.events.push(Event {
            thread: first.unwrap_or_default() as u32,
            computed: 0,
            ..event.clone()
        });
    }

    /// An event of a thread of another role.
    fn other(&mut self, event: &Event) {
        let gone = |thread: &u32| {
            self.place
                .get(thread)
                .is_some_and(|at| *at >= self.recorded)
        };
        match &event.what {
            What::Start { thread }
            | What::Wait {
                by: Some((thread, _)),
                ..
            } if gone(thread) => {
                return;
            }
            _ => self.into.events.push(event.clone()),
        }
        let place = match &event.what {
            What::Start { thread } => self.place.get(thread),
            What::Call { call, .. } | What::Given { call } => {
                let owner = call.mappings().into_iter().find_map(|one| self.owner(one));
                owner.and_then(|owner| self.place.get(&owner))
            }
            _ => None,
        };
        let Some(&place) = place else { return };
        for copy in self.copies(place) {
            let what = match &event.what {
                What::Start { .. } => What::Start {
                    thread: self.members[copy],
                },
                what => self.on_own(what, self.members[copy]),
            };
            self.into.events.push(Event {
                what,
                computed: 0,
                ..event.clone()
            });
        }
    }

    /// Lets an added thread do what a recorded one did.
    fn copy(&mut self, event: &Event, copy: usize) {
        let thread = self.members[copy];
        let what = match &event.what {
            What::Start { .. } | What::Fork { .. } | What::Exec => return,
            What::Given { call }
                if call.mappings().iter().any(|&one| self.owner(one).is_none()) =>
            {
                return;
            }
            &What::Wait {
                on,
                nanoseconds,
                by,
            } => What::Wait {
                on,
                nanoseconds,
                by: by.map(|(by, wakes)| (self.peer(by, copy), wakes)),
            },
            what => self.on_own(what, thread),
        };
        self.into.events.push(Event {
            thread,
            what,
            ..event.clone()
        });
    }

    /// The thread that stands for `thread` among those added with `copy`.
    fn peer(&self, thread: u32, copy: usize) -> u32 {
        let Some(place) = self.place.get(&thread) else {
            return thread;
        };
        let round = copy / self.place.len() * self.place.len();
        self.members.get(round + place).copied().unwrap_or(thread)
    }

    fn owner(&self, mapping: u32) -> Option<u32> {
        self.owners.get(&mapping).copied().flatten()
    }

    /// The same on the mappings of an added thread.
    fn on_own(&mut self, what: &What, thread: u32) -> What {
        let mut what = what.clone();
        for mapping in what.mappings_mut() {
            self.translate(mapping, thread);
        }
        what
    }

    fn translate(&mut self, mapping: &mut u32, thread: u32) {
        let original = self.from.threads.len() as u32;
        if self.owner(*mapping).is_none() || thread < original {
            return;
        }
        let next = &mut self.mappings;
        *mapping = *self.own.entry((thread, *mapping)).or_insert_with(|| {
            *next += 1;
            *next - 1
        });
    }
}

/// The threads without which others do not exist: the first of each process, and those that start
/// others.
fn essential(from: &Recording) -> HashSet<u32> {
    let mut processes = HashSet::new();
    let threads = (0..).zip(&from.threads);
    let first = threads.filter(|(_, thread)| processes.insert(thread.process));
    let mut essential: HashSet<u32> = first.map(|(number, _)| number).collect();
    let starts = |event: &&Event| matches!(event.what, What::Start { .. } | What::Fork { .. });
    let starters = from.events.iter().filter(starts);
    essential.extend(starters.map(|event| event.thread));
    essential
}

/// Those of `threads` that no thread of their process starts.
fn unstarted(from: &Recording, threads: &[u32]) -> HashSet<u32> {
    let mut unstarted: HashSet<u32> = threads.iter().copied().collect();
    for event in &from.events {
        if let What::Start { thread } = event.what {
            unstarted.remove(&thread);
        }
    }
    unstarted
}

/// By mapping: the only member that uses it, if there is one. Where memory is touched, the threads
/// that touch it use it, and not those that only map it.
fn owners(from: &Recording, place: &HashMap<u32, usize>) -> HashMap<u32, Option<u32>> {
    let mut touching: HashMap<u32, Option<u32>> = HashMap::new();
    let mut calling: HashMap<u32, Option<u32>> = HashMap::new();
    for event in &from.events {
        let member = place.contains_key(&event.thread).then_some(event.thread);
        let note = |users: &mut HashMap<u32, Option<u32>>, mapping: u32| {
            let user = users.entry(mapping).or_insert(member);
            *user = user.filter(|_| *user == member);
        };
        match &event.what {
            What::Fault { at, .. } => note(&mut touching, at.mapping),
            What::Call { call, .. } | What::Given { call } => {
                for mapping in call.mappings() {
                    note(&mut calling, mapping);
                }
            }
            _ => {}
        }
    }
    calling.extend(touching);
    // A process has one heap.
    for event in &from.events {
        if let What::Call { call, .. } | What::Given { call } = &event.what
            && let Call::Break { mapping, .. } = call
        {
            calling.insert(*mapping, None);
        }
    }
    calling
}
