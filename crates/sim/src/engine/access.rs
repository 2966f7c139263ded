//! A running CPU's accesses to memory.

use super::agenda::{NEVER, key};
use super::buffer::Store;
use super::cpu::{Cpu, Doing};
use super::sampler::Spent;
use super::{Engine, Running, Time};
use crate::arena::{Arena, offset_of};
use crate::coherence::{LineId, Terms};
use machine::{Asid, CpuSet, Flush, VaRange};

/// How an access uses its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// It reads.
    Load,
    /// It writes, and waits for the line.
    Store,
    /// It reads and writes atomically (a locked instruction).
    Exchange,
}

/// The address and the size of a shared variable.
#[derive(Clone, Copy)]
pub(crate) struct Shared {
    pub(crate) address: usize,
    pub(crate) bytes: usize,
}

impl Shared {
    #[inline(always)]
    pub(crate) fn of<T>(place: *const T) -> Self {
        Shared {
            address: place as usize,
            bytes: size_of::<T>(),
        }
    }
}

/// Prepares an access to `what` by the calling CPU, which may perform it after this returns and
/// before it calls the engine again. No effect outside the machine's CPUs.
#[inline]
pub(crate) fn touch(what: Shared, kind: Kind) {
    if let Some(running) = Running::current() {
        running.touch(what, kind);
    }
}

/// Stores `value` for the calling CPU, perhaps through its buffer. Returns true if the store is
/// taken care of; if not, the caller may perform it now.
#[inline]
pub(crate) fn store(what: Shared, value: u64) -> bool {
    Running::current().is_some_and(|running| running.store(what, value))
}

/// Executes a full fence on the calling CPU.
pub(crate) fn fence() {
    if let Some(running) = Running::current() {
        running.drain(Room::All);
        running.with(|engine| engine.spend(engine.profile.core.fence));
    }
}

/// Makes every store visible that other CPUs have made so far, by an interrupt to all of them that
/// costs what a shootdown costs which flushes nothing; and fences.
///
/// The caller's own stores are performed when the interrupts are sent. A load that another CPU has
/// executed by then follows stores that are now in memory or in that CPU's buffer, and this waits
/// for the buffers. A later load finds the caller's stores in memory.
pub(crate) fn ping() {
    let Some(running) = in_turn() else { return };
    let (made, done) = running.with(Engine::interrupt_others);
    running.with(|engine| {
        let wait = done.saturating_sub(engine.cpu().clock);
        engine.spend_interrupted(wait);
    });
    running.await_turn();
    while !running.with(|engine| engine.has_seen_stores(&made)) {
        running.with(|engine| engine.spend_interrupted(engine.profile.core.fence.max(1)));
        running.await_turn();
    }
}

/// Lets the calling CPU compute for `time`.
pub(crate) fn advance(time: Time) {
    if let Some(running) = Running::current() {
        if !running.with(|engine| engine.computes_at_once(time)) {
            running.compute(time);
        }
        running.with(|engine| engine.charge(Spent::Working, None));
    }
}

/// Waits until no actor is earlier than the calling CPU, all its stores performed. No effect
/// outside the machine's CPUs.
pub(crate) fn in_turn() -> Option<Running> {
    let running = Running::current()?;
    running.drain(Room::All);
    running.await_turn();
    Some(running)
}

/// Called before a block is taken from the machine's heap. If it is `fresh`, from memory that all
/// CPUs share, this happens in turn: the place of a block must not depend on how far CPUs run
/// ahead.
#[inline]
pub(crate) fn allocation(fresh: bool) {
    if let Some(running) = Running::current() {
        running.with(|engine| engine.spend(engine.profile.kernel.allocate));
        while fresh && !running.with(|engine| engine.is_turn()) {
            running.wait_turn();
        }
    }
}

/// Called before a block returns to the machine's heap: no store to it may be under way.
#[inline]
pub(crate) fn deallocation() {
    if let Some(running) = Running::current() {
        running.drain(Room::All);
    }
}

