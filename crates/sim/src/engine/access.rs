//! What a running CPU does to memory.

use super::agenda::{NEVER, key};
use super::buffer::Store;
use super::cpu::Doing;
use super::{CURRENT, Engine, OnHost, Time, suspend};
use crate::arena::{Arena, offset_of};
use crate::coherence::LineId;

/// How an access uses its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// It reads.
    Load,
    /// It writes, and waits for the line.
    Store,
    /// It reads and writes as one (a locked instruction).
    Exchange,
}

/// The address of something shared, and how many bytes.
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

/// The calling CPU accesses `what`: when this returns it may, until it calls the engine
/// again. Nothing on no CPU.
#[inline]
pub(crate) fn touch(what: Shared, kind: Kind) {
    let engine = CURRENT.get();
    if !engine.is_null() {
        // SAFETY: the pointer is set while this thread runs one of the engine's CPUs.
        unsafe { Engine::touch(engine, what, kind) }
    }
}

/// The calling CPU stores `value`: whether the store is taken care of; else the caller may
/// perform it now.
#[inline]
pub(crate) fn store(what: Shared, value: u64) -> bool {
    let engine = CURRENT.get();
    // SAFETY: as in `touch`.
    !engine.is_null() && unsafe { Engine::store(engine, what, value) }
}

/// A full fence.
pub(crate) fn fence() {
    let engine = CURRENT.get();
    if !engine.is_null() {
        // SAFETY: as in `touch`.
        unsafe {
            Engine::drain(engine, false);
            let cost = (*engine).profile.core.fence;
            (*engine).spend(cost);
        }
    }
}

/// The calling CPU computes for `time`.
pub(crate) fn advance(time: Time) {
    let engine = CURRENT.get();
    if !engine.is_null() {
        // SAFETY: as in `touch`.
        unsafe { (*engine).spend(time) }
    }
}

/// Waits until no actor is earlier than the calling CPU, all its stores performed.
/// `false` on no CPU.
pub(crate) fn in_turn() -> bool {
    let engine = CURRENT.get();
    if engine.is_null() {
        return false;
    }
    // SAFETY: as in `touch`.
    unsafe {
        Engine::drain(engine, false);
        while !(*engine).is_turn() {
            Engine::wait_turn(engine);
        }
    }
    true
}

/// A block is about to be taken from the machine's heap; from memory that all CPUs take
/// from if `fresh`, which happens in turn: where a block lies must not depend on how far
/// CPUs run ahead.
#[inline]
pub(crate) fn allocation(fresh: bool) {
    let engine = CURRENT.get();
    if !engine.is_null() {
        // SAFETY: as in `touch`.
        unsafe {
            let cost = (*engine).profile.kernel.allocate;
            (*engine).spend(cost);
            while fresh && !(*engine).is_turn() {
                Engine::wait_turn(engine);
            }
        }
    }
}

/// A block is about to go back to the machine's heap: no store to it may be under way.
#[inline]
pub(crate) fn deallocation() {
    let engine = CURRENT.get();
    if !engine.is_null() {
        // SAFETY: as in `touch`.
        unsafe { Engine::drain(engine, false) }
    }
}

impl Engine {
    /// The running CPU's place in time.
    #[inline]
    fn me(&self) -> u64 {
        key(self.cpus[self.running].clock, self.running)
    }

    #[inline]
    fn is_turn(&self) -> bool {
        self.me() < self.turn
    }

    /// # Safety
    /// `this` is the calling thread's current engine.
    pub(super) unsafe fn touch(this: *mut Engine, what: Shared, kind: Kind) {
        let first = what.address & !63;
        let mut at = first;
        while at < what.address + what.bytes.max(1) {
            // SAFETY: the caller's promise.
            unsafe {
                let line = (*this).directory.line_of(at);
                Engine::touch_line(this, line, kind);
            }
            at += 64;
        }
    }

