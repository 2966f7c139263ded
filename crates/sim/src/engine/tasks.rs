//! How a running CPU waits: spinning, pausing, blocking.

use super::agenda::NEVER;
use super::cpu::Doing;
use super::{CURRENT, Engine, OnHost, in_turn, suspend};
use crate::task::Task;

/// Pauses until a sleeping spinner looks again, should nothing have woken it; doubles
/// each time in vain.
const PATIENCE: u64 = 64;
const MOST_DOUBLINGS: u32 = 10;

/// Waits for what the CPU has read to change.
pub(crate) fn relax(round: u32) {
    let engine = CURRENT.get();
    if engine.is_null() {
        return std::thread::yield_now();
    }
    // SAFETY: the pointer is set while this thread runs one of the engine's CPUs; no
    // reference outlives the suspension.
    unsafe {
        let e = &mut *engine;
        let _host = OnHost::enter();
        let (cpu, now) = (e.running, e.cpu().clock);
        let pause = e.profile.core.pause;
        if !e.directory.spinners.can_sleep(cpu) {
            e.directory.spinners.forget(cpu);
            return spin(e, pause << round.min(6));
        }
        let looks = e.directory.sleep(cpu, now);
        let patience = PATIENCE << e.cpu().vain.min(MOST_DOUBLINGS);
        e.cpu().doing = Doing::Spinning;
        e.agenda.set(cpu, looks.unwrap_or(now + patience * pause));
        suspend(engine);
    }
}

fn spin(engine: &mut Engine, time: u64) {
    let cpu = engine.cpu();
    cpu.clock += time;
    cpu.times.spinning += time;
}

/// Lets `pauses` pass.
pub(crate) fn delay(pauses: u32) {
    let engine = CURRENT.get();
    if !engine.is_null() {
        // SAFETY: as in `relax`.
        let engine = unsafe { &mut *engine };
        let time = u64::from(pauses) * engine.profile.core.pause;
        spin(engine, time);
    }
}

/// Offers the CPU to other tasks. There are none: each has its own.
pub(crate) fn yield_now() {
    let engine = CURRENT.get();
    if engine.is_null() {
        return std::thread::yield_now();
    }
    // SAFETY: as in `relax`.
    let engine = unsafe { &mut *engine };
    let time = engine.profile.kernel.yield_now;
    spin(engine, time);
}

/// Blocks the calling task until it has a permit, and takes that.
pub(crate) fn park() {
    if !in_turn() {
        return;
    }
    let engine = CURRENT.get();
    // SAFETY: as in `relax`.
    unsafe {
        let e = &mut *engine;
        let cpu = e.running;
        if core::mem::take(&mut e.cpu().permit) {
            let cost = e.profile.kernel.syscall;
            return e.spend(cost);
        }
        let cost = e.profile.kernel.block;
        e.spend(cost);
        e.cpu().doing = Doing::Parked;
        e.agenda.set(cpu, NEVER);
        suspend(engine);
    }
}

/// Gives `task` its permit.
pub(crate) fn unpark(task: Task) {
    if !in_turn() {
        return;
    }
    let engine = CURRENT.get();
    // SAFETY: as in `relax`.
    let engine = unsafe { &mut *engine };
    let cost = engine.profile.kernel.syscall;
    engine.spend(cost);
    let index = engine.range.index_of(task.cpu);
    let Some(target) = engine
        .cpus
        .get_mut(index)
        .filter(|cpu| cpu.task == task.serial)
    else {
        return;
    };
    if target.doing == Doing::Parked && engine.agenda.of(index) == NEVER {
        let blocked = target.clock;
        let now = engine.cpu().clock;
        let wake = engine.profile.kernel.wake;
        engine.schedule(index, blocked.max(now) + wake);
    } else if target.doing != Doing::Nothing {
        target.permit = true;
    }
}
