//! Tasks and time: one task per CPU.

use crate::Sim;
use crate::engine::{self, Engine, Running};
use core::marker::PhantomData;
use machine::{Anchor, Clock, CpuId, Cpus, Locals, Pinned, Tasks};

/// A task: a CPU, and the number of its job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    pub(crate) cpu: CpuId,
    pub(crate) serial: u64,
}

/// The calling CPU. A task stays on its CPU anyway; pins are counted to catch a task that sleeps
/// with one. Counting takes no simulated time.
pub struct Pin {
    cpu: CpuId,
    /// A pin belongs to its task.
    not_send: PhantomData<*mut ()>,
}

impl Pinned for Pin {
    #[inline]
    fn cpu(&self) -> CpuId {
        self.cpu
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        if let Some(running) = Running::current() {
            running.with(|engine| engine.unpin());
        }
    }
}

/// The calling CPU.
fn cpu() -> CpuId {
    let id = |engine: &mut Engine| engine.range.cpu(engine.running);
    Running::current().map_or(CpuId::NONE, |running| running.with(id))
}

// SAFETY: a CPU has one job at a time, and a job stays on its CPU.
unsafe impl Cpus for Sim {
    type Pin = Pin;

    fn pin() -> Pin {
        let pin = |running: Running| running.with(|engine| engine.pin());
        Pin {
            cpu: Running::current().map_or(CpuId::NONE, pin),
            not_send: PhantomData,
        }
    }

    fn pins() -> u32 {
        Running::current().map_or(0, |running| running.with(|engine| engine.cpu().pins))
    }

    fn relax(round: u32) {
        engine::relax(round);
    }

    fn delay(pauses: u32) {
        engine::delay(pauses);
    }
}

thread_local! {
    /// The words of code outside the simulated CPUs.
    static OUTSIDE: Locals = const { Locals::ZERO };
}

/// The anchor of code outside the simulated CPUs.
static OUTSIDE_ANCHOR: Anchor = Anchor::new();

impl Tasks for Sim {
    type Task = Task;

    fn current_task() -> Task {
        let serial = |running: Running| running.with(|engine| engine.cpu().task());
        Task {
            cpu: cpu(),
            serial: Running::current().map_or(0, serial),
        }
    }

    fn park() {
        engine::park();
    }

    fn unpark(task: Task) {
        engine::unpark(task);
    }

    fn yield_now() {
        engine::yield_now();
    }

    fn with_locals<R>(f: impl FnOnce(&Locals) -> R) -> R {
        let Some(running) = Running::current() else {
            return OUTSIDE.with(f);
        };
        let locals = running.with(|engine| engine.cpu().locals());
        // SAFETY: the words stand on the stack of the running job, below everything that calls
        // this, and the pointer is null when they are gone.
        match unsafe { locals.as_ref() } {
            Some(locals) => f(locals),
            None => OUTSIDE.with(f),
        }
    }

    fn anchor() -> &'static Anchor {
        let Some(running) = Running::current() else {
            return &OUTSIDE_ANCHOR;
        };
        let anchor = running.with(|engine| core::ptr::from_ref(&engine.anchor));
        // SAFETY: the anchor stays in place while the machine exists, and only code on its CPUs
        // gets here, which the machine outlives.
        unsafe { &*anchor }
    }
}

impl Clock for Sim {
    const FREE: bool = true;

    fn now() -> u64 {
        let clock = |running: Running| running.with(|engine| engine.cpu().clock / 1000);
        Running::current().map_or(0, clock)
    }

    fn sleep_until(time: u64) {
        if Self::now() < time {
            engine::sleep(|_| time.saturating_mul(1000));
        }
    }
}