    unsafe fn touch_line(this: *mut Engine, line: LineId, kind: Kind) {
        let write = kind != Kind::Load;
        // SAFETY: the caller's promise, here and below; no reference outlives a suspension.
        let engine = unsafe { &mut *this };
        engine.counts.accesses += 1;
        if engine.watch.is_on() {
            engine.watch_access(line, write);
        }
        let stores = &engine.cpu().stores;
        if !stores.is_empty() && (kind == Kind::Exchange || stores.has(line)) {
            unsafe { Engine::drain(this, false) };
        }
        loop {
            let engine = unsafe { &mut *this };
            engine.take_interrupts();
            let (cpu, me) = (engine.running, engine.me());
            let clock = engine.cpus[cpu].clock;
            if me < engine.ahead && engine.directory.allows(line, cpu, clock, write) {
                if kind != Kind::Store {
                    engine.directory.note_read(line, cpu, clock);
                }
                break;
            }
            unsafe {
                match me < engine.turn {
                    true => Engine::fetch(this, line, write),
                    false => Engine::wait_turn(this),
                }
            }
        }
        let engine = unsafe { &mut *this };
        let core = &engine.profile.core;
        let locked = if kind == Kind::Exchange { core.rmw } else { 0 };
        let cost = core.instruction + core.hit + locked;
        engine.spend(cost);
    }

    /// # Safety
    /// As [`Engine::touch`].
    unsafe fn store(this: *mut Engine, what: Shared, value: u64) -> bool {
        // SAFETY: the caller's promise, here and below; no reference outlives a suspension.
        let line = unsafe { (*this).directory.line_of(what.address) };
        let watched = unsafe { (*this).watch.is_on() };
        loop {
            let engine = unsafe { &mut *this };
            engine.take_interrupts();
            let (cpu, me) = (engine.running, engine.me());
            let clock = engine.cpus[cpu].clock;
            if engine.cpu().stores.is_empty() {
                if me >= engine.ahead {
                    unsafe { Engine::wait_turn(this) };
                    continue;
                }
                // A stack's words may be something else by the time a store is performed.
                if Arena::is_stack(offset_of(what.address))
                    || engine.directory.allows(line, cpu, clock, true)
                {
                    unsafe { Engine::touch_line(this, line, Kind::Store) };
                    return false;
                }
            } else if engine.cpu().stores.is_full() {
                unsafe { Engine::drain(this, true) };
                continue;
            }
            engine.counts.accesses += 1;
            if watched {
                engine.watch_access(line, true);
            }
            let clock = engine.cpus[cpu].clock;
            let begins = engine.cpu().stores.is_empty();
            engine.cpu().stores.push(Store {
                line,
                address: what.address,
                bytes: what.bytes as u8,
                value,
                made: clock,
            });
            if begins {
                let buffer = cpu + engine.cpus.len();
                engine.schedule(buffer, clock);
            }
            let core = &engine.profile.core;
            let cost = core.instruction + core.hit;
            engine.spend(cost);
            return true;
        }
    }

    /// Waits until the running CPU's store buffer is empty, or has room.
    ///
    /// # Safety
    /// As [`Engine::touch`].
    pub(super) unsafe fn drain(this: *mut Engine, room: bool) {
        loop {
            // SAFETY: the caller's promise.
            let engine = unsafe { &mut *this };
            let cpu = engine.running;
            let stores = &engine.cpu().stores;
            if stores.is_empty() || (room && !stores.is_full()) {
                return;
            }
            engine.cpu().doing = Doing::Draining { room };
            engine.agenda.set(cpu, NEVER);
            // SAFETY: as above; `engine` is not used any more.
            unsafe { suspend(this) };
        }
    }

    /// Waits until the running CPU is the earliest actor.
    ///
    /// # Safety
    /// As [`Engine::touch`].
    pub(super) unsafe fn wait_turn(this: *mut Engine) {
        // SAFETY: the caller's promise.
        unsafe {
            let engine = &mut *this;
            let (cpu, clock) = (engine.running, engine.cpu().clock);
            engine.agenda.set(cpu, clock);
            suspend(this);
        }
    }

    /// Gets the right to a line, in turn.
    unsafe fn fetch(this: *mut Engine, line: LineId, write: bool) {
        // SAFETY: the caller's promise.
        unsafe {
            let engine = &mut *this;
            let _host = OnHost::enter();
            let (cpu, clock) = (engine.running, engine.cpu().clock);
            engine.cpu().doing = Doing::Fetching;
            engine
                .directory
                .request(cpu, line, write, clock, &mut engine.agenda);
            suspend(this);
        }
    }
}