/// The next step of an access.
enum Next {
    /// The access has been performed, or may be.
    Done,
    /// The line must be fetched; it is the CPU's turn.
    Fetch,
    /// Other actors are earlier.
    Wait,
    /// The store buffer must have room, or be empty.
    Drain(Room),
    /// The task is preempted first.
    Preempt,
}

/// The part of a store buffer that must be free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    /// All of it.
    All,
    /// One place.
    One,
}

impl Running {
    #[inline]
    fn touch(self, what: Shared, kind: Kind) {
        let mut at = what.address & !63;
        while at < what.address + what.bytes.max(1) {
            // The engine is borrowed once for an access that its rights allow.
            let (line, next) = self.with(|engine| engine.access(at, kind));
            if !matches!(next, Next::Done) {
                self.complete(line, kind, next);
            }
            at += 64;
        }
    }

    /// Takes the `next` steps until the access is done.
    #[inline(never)]
    fn complete(self, line: LineId, kind: Kind, mut next: Next) {
        loop {
            match next {
                Next::Done => return,
                Next::Fetch => self.fetch(line, kind != Kind::Load),
                Next::Wait => self.wait_turn(),
                Next::Drain(room) => self.drain(room),
                Next::Preempt => {
                    self.preempt();
                    self.with(|engine| engine.count_access(line, kind != Kind::Load));
                }
            }
            next = self.with(|engine| engine.use_line(line, kind));
        }
    }

    fn store(self, what: Shared, value: u64) -> bool {
        let (line, mut next) = self.with(|engine| engine.begin_store(what, value));
        loop {
            match next {
                Next::Done => return true,
                // The access need not, or cannot, go through the buffer.
                Next::Fetch => {
                    let next = self.with(|engine| {
                        engine.count_access(line, true);
                        engine.use_line(line, Kind::Store)
                    });
                    self.complete(line, Kind::Store, next);
                    return false;
                }
                Next::Wait => self.wait_turn(),
                Next::Drain(room) => self.drain(room),
                Next::Preempt => self.preempt(),
            }
            next = self.with(|engine| engine.buffer_store(line, what, value));
        }
    }

    /// Waits until the running CPU's store buffer has `room`.
    #[inline]
    pub(super) fn drain(self, room: Room) {
        while !self.with(|engine| engine.cpu().stores.has_room(room)) {
            self.with(|engine| {
                let cpu = engine.running;
                engine.cpu().doing = Doing::Draining(room);
                engine.agenda.set(cpu, NEVER);
            });
            self.wait(None);
        }
    }

    /// Waits until no actor is earlier, however long that takes.
    pub(super) fn await_turn(self) {
        while !self.with(|engine| engine.is_turn()) {
            self.wait_turn();
        }
    }

    /// Lets earlier actors go first.
    pub(super) fn wait_turn(self) {
        self.with(|engine| {
            let (cpu, clock) = (engine.running, engine.cpu().clock);
            engine.agenda.set(cpu, clock);
        });
        self.wait(None);
    }

    /// Gets the right to a line, in turn.
    fn fetch(self, line: LineId, write: bool) {
        self.with(|engine| {
            let (cpu, clock) = (engine.running, engine.cpu().clock);
            engine.cpu().doing = Doing::Fetching;
            let terms = engine.terms(line, engine.cpus[cpu].terms());
            engine
                .directory
                .request(cpu, line, write, clock, terms, &mut engine.agenda);
        });
        self.wait(Some(line));
    }
}

impl Engine {
    /// Interrupts all other CPUs; returns each CPU's time, and when the last one has acknowledged.
    fn interrupt_others(&mut self) -> (Vec<Time>, Time) {
        let others = (0..self.cpus.len()).filter(|&cpu| cpu != self.running);
        let others: CpuSet = others.collect();
        let made = self.cpus.iter().map(|cpu| cpu.clock).collect();
        let nothing = Flush::Range(VaRange::sized(0, 0));
        (made, self.interrupt(&others, Asid(0), nothing))
    }

    /// Returns true if each CPU's stores are in memory that it had made by its time in `made`.
    fn has_seen_stores(&self, made: &[Time]) -> bool {
        let mut cpus = self.cpus.iter().zip(made);
        cpus.all(|(cpu, &time)| cpu.stores.oldest().is_none_or(|store| store.made > time))
    }

    /// The terms of a request of `line` that is made on `terms`.
    pub(super) fn terms(&self, line: LineId, terms: Terms) -> Terms {
        if terms.at_hand || self.at_hand.is_empty() {
            return terms;
        }
        let object = self.object(line);
        let at_hand = self.at_hand.iter().any(|name| name == object);
        Terms { at_hand, ..terms }
    }

    /// The running CPU's agenda key.
    #[inline]
    fn me(&self) -> u64 {
        key(self.cpus[self.running].clock, self.running)
    }

    #[inline]
    fn is_turn(&self) -> bool {
        self.me() < self.turn
    }

    /// Begins an access of the running CPU to `address`; returns its line and the next step.
    #[inline]
    fn access(&mut self, address: usize, kind: Kind) -> (LineId, Next) {
        let line = self.directory.line_of(address);
        if self.watch.is_on() && self.draws_preemption() {
            return (line, Next::Preempt);
        }
        self.count_access(line, kind != Kind::Load);
        (line, self.use_line(line, kind))
    }

    /// Begins a store, which may go through the buffer.
    #[inline]
    fn begin_store(&mut self, what: Shared, value: u64) -> (LineId, Next) {
        let line = self.directory.line_of(what.address);
        if self.watch.is_on() && self.draws_preemption() {
            return (line, Next::Preempt);
        }
        (line, self.buffer_store(line, what, value))
    }

    #[inline]
    fn count_access(&mut self, line: LineId, write: bool) {
        self.counts.accesses += 1;
        if self.watch.is_on() {
            self.watch_access(line, write);
        }
    }

    /// Uses the right to a line, if the running CPU has it.
    fn use_line(&mut self, line: LineId, kind: Kind) -> Next {
        self.take_interrupts();
        let write = kind != Kind::Load;
        let (cpu, me) = (self.running, self.me());
        let Cpu { clock, stores, .. } = &self.cpus[cpu];
        if !stores.is_empty() && (kind == Kind::Exchange || stores.has(line)) {
            return Next::Drain(Room::All);
        }
        if me >= self.ahead || !self.directory.allows(line, cpu, *clock, write) {
            return if me < self.turn {
                Next::Fetch
            } else {
                Next::Wait
            };
        }
        if kind != Kind::Store {
            self.directory.note_read(line, cpu, *clock);
        }
        let core = &self.profile.core;
        let locked = if kind == Kind::Exchange { core.rmw } else { 0 };
        self.spend(core.instruction + core.hit + locked);
        Next::Done
    }

    /// Puts a store into the running CPU's buffer, unless it need not, or cannot, go there.
    fn buffer_store(&mut self, line: LineId, what: Shared, value: u64) -> Next {
        self.take_interrupts();
        let (cpu, me) = (self.running, self.me());
        let Cpu { clock, stores, .. } = &self.cpus[cpu];
        let (clock, begins) = (*clock, stores.is_empty());
        if begins {
            if me >= self.ahead {
                return Next::Wait;
            }
            // The stack's memory may have another use by the time a store is performed.
            let on_stack = Arena::is_stack(offset_of(what.address));
            if on_stack || self.directory.allows(line, cpu, clock, true) {
                return Next::Fetch;
            }
        } else if !stores.has_room(Room::One) {
            return Next::Drain(Room::One);
        }
        self.count_access(line, true);
        let made = self.cpu().clock;
        let terms = self.cpu().store_terms();
        self.cpu().stores.push(Store {
            line,
            address: what.address,
            bytes: what.bytes as u8,
            value,
            made,
            terms,
        });
        if begins {
            let buffer = cpu + self.cpus.len();
            self.schedule(buffer, made);
        }
        let core = &self.profile.core;
        self.spend(core.instruction + core.hit);
        Next::Done
    }
}
